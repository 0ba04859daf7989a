# Renders the user data and the outputs, with optional variables and names of maximum length. The Rust tests in
# tests/deploy read these results and compare them with the program.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "user_data" {
  variables {
    region                     = "us-east-1"
    bucket                     = "bucket"
    alert_email                = "me@example.org"
    binary_x86_64              = "1111111111111111111111111111111111111111111111111111111111111111"
    binary_aarch64             = "2222222222222222222222222222222222222222222222222222222222222222"
    name                       = "a23456789012345678901234"
    prefix                     = "0123456789012345678901234567890123456789012345678901234567890123"
    operator_cidrs             = ["203.0.113.7/32"]
    coordinator_price_per_hour = 0.0168
  }

  assert {
    condition     = alltrue([for user_data in values(local.user_data) : startswith(user_data, "#cloud-config\n") && yamldecode(user_data).runcmd[1] == ["/usr/local/lib/hatebeam/boot"]])
    error_message = "The user data is not a valid cloud-config."
  }
}
