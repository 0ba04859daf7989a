# Security groups. They need no rules for DNS and time servers, which are inside the VPC and not filtered.

locals {
  coordinator_port = 7800
  worker_port      = 7801
  dashboard_port   = 7880
  # The workers on a machine with up to eight NUMA nodes have consecutive ports.
  last_worker_port    = local.worker_port + (var.worker_per_numa_node ? 7 : 0)
  worker_metrics_port = 9101

  from_operator = {
    for pair in setproduct(var.operator_cidrs, [local.coordinator_port, local.dashboard_port]) :
    "${pair[0]}-${pair[1]}" => { cidr = pair[0], port = pair[1] }
  }
}

resource "aws_security_group" "coordinator" {
  name_prefix = "${var.name}-coordinator-"
  description = "Coordinator of ${var.name}"
  vpc_id      = local.vpc_id

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_security_group" "worker" {
  name_prefix = "${var.name}-worker-"
  description = "Workers of ${var.name}"
  vpc_id      = local.vpc_id

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "coordinator_from_operator" {
  for_each = local.from_operator

  security_group_id = aws_security_group.coordinator.id
  description       = "Operator"
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
  cidr_ipv4         = each.value.cidr
}

resource "aws_vpc_security_group_ingress_rule" "coordinator_from_workers" {
  security_group_id            = aws_security_group.coordinator.id
  description                  = "Workers connect to the coordinator"
  ip_protocol                  = "tcp"
  from_port                    = local.coordinator_port
  to_port                      = local.coordinator_port
  referenced_security_group_id = aws_security_group.worker.id
}

# The coordinator does not connect to workers; each worker opens a stream to the coordinator.
resource "aws_vpc_security_group_ingress_rule" "worker_from_workers" {
  security_group_id            = aws_security_group.worker.id
  description                  = "Workers exchange children"
  ip_protocol                  = "tcp"
  from_port                    = local.worker_port
  to_port                      = local.last_worker_port
  referenced_security_group_id = aws_security_group.worker.id
}

resource "aws_vpc_security_group_egress_rule" "https" {
  for_each = { coordinator = aws_security_group.coordinator.id, worker = aws_security_group.worker.id }

  security_group_id = each.value
  description       = "AWS: bucket, secrets, sessions, packages"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_vpc_security_group_egress_rule" "worker_to_coordinator" {
  security_group_id            = aws_security_group.worker.id
  description                  = "Workers connect to the coordinator"
  ip_protocol                  = "tcp"
  from_port                    = local.coordinator_port
  to_port                      = local.coordinator_port
  referenced_security_group_id = aws_security_group.coordinator.id
}

resource "aws_vpc_security_group_egress_rule" "worker_to_workers" {
  security_group_id            = aws_security_group.worker.id
  description                  = "Workers exchange children"
  ip_protocol                  = "tcp"
  from_port                    = local.worker_port
  to_port                      = local.last_worker_port
  referenced_security_group_id = aws_security_group.worker.id
}
