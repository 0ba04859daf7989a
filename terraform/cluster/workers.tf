# As many workers as the minder says, from whatever is cheap and likely to last.

resource "aws_launch_template" "worker" {
  #checkov:skip=CKV_AWS_88:Their public addresses are for what they ask of AWS; the security group lets nothing in but other workers
  for_each = local.worker_files

  name_prefix                          = "${var.name}-${replace(each.key, "_", "-")}-"
  description                          = "A worker of ${var.name}"
  image_id                             = local.image_ids[each.key]
  instance_initiated_shutdown_behavior = "terminate"
  update_default_version               = true
  user_data                            = base64gzip(local.worker_told[each.key])

  iam_instance_profile {
    name = aws_iam_instance_profile.machine["worker"].name
  }

  network_interfaces {
    associate_public_ip_address = var.public_addresses
    delete_on_termination       = true
    security_groups             = [aws_security_group.worker.id]
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  # The system alone; wells are on the instance store.
  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_type           = "gp3"
      volume_size           = 30
      encrypted             = true
      delete_on_termination = true
    }
  }

  dynamic "tag_specifications" {
    for_each = ["instance", "volume", "network-interface"]

    content {
      resource_type = tag_specifications.value
      tags          = merge(local.tags, { Name = "${var.name}-worker" })
    }
  }

  lifecycle {
    precondition {
      condition     = length(base64gzip(local.worker_told[each.key])) <= 21844
      error_message = "What a worker is told at its start has more than the 16 KiB that AWS takes."
    }
  }
}

resource "aws_autoscaling_group" "workers" {
  name                = local.group
  vpc_zone_identifier = local.subnet_ids
  min_size            = 0
  max_size            = var.workers
  desired_capacity    = 0
  # Where one is likely to be taken away another is started before that: the old one hands its shards over.
  capacity_rebalance = true
  # Machines come when they are asked for by a run, not when this is applied.
  wait_for_capacity_timeout = "0"
  health_check_type         = "EC2"
  # A worker that is moved to another zone for the sake of evenness costs a depth, and gains nothing.
  suspended_processes = ["AZRebalance"]

  mixed_instances_policy {
    instances_distribution {
      on_demand_base_capacity                  = var.on_demand_base
      on_demand_percentage_above_base_capacity = var.on_demand_percent
      on_demand_allocation_strategy            = "lowest-price"
      spot_allocation_strategy                 = "price-capacity-optimized"
    }

    launch_template {
      launch_template_specification {
        launch_template_id = values(aws_launch_template.worker)[0].id
        version            = values(aws_launch_template.worker)[0].latest_version
      }

      dynamic "override" {
        for_each = local.worker_types

        content {
          instance_type = override.value

          launch_template_specification {
            launch_template_id = aws_launch_template.worker[local.architecture[override.value]].id
            version            = aws_launch_template.worker[local.architecture[override.value]].latest_version
          }
        }
      }
    }
  }

  dynamic "tag" {
    for_each = local.tags

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    # The minder's business.
    ignore_changes = [desired_capacity]

    precondition {
      condition     = length(local.worker_types) > 0
      error_message = "For none of the worker_instance_types there is a program: give binary_x86_64 or binary_aarch64 for one of ${join(", ", var.worker_instance_types)}, or other types."
    }
  }

  depends_on = [aws_iam_role_policy.machine]
}
