resource "aws_instance" "coordinator" {
  #checkov:skip=CKV_AWS_88:Its public address is for what it asks of AWS, cheaper than a NAT gateway; the security group lets nothing in but the operator's networks
  #checkov:skip=CKV_AWS_126:Five-minute metrics do; its own are by the second
  ami                                  = local.image_ids[local.architecture[local.coordinator_type]]
  instance_type                        = local.coordinator_type
  subnet_id                            = local.subnet_ids[0]
  vpc_security_group_ids               = [aws_security_group.coordinator.id]
  iam_instance_profile                 = aws_iam_instance_profile.machine["coordinator"].name
  associate_public_ip_address          = var.public_addresses
  ebs_optimized                        = true
  instance_initiated_shutdown_behavior = "stop"
  # All that counts is in the bucket: a new machine goes on where the old one was.
  user_data_base64            = base64gzip(local.coordinator_told)
  user_data_replace_on_change = true

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    # The minder reads there how many workers there shall be, so that another number needs no new machine.
    instance_metadata_tags = "enabled"
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = 30
    encrypted   = true
    tags        = local.tags
  }

  tags = {
    Name             = "${var.name}-coordinator"
    hatebeam-workers = var.workers
  }

  lifecycle {
    # A newer image is no reason for a new machine.
    ignore_changes = [ami]

    precondition {
      condition     = contains(keys(local.binaries), local.architecture[local.coordinator_type])
      error_message = "The coordinator is to be a ${local.coordinator_type}, and there is no program for ${local.architecture[local.coordinator_type]}: give binary_${local.architecture[local.coordinator_type]}, or another coordinator_instance_type."
    }
    precondition {
      condition     = length(base64gzip(local.coordinator_told)) <= 21844
      error_message = "What the coordinator is told at its start has more than the 16 KiB that AWS takes."
    }
  }

  # From its first second on it reads the bucket and its secret.
  depends_on = [aws_iam_role_policy.machine, aws_route_table_association.public]
}
