# What is made of which variables, by a provider that makes nothing.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  bucket        = "bucket"
  alert_email   = "me@example.org"
  binary_x86_64 = "1111111111111111111111111111111111111111111111111111111111111111"
}

run "a_vpc_is_made" {
  assert {
    condition     = length(aws_vpc.this) == 1 && keys(aws_subnet.public) == ["us-east-1a"] && length(aws_vpc_endpoint.s3) == 1
    error_message = "By default there is one VPC with one subnet."
  }
  assert {
    condition     = aws_instance.coordinator.subnet_id == aws_subnet.public["us-east-1a"].id && toset(aws_autoscaling_group.workers.vpc_zone_identifier) == toset([aws_subnet.public["us-east-1a"].id])
    error_message = "Machines are not in it."
  }
  assert {
    condition     = length(aws_default_security_group.this[0].ingress) == 0 && length(aws_default_security_group.this[0].egress) == 0
    error_message = "The default security group lets something through."
  }
}

run "zones_by_name" {
  variables {
    availability_zones = ["us-east-1c", "us-east-1b"]
  }

  assert {
    condition     = { for zone, subnet in aws_subnet.public : zone => subnet.cidr_block } == { us-east-1c = "10.77.0.0/20", us-east-1b = "10.77.16.0/20" }
    error_message = "A subnet for each zone that was named."
  }
}

run "a_vpc_is_taken" {
  variables {
    vpc_id           = "vpc-1"
    subnet_ids       = ["subnet-1", "subnet-2"]
    public_addresses = false
  }

  assert {
    condition     = length(aws_vpc.this) + length(aws_subnet.public) + length(aws_internet_gateway.this) + length(aws_route_table.public) + length(aws_vpc_endpoint.s3) + length(aws_default_security_group.this) == 0
    error_message = "A network is made beside the one that is there."
  }
  assert {
    condition     = aws_security_group.coordinator.vpc_id == "vpc-1" && aws_security_group.worker.vpc_id == "vpc-1"
    error_message = "Security groups are not in the VPC that was named."
  }
  assert {
    condition     = aws_instance.coordinator.subnet_id == "subnet-1" && toset(aws_autoscaling_group.workers.vpc_zone_identifier) == toset(["subnet-1", "subnet-2"])
    error_message = "Machines are not in the subnets that were named."
  }
  assert {
    condition     = !aws_instance.coordinator.associate_public_ip_address && aws_launch_template.worker["x86_64"].network_interfaces[0].associate_public_ip_address == "false"
    error_message = "Machines have public addresses."
  }
}

run "nothing_is_open" {
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.coordinator_from_operator) == 0
    error_message = "Somebody outside gets in by default."
  }
  # The two rules that are left let nobody in but workers.
  assert {
    condition = alltrue([
      for rule in [aws_vpc_security_group_ingress_rule.coordinator_from_workers, aws_vpc_security_group_ingress_rule.worker_from_workers] :
      rule.cidr_ipv4 == null && rule.cidr_ipv6 == null && rule.from_port == rule.to_port && rule.referenced_security_group_id == aws_security_group.worker.id
    ])
    error_message = "Somebody other than workers gets in."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.coordinator_from_workers.from_port == 7800 && aws_vpc_security_group_ingress_rule.worker_from_workers.from_port == 7801
    error_message = "The wrong ports are open."
  }
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_egress_rule.https : rule.from_port == 443 && rule.to_port == 443])
    error_message = "Machines reach more than AWS."
  }
  assert {
    condition     = strcontains(local.coordinator_told, "--dashboard 127.0.0.1:7880 ")
    error_message = "The dashboard listens to others though nobody may come."
  }
}

run "an_operator_gets_in" {
  variables {
    operator_cidrs = ["203.0.113.7/32", "198.51.100.0/24"]
  }

  assert {
    condition = toset([for rule in aws_vpc_security_group_ingress_rule.coordinator_from_operator : "${rule.cidr_ipv4} ${rule.from_port}-${rule.to_port}"]) == toset([
      "203.0.113.7/32 7800-7800", "203.0.113.7/32 7880-7880", "198.51.100.0/24 7800-7800", "198.51.100.0/24 7880-7880",
    ])
    error_message = "Not just the operators' networks, or not just these ports."
  }
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.coordinator_from_operator : rule.security_group_id == aws_security_group.coordinator.id])
    error_message = "Operators reach more than the coordinator."
  }
  assert {
    condition     = strcontains(local.coordinator_told, "--dashboard 0.0.0.0:7880 ")
    error_message = "The dashboard does not listen."
  }
}

run "machines_are_closed" {
  assert {
    condition = alltrue([
      for options in concat(aws_instance.coordinator.metadata_options, aws_launch_template.worker["x86_64"].metadata_options) :
      options.http_tokens == "required" && options.http_put_response_hop_limit == 1
    ])
    error_message = "The metadata service answers without a token, or to containers."
  }
  assert {
    condition     = aws_instance.coordinator.root_block_device[0].encrypted && aws_launch_template.worker["x86_64"].block_device_mappings[0].ebs[0].encrypted == "true"
    error_message = "A disk is not encrypted."
  }
  assert {
    condition     = aws_instance.coordinator.instance_initiated_shutdown_behavior == "stop" && aws_launch_template.worker["x86_64"].instance_initiated_shutdown_behavior == "terminate"
    error_message = "A machine that switches itself off does not go the right way."
  }
}

run "secrets_are_elsewhere" {
  assert {
    condition     = alltrue([for told in concat([local.coordinator_told], values(local.worker_told)) : !can(regex("PRIVATE KEY|BEGIN CERTIFICATE|HATEBEAM_TOKEN|--token|AWS_SECRET|AKIA", told))])
    error_message = "Machines are told a secret at their start."
  }
  assert {
    condition     = strcontains(local.coordinator_told, "SECRET=hatebeam/coordinator\\n") && strcontains(local.worker_told["x86_64"], "SECRET=hatebeam/worker\\n")
    error_message = "Machines are not told where their secrets are."
  }
  assert {
    condition     = !contains(flatten(values(local.secret_files)), "ca-key.pem") && !contains(local.secret_files["worker"], "coordinator-key.pem")
    error_message = "A machine is given a key that is not its business."
  }
  assert {
    condition     = alltrue([for secret in aws_secretsmanager_secret.this : secret.recovery_window_in_days == 0])
    error_message = "Secrets stay after all is destroyed."
  }
}

run "roles_are_narrow" {
  variables {
    prefix = "mine"
  }

  # Only actions that take no resource are allowed for all.
  assert {
    condition = toset(flatten([
      for document in concat(values(data.aws_iam_policy_document.machine), [data.aws_iam_policy_document.minder, data.aws_iam_policy_document.deadline]) :
      [for statement in document.statement : statement.actions if contains(statement.resources, "*")]
      ])) == toset([
      "ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel", "cloudwatch:PutMetricData",
    ])
    error_message = "Something is allowed for every resource."
  }
  assert {
    condition = alltrue(flatten([
      for document in concat(values(data.aws_iam_policy_document.machine), [data.aws_iam_policy_document.minder, data.aws_iam_policy_document.deadline]) :
      [for statement in document.statement : [for action in statement.actions : !strcontains(action, "*")]]
    ]))
    error_message = "Actions are not named one by one."
  }
  assert {
    condition = {
      for role, document in data.aws_iam_policy_document.machine : role => toset(flatten([
        for statement in document.statement : statement.resources if contains(statement.actions, "s3:PutObject")
      ]))
    } == { coordinator = toset(["arn:aws:s3:::bucket/mine/*"]), worker = toset(["arn:aws:s3:::bucket/mine/runs/*"]) }
    error_message = "A role writes elsewhere than it has to."
  }
  assert {
    condition = alltrue([
      for role, document in data.aws_iam_policy_document.machine : toset(flatten([
        for statement in document.statement : statement.resources if contains(statement.actions, "s3:GetObject")
      ])) == toset(["arn:aws:s3:::bucket/mine/*", "arn:aws:s3:::bucket/bin/${var.binary_x86_64}"])
    ])
    error_message = "A role reads more than runs and the program."
  }
  assert {
    condition     = !contains(flatten([for statement in data.aws_iam_policy_document.machine["worker"].statement : statement.actions]), "s3:DeleteObject")
    error_message = "Workers delete."
  }
  assert {
    condition = alltrue([
      for role, document in data.aws_iam_policy_document.machine : flatten([
        for statement in document.statement : statement.resources if contains(statement.actions, "secretsmanager:GetSecretValue")
      ]) == [aws_secretsmanager_secret.this[role].arn]
    ])
    error_message = "A role reads another's secrets."
  }
  assert {
    condition     = flatten([for statement in data.aws_iam_policy_document.minder.statement : statement.resources if contains(statement.actions, "autoscaling:SetDesiredCapacity")]) == [aws_autoscaling_group.workers.arn]
    error_message = "The minder sets another group's capacity."
  }
  assert {
    condition     = aws_iam_role_policy.minder.role == aws_iam_role.machine["coordinator"].id
    error_message = "Workers set the group's capacity."
  }
}

run "workers_are_spot_machines_by_default" {
  assert {
    condition     = aws_autoscaling_group.workers.desired_capacity == 0 && aws_autoscaling_group.workers.min_size == 0 && aws_autoscaling_group.workers.max_size == 1
    error_message = "Machines run before there is a run."
  }
  assert {
    condition     = aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_base_capacity == 0 && aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 0 && aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].spot_allocation_strategy == "price-capacity-optimized"
    error_message = "They are not spot machines of the likeliest and cheapest kind."
  }
  assert {
    condition     = length(output.worker_types) >= 5 && alltrue([for type in output.worker_types : local.architecture[type] == "x86_64"])
    error_message = "With a program for x86 alone: several types, all of x86. ${join(" ", output.worker_types)}"
  }
  assert {
    condition     = local.coordinator_type == "t3.small" && keys(aws_launch_template.worker) == ["x86_64"]
    error_message = "The coordinator has another architecture than the program."
  }
}

run "of_both_architectures" {
  variables {
    binary_aarch64        = "2222222222222222222222222222222222222222222222222222222222222222"
    worker_instance_types = ["c5d.metal", "c7gd.16xlarge", "g4dn.metal", "im4gn.16xlarge", "is4gen.8xlarge", "m6idn.32xlarge"]
    workers               = 10
    on_demand_base        = 2
    on_demand_percent     = 25
  }

  assert {
    condition = {
      for override in aws_autoscaling_group.workers.mixed_instances_policy[0].launch_template[0].override :
      override.instance_type => override.launch_template_specification[0].launch_template_id == aws_launch_template.worker["aarch64"].id
      } == {
      "c5d.metal"      = false, "c7gd.16xlarge" = true, "g4dn.metal" = false, "im4gn.16xlarge" = true, "is4gen.8xlarge" = true,
      "m6idn.32xlarge" = false,
    }
    error_message = "A type has the launch template of the other architecture."
  }
  assert {
    condition     = aws_launch_template.worker["x86_64"].image_id != aws_launch_template.worker["aarch64"].image_id
    error_message = "Both architectures have the same image."
  }
  assert {
    condition     = strcontains(local.worker_told["aarch64"], "PROGRAM=s3://bucket/bin/2222") && strcontains(local.worker_told["x86_64"], "PROGRAM=s3://bucket/bin/1111") && strcontains(local.coordinator_told, "PROGRAM=s3://bucket/bin/2222")
    error_message = "A machine is given the other's program."
  }
  assert {
    condition     = local.coordinator_type == "t4g.small" && aws_instance.coordinator.tags["hatebeam-workers"] == "10" && aws_autoscaling_group.workers.max_size == 10
    error_message = "The coordinator is not what it should be, or does not know how many workers there are."
  }
  assert {
    condition     = aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_base_capacity == 2 && aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 25
    error_message = "The share that is not of spot machines is another."
  }
}

run "everything_stops" {
  variables {
    max_hours         = 3
    quiet_minutes     = 7
    blind_minutes     = 11
    idle_stop_minutes = 13
    lonely_minutes    = 17
  }

  assert {
    condition     = toset([for schedule in aws_scheduler_schedule.deadline : schedule.schedule_expression]) == toset(["at(${formatdate("YYYY-MM-DD'T'hh:mm:ss", output.deadline)})"]) && timecmp(output.deadline, timeadd(timestamp(), "2h")) > 0 && timecmp(output.deadline, timeadd(timestamp(), "3h1m")) < 0
    error_message = "The end is not three hours from now."
  }
  assert {
    condition = { for who, schedule in aws_scheduler_schedule.deadline : who => { arn = schedule.target[0].arn, input = jsondecode(schedule.target[0].input) } } == {
      workers = {
        arn   = "arn:aws:scheduler:::aws-sdk:autoscaling:updateAutoScalingGroup"
        input = { AutoScalingGroupName = "hatebeam-workers", MinSize = 0, MaxSize = 0, DesiredCapacity = 0 }
      }
      coordinator = {
        arn   = "arn:aws:scheduler:::aws-sdk:ec2:stopInstances"
        input = { InstanceIds = [aws_instance.coordinator.id] }
      }
    }
    error_message = "In the end something else happens."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.silence.treat_missing_data == "breaching" && aws_cloudwatch_metric_alarm.silence.evaluation_periods == 16 && toset(aws_cloudwatch_metric_alarm.silence.alarm_actions) == toset([aws_autoscaling_policy.none.arn]) && aws_autoscaling_policy.none.adjustment_type == "ExactCapacity" && aws_autoscaling_policy.none.scaling_adjustment == 0
    error_message = "Silence does not send the workers away."
  }
  # The alarm hears what the minder says.
  assert {
    condition     = alltrue([for line in ["GROUP=hatebeam-workers", "NAMESPACE=${aws_cloudwatch_metric_alarm.silence.namespace}", "METRIC=${aws_cloudwatch_metric_alarm.silence.metric_name}", "QUIET_MINUTES=7", "BLIND_MINUTES=11", "LONELY_MINUTES=17"] : strcontains(local.coordinator_told, "${line}\\n")])
    error_message = "The minder does not know what it has to."
  }
  assert {
    condition     = aws_autoscaling_group.workers.name == "hatebeam-workers" && strcontains(local.coordinator_told, "--idle-stop 13")
    error_message = "The coordinator does not stop when it is idle."
  }
}

run "money" {
  variables {
    budget_dollars             = 12.5
    coordinator_price_per_hour = 0.0168
  }

  assert {
    condition     = aws_budgets_budget.this.limit_amount == "12.50" && toset([for notification in aws_budgets_budget.this.notification : "${notification.threshold} ${notification.notification_type}"]) == toset(["50 ACTUAL", "80 ACTUAL", "100 ACTUAL", "100 FORECASTED"])
    error_message = "The budget is another."
  }
  assert {
    condition     = alltrue([for notification in aws_budgets_budget.this.notification : notification.subscriber_email_addresses == toset(["me@example.org"])])
    error_message = "Nobody is written to."
  }
  assert {
    condition     = strcontains(local.coordinator_told, "--price-per-hour 0.0168\\n")
    error_message = "The coordinator does not know what it costs."
  }
}
