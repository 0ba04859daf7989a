# Where certificates, keys and the token lie. Only the places are made here: what is put into them comes from the
# operator's machine (the output `next` has the commands), so that it is neither in Terraform's state nor in user data.

locals {
  # The coordinator's machine also asks the coordinator for its status, as a client.
  secret_files = {
    coordinator = ["ca.pem", "coordinator.pem", "coordinator-key.pem", "client.pem", "client-key.pem", "token"]
    worker      = ["ca.pem", "worker.pem", "worker-key.pem", "token"]
  }
}

resource "aws_secretsmanager_secret" "this" {
  #checkov:skip=CKV_AWS_149:A key of one's own costs more a month than the machines an hour, and outlives them by a week; who may read is settled by the roles
  #checkov:skip=CKV2_AWS_57:`hatebeam certs --renew` and the same command again renew them; a function that could do so would need the CA's key
  for_each = local.secret_files

  name        = "${var.name}/${each.key}"
  description = "tar.gz of ${join(", ", each.value)}, as `hatebeam certs` makes them"
  # They can be made again in a second: nothing is left behind, and the name is free at once.
  recovery_window_in_days = 0
}
