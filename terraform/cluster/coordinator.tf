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
  # The user data contains only the location of the settings, so that a change of a setting does not replace the
  # machine.
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
    # A newer image or a newer checkout must not replace the machine. A stopped machine has no public address, which the
    # provider interprets as a change that requires a replacement.
    ignore_changes = [ami, user_data_base64, associate_public_ip_address]

    precondition {
      condition     = contains(keys(local.binaries), local.architecture[local.coordinator_type])
      error_message = "There is no program for the coordinator's machine type ${local.coordinator_type} (${local.architecture[local.coordinator_type]}): set binary_${local.architecture[local.coordinator_type]} or another coordinator_instance_type."
    }
  }

  # The machine reads its settings and its secret from AWS when it boots, so it needs the role and the route. The
  # settings are created after the machine, because the workers' settings contain its address; the machine waits for its
  # settings.
  depends_on = [aws_iam_role_policy.machine, aws_route_table_association.public]
}
