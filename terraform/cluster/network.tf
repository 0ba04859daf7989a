# A VPC with a public subnet in each zone, unless vpc_id names an existing VPC.

locals {
  makes_vpc = var.vpc_id == null
  zones = !local.makes_vpc ? [] : (
    length(var.availability_zones) > 0 ? var.availability_zones : slice(data.aws_availability_zones.this[0].names, 0, 1)
  )
  vpc_id     = local.makes_vpc ? aws_vpc.this[0].id : var.vpc_id
  subnet_ids = local.makes_vpc ? [for zone in local.zones : aws_subnet.public[zone].id] : var.subnet_ids
}

data "aws_availability_zones" "this" {
  count = local.makes_vpc ? 1 : 0

  state = "available"
  # This zone does not offer newer machine types.
  exclude_zone_ids = ["use1-az3"]
  # The filter excludes local and wavelength zones, which require an opt-in and offer other machine types.
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

resource "aws_vpc" "this" {
  #checkov:skip=CKV2_AWS_11:Flow logs are billed by volume, and workers exchange a lot of data; to have flow logs, use your own VPC with vpc_id
  count = local.makes_vpc ? 1 : 0

  cidr_block           = "10.77.0.0/16"
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

# Adopts the VPC's default security group, which no machine uses, and removes all of its rules.
resource "aws_default_security_group" "this" {
  count = local.makes_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id
}

resource "aws_internet_gateway" "this" {
  count = local.makes_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id
  tags   = { Name = var.name }
}

resource "aws_subnet" "public" {
  for_each = { for place, zone in local.zones : zone => place }

  vpc_id            = aws_vpc.this[0].id
  availability_zone = each.key
  # A subnet has 4,091 usable addresses.
  cidr_block = cidrsubnet(aws_vpc.this[0].cidr_block, 4, each.value)
  # The variable public_addresses determines whether machines get public addresses.
  map_public_ip_on_launch = false
  tags                    = { Name = "${var.name}-${each.key}" }
}

resource "aws_route_table" "public" {
  count = local.makes_vpc ? 1 : 0

  vpc_id = aws_vpc.this[0].id
  tags   = { Name = var.name }

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this[0].id
  }
}

resource "aws_route_table_association" "public" {
  for_each = aws_subnet.public

  subnet_id      = each.value.id
  route_table_id = aws_route_table.public[0].id
}

# Traffic to S3 uses this gateway endpoint, which is free, instead of the internet gateway.
resource "aws_vpc_endpoint" "s3" {
  count = local.makes_vpc ? 1 : 0

  vpc_id            = aws_vpc.this[0].id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.public[0].id]
  tags              = { Name = var.name }
}
