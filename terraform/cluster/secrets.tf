# Secrets for the certificates, the keys and the tokens. Terraform creates empty secrets, which the operator fills with
# the commands in the output `next`. So neither Terraform's state nor user data contains the contents of the secrets.

locals {
  # The watchdog uses the coordinator's certificate. Workers have no token, because their certificate is sufficient; it
  # does not allow them to submit runs.
  secret_files = {
    coordinator = ["ca.pem", "coordinator.pem", "coordinator-key.pem", "token", "view-token"]
    worker      = ["ca.pem", "worker.pem", "worker-key.pem"]
  }
}

resource "aws_secretsmanager_secret" "this" {
  #checkov:skip=CKV_AWS_149:A customer-managed key costs a dollar a month and continues to exist for a week after its deletion; the roles already restrict who can read the secrets
  #checkov:skip=CKV2_AWS_57:`hatebeam certs --renew` and another upload renew them; a rotation function would need the private key of the CA
  for_each = local.secret_files

  name        = "${var.name}/${each.key}"
  description = "tar.gz of ${join(", ", each.value)} from `hatebeam certs`"
  # With 0 days, a deleted secret is removed immediately, so its name can be used again. `hatebeam certs` creates new
  # contents in a second.
  recovery_window_in_days = 0
}
