output "coordinator_instance_id" {
  description = "The coordinator's machine."
  value       = aws_instance.coordinator.id
}

output "worker_group" {
  description = "The auto scaling group of the workers."
  value       = aws_autoscaling_group.workers.name
}

output "worker_types" {
  description = "What workers may be: those of worker_instance_types for which there is a program."
  value       = local.worker_types
}

output "store" {
  description = "What hatebeam is told with --store."
  value       = local.store
}

output "deadline" {
  description = "When everything stops, unless `terraform apply` is said before."
  value       = local.deadline
}

output "next" {
  description = "What to type next: terraform output -raw next"
  value       = <<-EOT
    # 1. Certificates and a token. Within ${var.blind_minutes} minutes, or start the coordinator again (4).
    hatebeam certs --out tls
    %{for role, files in local.secret_files~}
    tar -C tls -cz ${join(" ", files)} |
      aws secretsmanager put-secret-value --region ${var.region} --secret-id ${aws_secretsmanager_secret.this[role].name} \
        --secret-binary fileb:///dev/stdin
    %{endfor~}

    # 2. Two tunnels, each in a terminal of its own (AWS's session-manager-plugin is needed).
    %{for port in [local.coordinator_port, local.dashboard_port]~}
    aws ssm start-session --region ${var.region} --target ${aws_instance.coordinator.id} \
      --document-name AWS-StartPortForwardingSession --parameters portNumber=${port},localPortNumber=${port}
    %{endfor~}
    # The dashboard: https://127.0.0.1:${local.dashboard_port}, with the token in tls/token.

    # 3. A search, and what it found.
    hatebeam submit --coordinator https://127.0.0.1:${local.coordinator_port} --tls tls --width 1M --max-cost 5 --watch
    hatebeam replays pull --best --store ${local.store} --s3-region ${var.region}

    # 4. The coordinator again, after it has stopped; and ${var.max_hours} hours more for all, from now on.
    aws ec2 start-instances --region ${var.region} --instance-ids ${aws_instance.coordinator.id}
    terraform apply

    # 5. Nothing left but the bucket, which ../bucket knows how to destroy.
    terraform destroy
    EOT
}
