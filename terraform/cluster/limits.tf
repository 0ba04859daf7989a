# What stops it all if nobody else does. The first to act is the minder on the coordinator's machine (machine/minder);
# these are outside of it, and none of them needs a machine that works.

# The minder says every minute that all is well. Does it not, for whatever reason, the group is set to 0 and held there.
resource "aws_autoscaling_policy" "none" {
  name                   = "${var.name}-none"
  autoscaling_group_name = aws_autoscaling_group.workers.name
  policy_type            = "SimpleScaling"
  adjustment_type        = "ExactCapacity"
  scaling_adjustment     = 0
  cooldown               = 0
}

resource "aws_cloudwatch_metric_alarm" "silence" {
  alarm_name          = "${var.name}-silence"
  alarm_description   = "Nobody says whether a run of ${var.name} is open: its workers are sent away"
  namespace           = local.namespace
  metric_name         = local.heartbeat
  statistic           = "SampleCount"
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  period              = 60
  # After the minder itself would have given up.
  evaluation_periods = var.blind_minutes + 5
  treat_missing_data = "breaching"
  alarm_actions      = [aws_autoscaling_policy.none.arn]
}

# So long after the last `terraform apply` all is over. The time is new in every plan: an apply says that somebody
# still cares.
locals {
  deadline = timeadd(plantimestamp(), "${var.max_hours}h")
  last_orders = {
    workers = {
      action = "autoscaling:updateAutoScalingGroup"
      # With room for none the minder cannot call them back.
      input = { AutoScalingGroupName = aws_autoscaling_group.workers.name, MinSize = 0, MaxSize = 0, DesiredCapacity = 0 }
    }
    coordinator = {
      action = "ec2:stopInstances"
      input  = { InstanceIds = [aws_instance.coordinator.id] }
    }
  }
}

data "aws_iam_policy_document" "is_scheduler" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.this.account_id]
    }
  }
}

data "aws_iam_policy_document" "deadline" {
  statement {
    sid       = "NoWorkers"
    actions   = ["autoscaling:UpdateAutoScalingGroup"]
    resources = [aws_autoscaling_group.workers.arn]
  }

  statement {
    sid       = "NoCoordinator"
    actions   = ["ec2:StopInstances"]
    resources = [aws_instance.coordinator.arn]
  }
}

resource "aws_iam_role" "deadline" {
  name_prefix        = "${var.name}-deadline-"
  description        = "Stops ${var.name} in the end"
  assume_role_policy = data.aws_iam_policy_document.is_scheduler.json
}

resource "aws_iam_role_policy" "deadline" {
  name   = "stop"
  role   = aws_iam_role.deadline.id
  policy = data.aws_iam_policy_document.deadline.json
}

resource "aws_scheduler_schedule" "deadline" {
  #checkov:skip=CKV_AWS_297:A schedule holds no secret: the name of a group, and that of a machine
  for_each = local.last_orders

  name                = "${var.name}-deadline-${each.key}"
  description         = "Stops ${var.name} in the end"
  schedule_expression = "at(${formatdate("YYYY-MM-DD'T'hh:mm:ss", local.deadline)})"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "arn:${data.aws_partition.this.partition}:scheduler:::aws-sdk:${each.value.action}"
    role_arn = aws_iam_role.deadline.arn
    input    = jsonencode(each.value.input)
  }

  depends_on = [aws_iam_role_policy.deadline]
}

resource "aws_budgets_budget" "this" {
  name         = var.name
  budget_type  = "COST"
  limit_amount = format("%.2f", var.budget_dollars)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  dynamic "notification" {
    for_each = [[50, "ACTUAL"], [80, "ACTUAL"], [100, "ACTUAL"], [100, "FORECASTED"]]

    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value[0]
      threshold_type             = "PERCENTAGE"
      notification_type          = notification.value[1]
      subscriber_email_addresses = [var.alert_email]
    }
  }
}
