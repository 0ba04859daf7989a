# The Auto Scaling group of the workers. The watchdog sets its size, and AWS selects machine types that are cheap and
# unlikely to be reclaimed.

resource "aws_launch_template" "worker" {
  #checkov:skip=CKV_AWS_88:Workers connect to AWS through their public addresses; the security group admits only other workers
  for_each = local.binaries

  name_prefix                          = "${var.name}-${replace(each.key, "_", "-")}-"
  description                          = "Worker of ${var.name}"
  image_id                             = local.image_ids[each.key]
  instance_initiated_shutdown_behavior = "terminate"
  update_default_version               = true
  user_data                            = base64gzip(local.user_data["worker-${each.key}"])

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

  # This disk contains only the operating system; the wells are on the instance store.
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
}

resource "aws_autoscaling_group" "workers" {
  name                = local.group
  vpc_zone_identifier = local.subnet_ids
  min_size            = 0
  max_size            = var.workers
  desired_capacity    = 0
  # With rebalancing, AWS would terminate a machine as soon as its replacement boots, minutes before the replacement can
  # search. The notice two minutes before an interruption is sufficient.
  capacity_rebalance = false
  # The group may be empty after an apply, because machines run only while a run is open.
  wait_for_capacity_timeout = "0"
  health_check_type         = "EC2"
  # Replacing a worker to balance the zones would interrupt the depth in progress and has no benefit.
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
    # The watchdog sets the capacity.
    ignore_changes = [desired_capacity]

    precondition {
      condition     = length(local.worker_types) > 0
      error_message = "There is no program for any type in worker_instance_types (${join(", ", var.worker_instance_types)}): set binary_x86_64 or binary_aarch64, or use other types."
    }
  }

  depends_on = [aws_iam_role_policy.machine, aws_s3_object.settings]
}
