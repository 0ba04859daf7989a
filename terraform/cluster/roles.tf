# Permissions of the machines. The coordinator and the workers have separate roles.

data "aws_partition" "this" {}
data "aws_caller_identity" "this" {}

# The bucket must be in the configured region. In another region, Terraform would find no machines and would remove all
# of them from its state.
data "aws_s3_bucket" "this" {
  bucket = var.bucket

  lifecycle {
    postcondition {
      condition     = self.region == var.region
      error_message = "The bucket ${var.bucket} is in the region ${self.region}, not in ${var.region}: set region to the bucket's region."
    }
  }
}

locals {
  # `terraform destroy` ignores the postcondition above, but not an expression that fails. This expression fails by
  # parsing the error message as a number.
  is_region  = data.aws_s3_bucket.this.region == var.region ? 1 : tonumber("The bucket ${var.bucket} is in the region ${data.aws_s3_bucket.this.region}, not in ${var.region}: set region to the bucket's region.")
  bucket_arn = local.is_region == 1 ? data.aws_s3_bucket.this.arn : null
  # Objects of runs that each role can write. Workers can write only the wells of depths.
  writable   = { coordinator = "${var.prefix}/*", worker = "${var.prefix}/runs/*/frontier/*" }
  deletes    = { coordinator = ["s3:DeleteObject"], worker = [] }
  namespace  = "hatebeam/${var.name}"
  heartbeat  = "Heartbeat"
  binaries   = { for architecture, sum in { x86_64 = var.binary_x86_64, aarch64 = var.binary_aarch64 } : architecture => sum if sum != "" }
  binary_key = { for architecture, sum in local.binaries : architecture => "bin/${sum}" }
}

data "aws_iam_policy_document" "ec2_trust" {
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
  description        = "Machine of the ${each.key} of ${var.name}"
  assume_role_policy = data.aws_iam_policy_document.ec2_trust.json
}

resource "aws_iam_instance_profile" "machine" {
  for_each = local.secret_files

  name_prefix = "${var.name}-${each.key}-"
  role        = aws_iam_role.machine[each.key].name
}

data "aws_iam_policy_document" "machine" {
  #checkov:skip=CKV_AWS_111:The actions of Session Manager cannot be restricted to a resource
  #checkov:skip=CKV_AWS_356:The actions of Session Manager and spot prices cannot be restricted to a resource
  for_each = local.secret_files

  # This permission lists the names of all objects in the bucket. Without it, or with a condition on the prefix, S3
  # answers "forbidden" instead of "not found" for a missing object, and hatebeam must distinguish the two cases.
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
    sid       = "ReadProgramAndSettings"
    actions   = ["s3:GetObject"]
    resources = [for key in concat(values(local.binary_key), local.settings_keys[each.key]) : "${local.bucket_arn}/${key}"]
  }

  statement {
    sid       = "WriteLogs"
    actions   = ["s3:PutObject"]
    resources = ["${local.bucket_arn}/${local.logs[each.key]}/*"]
  }

  # AWS cannot restrict this action to a resource.
  statement {
    sid       = "ReadSpotPrices"
    actions   = ["ec2:DescribeSpotPriceHistory"]
    resources = ["*"]
  }

  statement {
    sid       = "ReadOwnSecret"
    actions   = ["secretsmanager:GetSecretValue"]
    resources = [aws_secretsmanager_secret.this[each.key].arn]
  }

  # Session Manager's agent requires these permissions, which AWS cannot restrict to a resource. The managed policy for
  # the agent would also permit reading all parameters of the account.
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

data "aws_iam_policy_document" "watchdog" {
  #checkov:skip=CKV_AWS_356:PutMetricData cannot be restricted to a resource; the condition restricts its namespace
  statement {
    sid       = "SetNumberOfWorkers"
    actions   = ["autoscaling:SetDesiredCapacity"]
    resources = [aws_autoscaling_group.workers.arn]
  }

  statement {
    sid       = "SendMail"
    actions   = ["sns:Publish"]
    resources = [aws_sns_topic.alerts.arn]
  }

  statement {
    sid       = "SendHeartbeat"
    actions   = ["cloudwatch:PutMetricData"]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "cloudwatch:namespace"
      values   = [local.namespace]
    }
  }
}

# The watchdog's policy is separate from the policy above, because it contains the ARN of the group: the group depends
# on the coordinator's address, and the coordinator depends on the policy above.
resource "aws_iam_role_policy" "watchdog" {
  name   = "watchdog"
  role   = aws_iam_role.machine["coordinator"].id
  policy = data.aws_iam_policy_document.watchdog.json
}
