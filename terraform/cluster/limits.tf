# Additional safeguards that stop the machines. Normally, the watchdog on the coordinator's machine (machine/watchdog)
# stops them first. The safeguards in this file work even if that machine has failed.

# The watchdog sends a heartbeat to CloudWatch every minute. Without heartbeats, the alarm sets the size of the worker
# group to 0 and keeps it there.
resource "aws_autoscaling_policy" "no_workers" {
  name                   = "${var.name}-no-workers"
  autoscaling_group_name = aws_autoscaling_group.workers.name
  policy_type            = "SimpleScaling"
  adjustment_type        = "ExactCapacity"
  scaling_adjustment     = 0
  cooldown               = 0
}

resource "aws_cloudwatch_metric_alarm" "heartbeat" {
  alarm_name          = "${var.name}-heartbeat"
  alarm_description   = "The watchdog of ${var.name} sends no heartbeat: all workers are stopped"
  namespace           = local.namespace
  metric_name         = local.heartbeat
  statistic           = "SampleCount"
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  period              = 60
  # The watchdog itself stops the workers 5 minutes earlier, after blind_minutes.
  evaluation_periods = var.blind_minutes + 5
  treat_missing_data = "breaching"
  alarm_actions      = [aws_autoscaling_policy.no_workers.arn, aws_sns_topic.alerts.arn]
}

# This topic sends mails to alert_email: from the alarm, from the watchdog, and at the end of a run.
resource "aws_sns_topic" "alerts" {
  #checkov:skip=CKV_AWS_26:CloudWatch cannot publish to a topic with AWS's own key, and a customer-managed key costs a dollar a month; the mails contain names of runs and scores
  name = "${var.name}-alerts"
}

resource "aws_sns_topic_subscription" "alerts" {
  topic_arn = aws_sns_topic.alerts.arn
  protocol  = "email"
  endpoint  = var.alert_email
}

# All machines stop max_hours after the last `terraform apply`. Each plan computes a new deadline, so each apply extends
# it.
locals {
  deadline = timeadd(plantimestamp(), "${var.max_hours}h")
  stop_actions = {
    workers = {
      action = "autoscaling:updateAutoScalingGroup"
      # A maximum size of 0 prevents the watchdog from starting workers again.
      input = { AutoScalingGroupName = aws_autoscaling_group.workers.name, MinSize = 0, MaxSize = 0, DesiredCapacity = 0 }
    }
    coordinator = {
      action = "ec2:stopInstances"
      input  = { InstanceIds = [aws_instance.coordinator.id] }
    }
  }
}

data "aws_iam_policy_document" "scheduler_trust" {
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
  description        = "Stops ${var.name} at its deadline"
  assume_role_policy = data.aws_iam_policy_document.scheduler_trust.json
}

resource "aws_iam_role_policy" "deadline" {
  name   = "stop"
  role   = aws_iam_role.deadline.id
  policy = data.aws_iam_policy_document.deadline.json
}

resource "aws_scheduler_schedule" "deadline" {
  #checkov:skip=CKV_AWS_297:A schedule contains no secret, only the name of a group and the id of a machine
  for_each = local.stop_actions

  name                = "${var.name}-deadline-${each.key}"
  description         = "Stops ${var.name} at its deadline"
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
