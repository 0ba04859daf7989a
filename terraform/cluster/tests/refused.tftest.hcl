# Tests that the validations of variables and resources refuse invalid values.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region        = "us-east-1"
  bucket        = "bucket"
  alert_email   = "me@example.org"
  binary_x86_64 = "1111111111111111111111111111111111111111111111111111111111111111"
}

run "operator_network_of_all_addresses" {
  command = plan
  variables {
    operator_cidrs = ["0.0.0.0/0"]
  }
  expect_failures = [var.operator_cidrs]
}

run "operator_network_of_half_the_addresses" {
  command = plan
  variables {
    operator_cidrs = ["203.0.113.7/32", "128.0.0.0/1"]
  }
  expect_failures = [var.operator_cidrs]
}

run "no_program" {
  command = plan
  variables {
    binary_x86_64 = ""
  }
  expect_failures = [var.binary_aarch64]
}

run "no_program_for_the_coordinator" {
  command = plan
  variables {
    coordinator_instance_type = "t4g.small"
  }
  expect_failures = [aws_instance.coordinator]
}

run "no_program_for_any_worker" {
  command = plan
  variables {
    worker_instance_types = ["c7gd.16xlarge"]
  }
  expect_failures = [aws_autoscaling_group.workers]
}

run "vpc_without_subnets" {
  command = plan
  variables {
    vpc_id = "vpc-1"
  }
  expect_failures = [var.vpc_id]
}

run "more_on_demand_workers_than_workers" {
  command = plan
  variables {
    on_demand_base = 2
  }
  expect_failures = [var.on_demand_base]
}

run "more_workers_to_wait_for_than_workers" {
  command = plan
  variables {
    min_workers = 2
  }
  expect_failures = [var.min_workers]
}

run "coordinator_stops_before_workers" {
  command = plan
  variables {
    quiet_minutes     = 60
    idle_stop_minutes = 30
  }
  expect_failures = [var.idle_stop_minutes]
}

run "invalid_values_of_other_variables" {
  command = plan
  variables {
    name                       = "Über"
    region                     = "here"
    prefix                     = "a/../b"
    alert_email                = "nobody"
    binary_x86_64              = "not a sum"
    workers                    = 0.5
    on_demand_percent          = 101
    worker_instance_types      = ["c5d.metal", "c5d.metal"]
    quiet_minutes              = 0
    blind_minutes              = 1
    lonely_minutes             = 1
    stuck_minutes              = 1
    coordinator_address        = "here"
    coordinator_options        = ["--listen 0.0.0.0:1"]
    webhook                    = "example.org"
    max_hours                  = 1000
    budget_dollars             = 0
    coordinator_price_per_hour = -1
    image_ids                  = { arm64 = "ami-1" }
  }
  expect_failures = [
    var.name, var.region, var.prefix, var.alert_email, var.binary_x86_64, var.workers,
    var.on_demand_percent, var.worker_instance_types, var.quiet_minutes, var.blind_minutes, var.lonely_minutes,
    var.stuck_minutes, var.coordinator_address, var.coordinator_options, var.webhook,
    var.max_hours, var.budget_dollars, var.coordinator_price_per_hour, var.image_ids,
  ]
}
