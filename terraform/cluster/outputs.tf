output "coordinator_instance_id" {
  description = "Instance ID of the coordinator's machine."
  value       = aws_instance.coordinator.id
}

output "worker_group" {
  description = "Name of the workers' Auto Scaling group."
  value       = aws_autoscaling_group.workers.name
}

output "worker_types" {
  description = "Machine types of the workers: the types in worker_instance_types for which there is a program."
  value       = local.worker_types
}

output "store" {
  description = "Value of hatebeam's option --store."
  value       = local.store
}

output "deadline" {
  description = "Time at which all machines stop, unless `terraform apply` extends it."
  value       = local.deadline
}

output "next" {
  description = "Commands for the next steps. Print them with: terraform output -raw next"
  value       = <<-EOT
    # Run these commands in this folder. AWS has sent a mail to ${var.alert_email}: confirm the subscription to get
    # alerts.

    # 1. Create the certificates and the tokens, and upload them within ${var.blind_minutes} minutes. Otherwise, the machine
    #    is stopped, and you must start it again with step 5.
    hatebeam certs --out tls
    %{for role, files in local.secret_files~}
    tar -C tls -cz ${join(" ", files)} |
      aws secretsmanager put-secret-value --region ${var.region} --secret-id ${aws_secretsmanager_secret.this[role].name} \
        --secret-binary fileb:///dev/stdin
    %{endfor~}

    # 2. Open two tunnels, each in a separate terminal. They require the AWS session-manager-plugin.
    %{for port in [local.coordinator_port, local.dashboard_port]~}
    aws ssm start-session --region ${var.region} --target ${aws_instance.coordinator.id} \
      --document-name AWS-StartPortForwardingSession --parameters portNumber=${port},localPortNumber=${port}
    %{endfor~}
    # The dashboard is at https://127.0.0.1:${local.dashboard_port} and asks for the token in tls/token.

    # 3. Run a small search, which takes minutes and costs cents, and download its best game.
    hatebeam submit --coordinator https://127.0.0.1:${local.coordinator_port} --tls tls --width 20k --max-cost 0.5 --max-hours 2 --watch
    hatebeam replays pull --best --store ${local.store} --s3-region ${var.region}

    # If no worker connects within ten minutes, this command shows the reason, for example a quota:
    aws autoscaling describe-scaling-activities --region ${var.region} --auto-scaling-group-name ${local.group} --max-items 5

    # 4. For a large search, delete the line worker_instance_types in terraform.tfvars, set workers there, and run:
    terraform apply
    hatebeam submit --coordinator https://127.0.0.1:${local.coordinator_port} --tls tls --width 1M --max-cost 5 --max-hours 6 --watch

    # 5. To start the coordinator's machine after it was stopped, and to set the deadline to ${var.max_hours} hours from now:
    terraform apply
    aws ec2 start-instances --region ${var.region} --instance-ids ${aws_instance.coordinator.id}

    # 6. To apply new settings of the coordinator or a new program immediately (the search resumes at its last depth):
    aws ssm start-session --region ${var.region} --target ${aws_instance.coordinator.id} \
      --document-name AWS-StartNonInteractiveCommand --parameters 'command=["sudo systemctl restart hatebeam-coordinator"]'

    # 7. To destroy everything except the bucket, which ../bucket manages:
    terraform destroy
    EOT
}

output "user_data" {
  description = "User data of each kind of machine, compressed with gzip and encoded in base64."
  value       = { for kind, text in local.user_data : kind => base64gzip(text) }
}
