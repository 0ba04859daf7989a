# What machines may do. Each has a role of its own.

data "aws_partition" "this" {}
data "aws_caller_identity" "this" {}

locals {
  bucket_arn = "arn:${data.aws_partition.this.partition}:s3:::${var.bucket}"
  # Workers write frontiers, and nothing else; programs they only read.
  writable   = { coordinator = "${var.prefix}/*", worker = "${var.prefix}/runs/*" }
  deletes    = { coordinator = ["s3:DeleteObject"], worker = [] }
  namespace  = "hatebeam/${var.name}"
  heartbeat  = "Answered"
  binaries   = { for architecture, sum in { x86_64 = var.binary_x86_64, aarch64 = var.binary_aarch64 } : architecture => sum if sum != "" }
  binary_key = { for architecture, sum in local.binaries : architecture => "bin/${sum}" }
}

data "aws_iam_policy_document" "is_machine" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "machine" {
  for_each = local.secret_files

  name_prefix        = "${var.name}-${each.key}-"
  description        = "The ${each.key} of ${var.name}"
  assume_role_policy = data.aws_iam_policy_document.is_machine.json
}

resource "aws_iam_instance_profile" "machine" {
  for_each = local.secret_files

  name_prefix = "${var.name}-${each.key}-"
  role        = aws_iam_role.machine[each.key].name
}

data "aws_iam_policy_document" "machine" {
  #checkov:skip=CKV_AWS_111:Session Manager's actions take no resource
  #checkov:skip=CKV_AWS_356:Session Manager's actions take no resource
  for_each = local.secret_files

  # Names alone, and those of all: without this S3 says "forbidden" of objects that are not there, and with a condition
  # on their prefix too. hatebeam must be told that they are not.
  statement {
    sid       = "ListNames"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]
  }

  statement {
    sid       = "ReadRuns"
    actions   = ["s3:GetObject"]
    resources = ["${local.bucket_arn}/${var.prefix}/*"]
  }

  statement {
    sid = "WriteRuns"
    actions = concat(
      ["s3:PutObject", "s3:AbortMultipartUpload"], local.deletes[each.key]
    )
    resources = ["${local.bucket_arn}/${local.writable[each.key]}"]
  }

  statement {
    sid       = "ReadProgram"
    actions   = ["s3:GetObject"]
    resources = [for key in values(local.binary_key) : "${local.bucket_arn}/${key}"]
  }

  statement {
    sid       = "ReadOwnSecret"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = [aws_secretsmanager_secret.this[each.key].arn]
  }

  # What Session Manager's agent needs, and not what AWS's own policy for it gives besides: that one lets it read
  # every parameter of the account. These actions take no resource.
  statement {
    sid = "Sessions"
    actions = [
      "ssm:UpdateInstanceInformation",
      "ssmmessages:CreateControlChannel",
      "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel",
      "ssmmessages:OpenDataChannel",
    ]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "machine" {
  for_each = local.secret_files

  name   = "work"
  role   = aws_iam_role.machine[each.key].id
  policy = data.aws_iam_policy_document.machine[each.key].json
}

data "aws_iam_policy_document" "minder" {
  #checkov:skip=CKV_AWS_356:PutMetricData takes no resource; the condition names its namespace
  statement {
    sid       = "HowManyWorkers"
    actions   = ["autoscaling:SetDesiredCapacity"]
    resources = [aws_autoscaling_group.workers.arn]
  }

  statement {
    sid       = "SayThatAllIsWell"
    actions   = ["cloudwatch:PutMetricData"]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "cloudwatch:namespace"
      values   = [local.namespace]
    }
  }
}

# Apart from the other one, as the group hangs on the coordinator's address.
resource "aws_iam_role_policy" "minder" {
  name   = "minder"
  role   = aws_iam_role.machine["coordinator"].id
  policy = data.aws_iam_policy_document.minder.json
}
