# Tests with the variables file that the commands of ../bucket write. A Rust test in tests/deploy runs these tests.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "plans_a_first_try" {
  command = plan

  assert {
    condition     = length(output.worker_types) == 3 && alltrue([for type in output.worker_types : endswith(type, ".large")])
    error_message = "The first try is not on small machines: ${join(" ", output.worker_types)}"
  }
  assert {
    condition     = var.alert_email == "YOU@EXAMPLE.ORG" && var.workers == 1
    error_message = "The variables are not the variables in the file."
  }
}

run "refuses_another_region" {
  command = plan
  variables {
    region = "eu-central-1"
  }
  expect_failures = [data.aws_s3_bucket.this]
}
