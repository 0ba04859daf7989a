resource "aws_instance" "coordinator" {
  #checkov:skip=CKV_AWS_88:The machine connects to AWS through its public address, which costs less than a NAT gateway; the security group admits only workers and the operator's networks
  #checkov:skip=CKV_AWS_126:Five-minute metrics are enough; hatebeam's own metrics have a resolution of seconds
  ami                                  = local.image_ids[local.architecture[local.coordinator_type]]
  instance_type                        = local.coordinator_type
  subnet_id                            = local.subnet_ids[0]
  vpc_security_group_ids               = [aws_security_group.coordinator.id]
  iam_instance_profile                 = aws_iam_instance_profile.machine["coordinator"].name
  associate_public_ip_address          = var.public_addresses
  ebs_optimized                        = true
  instance_initiated_shutdown_behavior = "stop"
  # All of the state is in the bucket, so a replacement machine resumes the search.
  user_data_base64            = base64gzip(local.coordinator_user_data)
  user_data_replace_on_change = true

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    # The watchdog reads the number of workers from a tag, so a change of that number does not replace the machine.
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
    # A newer image does not replace the machine.
    ignore_changes = [ami]

    precondition {
      condition     = contains(keys(local.binaries), local.architecture[local.coordinator_type])
      error_message = "There is no program for the coordinator's ${local.coordinator_type}, an ${local.architecture[local.coordinator_type]} machine: set binary_${local.architecture[local.coordinator_type]} or another coordinator_instance_type."
    }
    precondition {
      condition     = length(base64gzip(local.coordinator_user_data)) <= 21844
      error_message = "The coordinator's user data exceeds AWS's limit of 16 KiB."
    }
  }

  # The machine reads the bucket and its secret as soon as it boots.
  depends_on = [aws_iam_role_policy.machine, aws_route_table_association.public]
}
