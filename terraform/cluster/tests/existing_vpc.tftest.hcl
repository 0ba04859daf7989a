# Tests of a cluster in an existing network. They are in a separate file with a separate state, because a change of the
# network replaces machines.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  region        = "us-east-1"
  bucket        = "bucket"
  alert_email   = "me@example.org"
  binary_x86_64 = "1111111111111111111111111111111111111111111111111111111111111111"
}

run "uses_an_existing_vpc" {
  variables {
    vpc_id           = "vpc-1"
    subnet_ids       = ["subnet-1", "subnet-2"]
    public_addresses = false
  }

  assert {
    condition     = length(aws_vpc.this) + length(aws_subnet.public) + length(aws_internet_gateway.this) + length(aws_route_table.public) + length(aws_vpc_endpoint.s3) + length(aws_default_security_group.this) == 0
    error_message = "A new network is created although a VPC is named."
  }
  assert {
    condition     = aws_security_group.coordinator.vpc_id == "vpc-1" && aws_security_group.worker.vpc_id == "vpc-1"
    error_message = "Security groups are not in the named VPC."
  }
  assert {
    condition     = aws_instance.coordinator.subnet_id == "subnet-1" && toset(aws_autoscaling_group.workers.vpc_zone_identifier) == toset(["subnet-1", "subnet-2"])
    error_message = "Machines are not in the named subnets."
  }
  assert {
    condition     = !aws_instance.coordinator.associate_public_ip_address && aws_launch_template.worker["x86_64"].network_interfaces[0].associate_public_ip_address == "false"
    error_message = "Machines have public addresses although public_addresses is false."
  }
}

run "coordinator_can_have_a_fixed_address" {
  variables {
    vpc_id              = "vpc-1"
    subnet_ids          = ["subnet-1"]
    coordinator_address = "172.31.0.9"
  }

  assert {
    condition     = aws_instance.coordinator.private_ip == "172.31.0.9" && strcontains(local.variables["worker"], "HATEBEAM_COORDINATOR=https://172.31.0.9:7800\n")
    error_message = "The coordinator does not have the address, or the workers' settings do not contain it."
  }
}
