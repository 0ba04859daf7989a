# What the bucket is like, by a provider that makes nothing.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
}

run "closed_and_encrypted" {
  assert {
    condition     = aws_s3_bucket.this.bucket == "hatebeam-123456789012-us-east-1"
    error_message = "Nobody else may have the bucket's name: ${aws_s3_bucket.this.bucket}"
  }
  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this.block_public_acls,
      aws_s3_bucket_public_access_block.this.block_public_policy,
      aws_s3_bucket_public_access_block.this.ignore_public_acls,
      aws_s3_bucket_public_access_block.this.restrict_public_buckets,
    ])
    error_message = "The public gets in."
  }
  assert {
    condition = [
      for rule in aws_s3_bucket_server_side_encryption_configuration.this.rule :
      rule.apply_server_side_encryption_by_default[0].sse_algorithm
    ] == ["AES256"]
    error_message = "It is not encrypted."
  }
  assert {
    condition     = aws_s3_bucket_ownership_controls.this.rule[0].object_ownership == "BucketOwnerEnforced"
    error_message = "Lists of access count."
  }
  assert {
    condition     = alltrue([for statement in data.aws_iam_policy_document.tls_only.statement : statement.effect == "Deny" && toset(statement.resources) == toset(["arn:aws:s3:::hatebeam-123456789012-us-east-1", "arn:aws:s3:::hatebeam-123456789012-us-east-1/*"])])
    error_message = "The policy does not deny, or not for all of the bucket."
  }
  assert {
    condition = {
      for statement in data.aws_iam_policy_document.tls_only.statement :
      one(statement.condition).variable => one(one(statement.condition).values)
    } == { "aws:SecureTransport" = "false", "s3:TlsVersion" = "1.2" }
    error_message = "What goes in the clear, or over old TLS, is not denied."
  }
}

run "keeps_what_is_in_it" {
  assert {
    condition     = !aws_s3_bucket.this.force_destroy
    error_message = "A bucket with replays in it must not be destroyed by default."
  }
  assert {
    condition     = { for rule in aws_s3_bucket_lifecycle_configuration.this.rule : rule.id => rule.status } == { "what-was-never-finished" = "Enabled", frontiers = "Enabled" }
    error_message = "There are other rules."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].abort_incomplete_multipart_upload[0].days_after_initiation == 2
    error_message = "What was never finished stays."
  }
  # Replays, manifests and reports are small, programs elsewhere.
  assert {
    condition = (
      aws_s3_bucket_lifecycle_configuration.this.rule[1].filter[0].and[0].prefix == "hatebeam/runs/" &&
      aws_s3_bucket_lifecycle_configuration.this.rule[1].filter[0].and[0].object_size_greater_than >= 1024 * 1024 &&
      aws_s3_bucket_lifecycle_configuration.this.rule[1].expiration[0].days == 30
    )
    error_message = "More than frontiers expires."
  }
}

run "frontiers_can_be_kept" {
  variables {
    frontier_days = 0
    prefix        = "mine"
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[1].status == "Disabled"
    error_message = "Frontiers expire though they are to be kept."
  }
  assert {
    condition     = output.store == "s3://hatebeam-123456789012-us-east-1/mine"
    error_message = "The store is called ${output.store}."
  }
}

run "goes_on_request" {
  variables {
    bucket        = "of-my-own"
    force_destroy = true
  }

  assert {
    condition     = aws_s3_bucket.this.force_destroy && aws_s3_bucket.this.bucket == "of-my-own"
    error_message = "force_destroy does nothing."
  }
}

run "refuses_what_makes_no_sense" {
  command = plan

  variables {
    region        = "Frankfurt"
    bucket        = "-UPPER-"
    prefix        = "bin"
    frontier_days = 3
  }

  expect_failures = [var.region, var.bucket, var.prefix, var.frontier_days]
}
