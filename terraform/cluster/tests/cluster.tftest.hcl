# Tests of the cluster's resources with a mock provider, which creates nothing.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region        = "us-east-1"
  bucket        = "bucket"
  alert_email   = "me@example.org"
  binary_x86_64 = "1111111111111111111111111111111111111111111111111111111111111111"
}

run "vpc_is_created_by_default" {
  assert {
    condition     = length(aws_vpc.this) == 1 && keys(aws_subnet.public) == ["us-east-1a"] && length(aws_vpc_endpoint.s3) == 1
    error_message = "By default there is not exactly one VPC with one subnet and one S3 endpoint."
  }
  assert {
    condition     = aws_instance.coordinator.subnet_id == aws_subnet.public["us-east-1a"].id && toset(aws_autoscaling_group.workers.vpc_zone_identifier) == toset([aws_subnet.public["us-east-1a"].id])
    error_message = "Machines are not in the subnet of the new VPC."
  }
}

run "each_named_zone_has_a_subnet" {
  variables {
    availability_zones = ["us-east-1c", "us-east-1b"]
  }

  assert {
    condition     = { for zone, subnet in aws_subnet.public : zone => subnet.cidr_block } == { us-east-1c = "10.77.0.0/20", us-east-1b = "10.77.16.0/20" }
    error_message = "There is not one subnet for each named zone."
  }
}

run "unreachable_from_outside" {
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.coordinator_from_operator) == 0
    error_message = "By default the coordinator accepts connections from outside."
  }
  # The other two rules admit only workers.
  assert {
    condition = alltrue([
      for rule in [aws_vpc_security_group_ingress_rule.coordinator_from_workers, aws_vpc_security_group_ingress_rule.worker_from_workers] :
      rule.cidr_ipv4 == null && rule.cidr_ipv6 == null && rule.from_port == rule.to_port && rule.referenced_security_group_id == aws_security_group.worker.id
    ])
    error_message = "Machines accept connections from clients other than workers."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.coordinator_from_workers.from_port == 7800 && aws_vpc_security_group_ingress_rule.worker_from_workers.from_port == 7801
    error_message = "Ports other than 7800 and 7801 are open."
  }
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_egress_rule.https : rule.from_port == 443 && rule.to_port == 443])
    error_message = "Machines can connect to ports other than 443."
  }
  assert {
    condition     = strcontains(local.options["coordinator"], "--dashboard 127.0.0.1:7880 ")
    error_message = "The dashboard listens on addresses other than loopback although operator_cidrs is empty."
  }
}

run "operator_networks_reach_the_coordinator" {
  variables {
    operator_cidrs = ["203.0.113.7/32", "198.51.100.0/24"]
  }

  assert {
    condition = toset([for rule in aws_vpc_security_group_ingress_rule.coordinator_from_operator : "${rule.cidr_ipv4} ${rule.from_port}-${rule.to_port}"]) == toset([
      "203.0.113.7/32 7800-7800", "203.0.113.7/32 7880-7880", "198.51.100.0/24 7800-7800", "198.51.100.0/24 7880-7880",
    ])
    error_message = "The rules do not match operator_cidrs and the two ports."
  }
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.coordinator_from_operator : rule.security_group_id == aws_security_group.coordinator.id])
    error_message = "Operators can reach machines other than the coordinator."
  }
  assert {
    condition     = strcontains(local.options["coordinator"], "--dashboard 0.0.0.0:7880 ")
    error_message = "The dashboard is not reachable for operators."
  }
}

run "machines_are_hardened" {
  assert {
    condition = alltrue([
      for options in concat(aws_instance.coordinator.metadata_options, aws_launch_template.worker["x86_64"].metadata_options) :
      options.http_tokens == "required" && options.http_put_response_hop_limit == 1
    ])
    error_message = "The metadata service answers requests without a token, or requests from containers."
  }
  assert {
    condition     = aws_instance.coordinator.root_block_device[0].encrypted && aws_launch_template.worker["x86_64"].block_device_mappings[0].ebs[0].encrypted == "true"
    error_message = "A disk is not encrypted."
  }
  assert {
    condition     = aws_instance.coordinator.instance_initiated_shutdown_behavior == "stop" && aws_launch_template.worker["x86_64"].instance_initiated_shutdown_behavior == "terminate"
    error_message = "Powering off does not stop the coordinator's machine, or does not terminate a worker's."
  }
}

run "machines_get_no_secrets_from_terraform" {
  assert {
    condition     = alltrue([for text in concat(values(local.user_data), [for settings in aws_s3_object.settings : settings.content]) : !can(regex("PRIVATE KEY|BEGIN CERTIFICATE|HATEBEAM_TOKEN|--token|AWS_SECRET|AKIA", text))])
    error_message = "User data or settings contain a secret."
  }
  assert {
    condition     = strcontains(local.files["coordinator"]["/etc/hatebeam/machine.env"].content, "SECRET=hatebeam/coordinator\n") && strcontains(local.files["worker-x86_64"]["/etc/hatebeam/machine.env"].content, "SECRET=hatebeam/worker\n")
    error_message = "The settings do not name the secret of the role."
  }
  assert {
    condition     = !contains(flatten(values(local.secret_files)), "ca-key.pem") && !contains(local.secret_files["worker"], "coordinator-key.pem")
    error_message = "A machine gets a key that it does not need."
  }
  assert {
    condition     = alltrue([for kind, files in local.files : !anytrue([for path in keys(files) : endswith(path, "-run.env")])])
    error_message = "The script update would overwrite the file that the script prepare writes."
  }
  assert {
    condition     = alltrue([for secret in aws_secretsmanager_secret.this : secret.recovery_window_in_days == 0])
    error_message = "Secrets are kept after `terraform destroy`."
  }
}

run "roles_have_minimal_permissions" {
  variables {
    prefix = "mine"
  }

  # Only these actions are allowed for all resources, because AWS cannot restrict them to a resource.
  assert {
    condition = toset(flatten([
      for document in concat(values(data.aws_iam_policy_document.machine), [data.aws_iam_policy_document.watchdog, data.aws_iam_policy_document.deadline]) :
      [for statement in document.statement : statement.actions if contains(statement.resources, "*")]
      ])) == toset([
      "ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel", "cloudwatch:PutMetricData", "ec2:DescribeSpotPriceHistory",
    ])
    error_message = "The actions that are allowed for all resources are not the expected ones."
  }
  assert {
    condition = alltrue(flatten([
      for document in concat(values(data.aws_iam_policy_document.machine), [data.aws_iam_policy_document.watchdog, data.aws_iam_policy_document.deadline]) :
      [for statement in document.statement : [for action in statement.actions : !strcontains(action, "*")]]
    ]))
    error_message = "An action contains a wildcard."
  }
  assert {
    condition = {
      for role, document in data.aws_iam_policy_document.machine : role => toset(flatten([
        for statement in document.statement : statement.resources if contains(statement.actions, "s3:PutObject")
      ]))
      } == {
      coordinator = toset(["arn:aws:s3:::bucket/mine/*", "arn:aws:s3:::bucket/logs/hatebeam/coordinator/*"])
      worker      = toset(["arn:aws:s3:::bucket/mine/runs/*/frontier/*", "arn:aws:s3:::bucket/logs/hatebeam/worker/*"])
    }
    error_message = "Workers can write more than wells and logs, or the coordinator more than runs and logs."
  }
  assert {
    condition = alltrue([
      for role, document in data.aws_iam_policy_document.machine : toset(flatten([
        for statement in document.statement : statement.resources if contains(statement.actions, "s3:GetObject")
      ])) == toset(["arn:aws:s3:::bucket/mine/*", "arn:aws:s3:::bucket/bin/${var.binary_x86_64}", "arn:aws:s3:::bucket/machines/hatebeam/${ { coordinator = "coordinator", worker = "worker-x86_64" }[role]}.json"])
    ])
    error_message = "A role can read objects other than runs, the program and its settings."
  }
  assert {
    condition     = !contains(flatten([for statement in data.aws_iam_policy_document.machine["worker"].statement : statement.actions]), "s3:DeleteObject")
    error_message = "Workers can delete objects."
  }
  assert {
    condition = alltrue([
      for role, document in data.aws_iam_policy_document.machine : flatten([
        for statement in document.statement : statement.resources if contains(statement.actions, "secretsmanager:GetSecretValue")
      ]) == [aws_secretsmanager_secret.this[role].arn]
    ])
    error_message = "A role can read the secret of the other role."
  }
  assert {
    condition     = flatten([for statement in data.aws_iam_policy_document.watchdog.statement : statement.resources if contains(statement.actions, "autoscaling:SetDesiredCapacity")]) == [aws_autoscaling_group.workers.arn]
    error_message = "The watchdog can set the capacity of another group."
  }
  assert {
    condition     = aws_iam_role_policy.watchdog.role == aws_iam_role.machine["coordinator"].id
    error_message = "The watchdog's policy is not attached to the coordinator's role."
  }
}

run "workers_are_spot_machines_by_default" {
  assert {
    condition     = aws_autoscaling_group.workers.desired_capacity == 0 && aws_autoscaling_group.workers.min_size == 0 && aws_autoscaling_group.workers.max_size == 1
    error_message = "The group is not empty initially, or its maximum size is not 1."
  }
  assert {
    condition     = aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_base_capacity == 0 && aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 0 && aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].spot_allocation_strategy == "price-capacity-optimized"
    error_message = "Workers are not price-capacity-optimized spot machines."
  }
  assert {
    condition     = !aws_autoscaling_group.workers.capacity_rebalance
    error_message = "The group ends machines before AWS reclaims them."
  }
  assert {
    condition     = length(output.worker_types) >= 5 && alltrue([for type in output.worker_types : local.architecture[type] == "x86_64"])
    error_message = "With a program for x86 only, the types are not several x86 types: ${join(" ", output.worker_types)}"
  }
  assert {
    condition     = local.coordinator_type == "t3.small" && keys(aws_launch_template.worker) == ["x86_64"]
    error_message = "The coordinator or the launch templates do not match the program's architecture."
  }
}

run "machines_run_the_program_of_their_architecture" {
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
    condition     = alltrue([for kind, sum in { worker-aarch64 = "2222", worker-x86_64 = "1111", coordinator = "2222" } : strcontains(local.files[kind]["/etc/hatebeam/machine.env"].content, "PROGRAM=s3://bucket/bin/${sum}")])
    error_message = "A machine gets the program of the other architecture."
  }
  assert {
    condition     = local.coordinator_type == "t4g.small" && strcontains(local.files["coordinator"]["/etc/hatebeam/machine.env"].content, "WORKERS=10\n") && aws_autoscaling_group.workers.max_size == 10
    error_message = "The coordinator's type, its number of workers or the size of the group is wrong."
  }
  assert {
    condition     = aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_base_capacity == 2 && aws_autoscaling_group.workers.mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 25
    error_message = "The numbers of on-demand workers do not match the variables."
  }
}

run "stop_settings_are_passed_on" {
  variables {
    max_hours         = 3
    quiet_minutes     = 7
    blind_minutes     = 11
    idle_stop_minutes = 13
    lonely_minutes    = 17
    stuck_minutes     = 19
  }

  assert {
    condition     = toset([for schedule in aws_scheduler_schedule.deadline : schedule.schedule_expression]) == toset(["at(${formatdate("YYYY-MM-DD'T'hh:mm:ss", output.deadline)})"]) && timecmp(output.deadline, timeadd(timestamp(), "2h")) > 0 && timecmp(output.deadline, timeadd(timestamp(), "3h1m")) < 0
    error_message = "The deadline is not three hours from now."
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
    error_message = "The deadline does not stop exactly the workers and the coordinator."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.heartbeat.treat_missing_data == "breaching" && aws_cloudwatch_metric_alarm.heartbeat.evaluation_periods == 16 && toset(aws_cloudwatch_metric_alarm.heartbeat.alarm_actions) == toset([aws_autoscaling_policy.no_workers.arn, aws_sns_topic.alerts.arn]) && aws_autoscaling_policy.no_workers.adjustment_type == "ExactCapacity" && aws_autoscaling_policy.no_workers.scaling_adjustment == 0
    error_message = "Missing heartbeats do not stop the workers, or send no mail."
  }
  # The watchdog must send the metric that the alarm watches.
  assert {
    condition     = alltrue([for line in ["GROUP=hatebeam-workers", "NAMESPACE=${aws_cloudwatch_metric_alarm.heartbeat.namespace}", "METRIC=${aws_cloudwatch_metric_alarm.heartbeat.metric_name}", "QUIET_MINUTES=7", "BLIND_MINUTES=11", "LONELY_MINUTES=17", "STUCK_MINUTES=19", "TOPIC=${aws_sns_topic.alerts.arn}"] : strcontains(local.files["coordinator"]["/etc/hatebeam/machine.env"].content, "${line}\n")])
    error_message = "The watchdog's settings do not match."
  }
  assert {
    condition     = aws_autoscaling_group.workers.name == "hatebeam-workers" && strcontains(local.options["coordinator"], "--idle-stop 13 ")
    error_message = "The group's name or the coordinator's --idle-stop is wrong."
  }
}

run "budget_and_price_are_passed_on" {
  variables {
    budget_dollars             = 12.5
    coordinator_price_per_hour = 0.0168
  }

  assert {
    condition     = aws_budgets_budget.this.limit_amount == "12.50" && toset([for notification in aws_budgets_budget.this.notification : "${notification.threshold} ${notification.notification_type}"]) == toset(["50 ACTUAL", "80 ACTUAL", "100 ACTUAL", "100 FORECASTED"])
    error_message = "The budget or its notifications are wrong."
  }
  assert {
    condition     = alltrue([for notification in aws_budgets_budget.this.notification : notification.subscriber_email_addresses == toset(["me@example.org"])])
    error_message = "A notification does not go to alert_email."
  }
  assert {
    condition     = endswith(local.options["coordinator"], " --price-per-hour 0.0168")
    error_message = "The coordinator is started without --price-per-hour."
  }
}

run "alerts_reach_the_operator" {
  variables {
    webhook             = "https://example.org/hook"
    event_command       = "logger $HATEBEAM_EVENT"
    coordinator_options = ["--lost-after=10"]
    min_workers         = 2
    workers             = 3
  }

  assert {
    condition     = aws_sns_topic_subscription.alerts.endpoint == "me@example.org" && aws_sns_topic_subscription.alerts.topic_arn == aws_sns_topic.alerts.arn
    error_message = "alert_email does not receive the alerts."
  }
  assert {
    condition     = strcontains(nonsensitive(local.files["coordinator"]["/etc/hatebeam/coordinator.env"].content), "HATEBEAM_WEBHOOK=https://example.org/hook\nOPTIONS=")
    error_message = "The coordinator has no webhook."
  }
  assert {
    condition     = alltrue([for kind, settings in aws_s3_object.settings : strcontains(nonsensitive(settings.content), "example.org") == (kind == "coordinator")])
    error_message = "A machine other than the coordinator's gets the webhook."
  }
  assert {
    condition     = strcontains(local.options["coordinator"], " --on-event /usr/local/lib/hatebeam/on-event ") && local.files["coordinator"]["/etc/hatebeam/event-command"].content == "logger $HATEBEAM_EVENT\n"
    error_message = "An event does not run the command."
  }
  assert {
    condition     = strcontains(local.options["coordinator"], "--min-workers 2 ") && endswith(local.options["coordinator"], " --lost-after=10")
    error_message = "Options of the coordinator are missing."
  }
  assert {
    condition     = flatten([for statement in data.aws_iam_policy_document.watchdog.statement : statement.resources if contains(statement.actions, "sns:Publish")]) == [aws_sns_topic.alerts.arn]
    error_message = "The coordinator can publish to another topic."
  }
}

# State before the changes of settings in the test `changes_replace_no_machine`.
run "before_a_change" {
  assert {
    condition     = aws_instance.coordinator.private_ip == "10.77.0.10"
    error_message = "The coordinator has no fixed address."
  }
}

run "changes_replace_no_machine" {
  variables {
    binary_x86_64              = "3333333333333333333333333333333333333333333333333333333333333333"
    workers                    = 9
    operator_cidrs             = ["203.0.113.7/32"]
    quiet_minutes              = 9
    idle_stop_minutes          = 90
    blind_minutes              = 45
    lonely_minutes             = 30
    stuck_minutes              = 90
    coordinator_price_per_hour = 0.5
    webhook                    = "https://example.org/hook"
    event_command              = "true"
    coordinator_options        = ["--lost-after=10"]
  }

  assert {
    condition     = aws_instance.coordinator.id == run.before_a_change.coordinator_instance_id
    error_message = "The coordinator was replaced."
  }
  assert {
    condition     = aws_instance.coordinator.user_data_base64 == run.before_a_change.user_data["coordinator"] && aws_launch_template.worker["x86_64"].user_data == run.before_a_change.user_data["worker-x86_64"]
    error_message = "A setting changes the user data, so new workers differ from running ones."
  }
}

run "names_no_region_but_that_of_the_bucket" {
  command = plan
  variables {
    region = "eu-central-1"
  }
  expect_failures = [data.aws_s3_bucket.this]
}

run "one_worker_on_each_machine_by_default" {
  assert {
    condition     = !contains(keys(local.files["worker-x86_64"]), "/etc/systemd/system/hatebeam-worker@.service") && strcontains(local.files["worker-x86_64"]["/etc/hatebeam/machine.env"].content, "PER_NUMA_NODE=false\n")
    error_message = "A machine runs more than one worker."
  }
}

run "one_worker_on_each_numa_node" {
  variables {
    worker_per_numa_node = true
  }

  assert {
    condition     = strcontains(local.files["worker-x86_64"]["/etc/hatebeam/machine.env"].content, "PER_NUMA_NODE=true\nPORTS=\"7801 9101\"\n")
    error_message = "The machine's settings do not request one worker for each node."
  }
  assert {
    condition = alltrue([for line in [
      "EnvironmentFile=/etc/hatebeam/worker-%i.env", "StateDirectory=hatebeam/worker-%i", "WorkingDirectory=/var/lib/hatebeam/worker-%i",
      "Environment=TMPDIR=/var/lib/hatebeam/worker-%i", "ExecStart=/usr/local/bin/hatebeam worker --dir /var/lib/hatebeam/worker-%i/wells $OPTIONS",
    ] : strcontains(local.files["worker-x86_64"]["/etc/systemd/system/hatebeam-worker@.service"].content, "${line}\n")])
    error_message = "The workers of a machine share files."
  }
  assert {
    condition = alltrue([
      for rule in [aws_vpc_security_group_ingress_rule.worker_from_workers, aws_vpc_security_group_egress_rule.worker_to_workers] :
      rule.from_port == 7801 && rule.to_port == 7808
    ])
    error_message = "Workers cannot reach the ports of all workers of a machine."
  }
  assert {
    condition     = !contains(keys(local.files["coordinator"]), "/etc/systemd/system/hatebeam-worker@.service")
    error_message = "The coordinator's machine has a worker's service."
  }
}
