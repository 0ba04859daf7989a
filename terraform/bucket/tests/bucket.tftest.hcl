# Tests of the bucket with a mock provider, which creates nothing.

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

run "bucket_is_encrypted_and_requires_tls" {
  assert {
    condition     = aws_s3_bucket.this.bucket == "hatebeam-123456789012-us-east-1"
    error_message = "The default name does not contain the account and the region: ${aws_s3_bucket.this.bucket}"
  }
  assert {
    condition = [
      for rule in aws_s3_bucket_server_side_encryption_configuration.this.rule :
      rule.apply_server_side_encryption_by_default[0].sse_algorithm
    ] == ["AES256"]
    error_message = "The bucket is not encrypted."
  }
  assert {
    condition     = alltrue([for statement in data.aws_iam_policy_document.tls_only.statement : statement.effect == "Deny" && toset(statement.resources) == toset(["arn:aws:s3:::hatebeam-123456789012-us-east-1", "arn:aws:s3:::hatebeam-123456789012-us-east-1/*"])])
    error_message = "The policy does not deny access to the whole bucket."
  }
  assert {
    condition = {
      for statement in data.aws_iam_policy_document.tls_only.statement :
      one(statement.condition).variable => one(one(statement.condition).values)
    } == { "aws:SecureTransport" = "false", "s3:TlsVersion" = "1.2" }
    error_message = "Unencrypted connections or old TLS versions are not denied."
  }
}

run "only_frontiers_and_unfinished_uploads_expire" {
  assert {
    condition     = !aws_s3_bucket.this.force_destroy
    error_message = "By default `terraform destroy` deletes the replays."
  }
  assert {
    condition     = { for rule in aws_s3_bucket_lifecycle_configuration.this.rule : rule.id => rule.status } == { "unfinished-uploads" = "Enabled", old-versions = "Enabled", logs = "Enabled", frontiers = "Enabled" }
    error_message = "The bucket has other lifecycle rules."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].abort_incomplete_multipart_upload[0].days_after_initiation == 2
    error_message = "Unfinished uploads are not deleted after 2 days."
  }
  # Replays, manifests and reports are smaller than 1 MiB. Programs have another prefix.
  assert {
    condition = (
      aws_s3_bucket_lifecycle_configuration.this.rule[3].filter[0].and[0].prefix == "hatebeam/runs/" &&
      aws_s3_bucket_lifecycle_configuration.this.rule[3].filter[0].and[0].object_size_greater_than >= 1024 * 1024 &&
      aws_s3_bucket_lifecycle_configuration.this.rule[3].expiration[0].days == 30
    )
    error_message = "Objects other than frontiers expire, or frontiers do not expire after 30 days."
  }
}

run "keeps_old_versions_for_a_day" {
  assert {
    condition     = aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled" && aws_s3_bucket_lifecycle_configuration.this.rule[1].noncurrent_version_expiration[0].noncurrent_days == 1
    error_message = "The bucket keeps no versions, or keeps them for longer than a day."
  }
  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[2].filter[0].prefix == "logs/" && aws_s3_bucket_lifecycle_configuration.this.rule[2].expiration[0].days == 30
    error_message = "Logs are not deleted after 30 days."
  }
}

run "frontiers_can_be_kept" {
  variables {
    frontier_days = 0
    prefix        = "mine"
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[3].status == "Disabled"
    error_message = "Frontiers expire although frontier_days is 0."
  }
  assert {
    condition     = output.store == "s3://hatebeam-123456789012-us-east-1/mine"
    error_message = "The store is ${output.store}."
  }
}

run "force_destroy_is_passed_on" {
  variables {
    bucket        = "of-my-own"
    force_destroy = true
  }

  assert {
    condition     = aws_s3_bucket.this.force_destroy && aws_s3_bucket.this.bucket == "of-my-own"
    error_message = "force_destroy has no effect."
  }
}

run "invalid_values_are_refused" {
  command = plan

  variables {
    region        = "Frankfurt"
    bucket        = "-UPPER-"
    prefix        = "bin"
    frontier_days = 3
  }

  expect_failures = [var.region, var.bucket, var.prefix, var.frontier_days]
}
