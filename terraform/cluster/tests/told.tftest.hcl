# What machines, and the operator, are told, with everything said that can be said. The project's own tests read it out
# of this run, and have the program and shellcheck look at it.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "told" {
  variables {
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
    condition     = alltrue([for told in concat([local.coordinator_told], values(local.worker_told)) : startswith(told, "#cloud-config\n") && yamldecode(told).runcmd == [["/usr/local/lib/hatebeam/boot"]]])
    error_message = "cloud-init does not understand what machines are told."
  }
}
