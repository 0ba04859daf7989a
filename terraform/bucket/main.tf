# The bucket, which remains when the machines are destroyed. It has a separate Terraform state, because `terraform
# destroy` cannot skip a resource. In the cluster's state, the bucket would be destroyed with the cluster, or the
# destruction would fail halfway.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}

locals {
  bucket = coalesce(var.bucket, "hatebeam-${data.aws_caller_identity.this.account_id}-${var.region}")
  arn    = "arn:${data.aws_partition.this.partition}:s3:::${local.bucket}"

  # Objects above this size expire. The lifecycle rules of S3 match prefixes and sizes, but not patterns such as
  # `runs/*/frontier/`. Only frontiers, the stored wells of a depth, exceed this size; replays, manifests, lists of
  # tables and reports are smaller. Frontiers of small runs are also smaller. They are not deleted, and storing them
  # costs cents.
  large_bytes = 2 * 1024 * 1024
}

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV_AWS_145:S3's own keys encrypt the bucket; a customer-managed key has a monthly price and a price per request, and would protect wells that anyone can compute
  #checkov:skip=CKV_AWS_144:Everything in the bucket can be computed again; replication to a second region would double its cost
  #checkov:skip=CKV_AWS_18:An access log needs a second bucket; CloudTrail already records who changed the bucket's configuration
  #checkov:skip=CKV2_AWS_62:No program waits for bucket notifications; the coordinator sends events itself
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
    sid       = "DenyUnencryptedConnections"
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
    sid       = "DenyOldTLS"
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

  # S3 refuses concurrent changes to the policies of a bucket.
  depends_on = [aws_s3_bucket_public_access_block.this]
}

# Overwritten and deleted objects are kept for a day, in case a program or a person makes a mistake. A run overwrites
# its manifest after each depth; the versions of a day take about 20 MB.
resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id
  # S3 accepts rules about old versions only after versioning is enabled.
  depends_on = [aws_s3_bucket_versioning.this]

  rule {
    id     = "unfinished-uploads"
    status = "Enabled"

    filter {}

    # A worker that is killed during an upload leaves parts in the bucket. They are billed but do not appear in
    # listings.
    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }

  rule {
    id     = "old-versions"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 1
    }
    expiration {
      expired_object_delete_marker = true
    }
  }

  rule {
    id     = "logs"
    status = "Enabled"

    filter {
      prefix = "logs/"
    }

    expiration {
      days = 30
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
