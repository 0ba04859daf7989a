resource "aws_instance" "coordinator" {
  #checkov:skip=CKV_AWS_88:The machine connects to AWS through its public address, which costs less than a NAT gateway; the security group admits only workers and the operator's networks
  #checkov:skip=CKV_AWS_126:Five-minute metrics are enough; hatebeam's own metrics have a resolution of seconds
  ami                                  = local.image_ids[local.architecture[local.coordinator_type]]
  instance_type                        = local.coordinator_type
  subnet_id                            = local.subnet_ids[0]
  vpc_security_group_ids               = [aws_security_group.coordinator.id]
  iam_instance_profile                 = aws_iam_instance_profile.machine["coordinator"].name
  associate_public_ip_address          = var.public_addresses
  private_ip                           = local.coordinator_address
  ebs_optimized                        = true
  instance_initiated_shutdown_behavior = "stop"
  # Names the object with the settings, so that no change of a setting replaces the machine.
  user_data_base64 = base64gzip(local.user_data["coordinator"])

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = 30
    encrypted   = true
    tags        = local.tags
  }

  tags = {
    Name = "${var.name}-coordinator"
  }

  lifecycle {
    # A newer image or a newer checkout replaces no machine. A stopped machine has no public address, which the provider
    # takes for a change that requires another machine.
    ignore_changes = [ami, user_data_base64, associate_public_ip_address]

    precondition {
      condition     = contains(keys(local.binaries), local.architecture[local.coordinator_type])
      error_message = "There is no program for the coordinator's ${local.coordinator_type}, an ${local.architecture[local.coordinator_type]} machine: set binary_${local.architecture[local.coordinator_type]} or another coordinator_instance_type."
    }
  }

  # The machine reads the bucket and its secret as soon as it boots. Its settings appear a moment later, because those of
  # the workers contain its address; it waits for them.
  depends_on = [aws_iam_role_policy.machine, aws_route_table_association.public]
}
