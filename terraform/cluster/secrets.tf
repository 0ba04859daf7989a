# Secrets for the certificates, the keys and the tokens. Terraform creates the secrets empty, and the operator fills them
# with the commands in the output `next`, so their contents are neither in Terraform's state nor in user data.

locals {
  # The watchdog uses the coordinator's own certificate. Workers have no token: their certificate admits them, and does
  # not permit to submit runs.
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
  # Deletes a secret immediately, which frees its name. `hatebeam certs` creates new contents in a second.
  recovery_window_in_days = 0
}
