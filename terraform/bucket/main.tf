# What stays when the machines are gone. It has a state of its own, because `terraform destroy` knows no exceptions:
# a bucket in the cluster's state would go with the cluster, or stop its destruction half-way.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}

locals {
  bucket = coalesce(var.bucket, "hatebeam-${data.aws_caller_identity.this.account_id}-${var.region}")
  arn    = "arn:${data.aws_partition.this.partition}:s3:::${local.bucket}"

  # S3's rules know prefixes and sizes, but not `runs/*/frontier/`. Frontiers are all that is large: replays,
  # manifests, lists of tables and reports have less than this. The frontiers of small runs stay, and cost cents.
  large_bytes = 2 * 1024 * 1024
}

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV_AWS_145:S3's own keys encrypt it; a key of one's own costs for itself and for each request, and hides wells that anybody can compute
  #checkov:skip=CKV_AWS_144:What is in it can be computed again; a second region would double its cost
  #checkov:skip=CKV_AWS_18:A log of accesses wants a bucket of its own; CloudTrail has who changed what
  #checkov:skip=CKV_AWS_21:Every depth writes a run's manifest over: versions would keep each of them, and what was deleted to save money. Writers are kept apart by conditional writes, which need no versions
  #checkov:skip=CKV2_AWS_62:Nobody waits for objects; the coordinator tells of events itself
  bucket        = local.bucket
  force_destroy = var.force_destroy
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

data "aws_iam_policy_document" "tls_only" {
  statement {
    sid       = "NothingInTheClear"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.arn, "${local.arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }

  statement {
    sid       = "NoOldTLS"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.arn, "${local.arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "NumericLessThan"
      variable = "s3:TlsVersion"
      values   = ["1.2"]
    }
  }
}

resource "aws_s3_bucket_policy" "tls_only" {
  bucket = aws_s3_bucket.this.id
  policy = data.aws_iam_policy_document.tls_only.json

  # S3 refuses two changes of a bucket's policies at once.
  depends_on = [aws_s3_bucket_public_access_block.this]
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    id     = "what-was-never-finished"
    status = "Enabled"

    filter {}

    # A worker that is killed while it uploads leaves parts, which are billed and which no listing shows.
    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }

  rule {
    id     = "frontiers"
    status = var.frontier_days > 0 ? "Enabled" : "Disabled"

    filter {
      and {
        prefix                   = "${var.prefix}/runs/"
        object_size_greater_than = local.large_bytes
      }
    }

    expiration {
      days = max(var.frontier_days, 1)
    }
  }
}
