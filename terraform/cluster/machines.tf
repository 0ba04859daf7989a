# Settings and scripts of the machines. For each kind of machine, the bucket contains an object with both. A machine
# reads the object when its service starts, and the coordinator's machine also reads it every minute. So `terraform
# apply` changes settings without replacing a machine. The user data contains only the location of the object.
#
# The object and the user data contain no keys or tokens. Terraform's state contains both of them, and all processes on
# a machine and all users who can describe the machine can read the user data.

locals {
  tags = merge({ project = "hatebeam", cluster = var.name }, var.tags)

  # The names of Graviton types have a `g` after the generation number.
  is_arm = "^(a1|[a-z]+[0-9]+[a-z]*g[a-z]*)[.]"
  architecture = {
    for type in concat(var.worker_instance_types, [local.coordinator_type]) :
    type => can(regex(local.is_arm, type)) ? "aarch64" : "x86_64"
  }
  coordinator_type = coalesce(var.coordinator_instance_type, var.binary_aarch64 != "" ? "t4g.small" : "t3.small")
  worker_types     = [for type in var.worker_instance_types : type if contains(keys(local.binaries), local.architecture[type])]
  image_ids = {
    for architecture, _ in local.binaries :
    architecture => lookup(var.image_ids, architecture, null) != null ? var.image_ids[architecture] : data.aws_ssm_parameter.image[architecture].insecure_value
  }

  # The name of the group is fixed, because the coordinator's settings contain it, and the group is created later: it
  # depends on the coordinator's address.
  group   = "${var.name}-workers"
  store   = "s3://${var.bucket}/${var.prefix}"
  systemd = "${path.module}/../../deploy/systemd"
  machine = "${path.module}/machine"
  lib     = "/usr/local/lib/hatebeam"
  units   = "/etc/systemd/system"

  # Kinds of machines, each with a role and a program.
  kinds = merge(
    { coordinator = { role = "coordinator", program = lookup(local.binary_key, local.architecture[local.coordinator_type], "none") } },
    { for architecture, key in local.binary_key : "worker-${architecture}" => { role = "worker", program = key } },
  )
  settings_key  = { for kind, _ in local.kinds : kind => "machines/${var.name}/${kind}.json" }
  settings_keys = { for role, _ in local.secret_files : role => [for kind, of in local.kinds : local.settings_key[kind] if of.role == role] }
  logs          = { for role, _ in local.secret_files : role => "logs/${var.name}/${role}" }

  # In a new VPC, the coordinator always has the same address. AWS reserves the first four addresses of a subnet.
  coordinator_address = var.coordinator_address != null || !local.makes_vpc ? var.coordinator_address : cidrhost(values(aws_subnet.public)[0].cidr_block, 10)

  # These scripts are copied unchanged. They read their settings from the file machine.env.
  scripts = {
    coordinator = ["boot", "update", "prepare", "fetch-secrets", "ship-logs", "watchdog", "on-event"]
    worker      = ["boot", "update", "prepare", "fetch-secrets", "ship-logs", "disks", "power-off"]
  }
  machine_units = {
    coordinator = ["hatebeam-logs.service", "hatebeam-logs.timer", "hatebeam-watchdog.service", "hatebeam-watchdog.timer"]
    worker      = ["hatebeam-logs.service", "hatebeam-logs.timer", "hatebeam-disks.service", "hatebeam-power-off.service", "hatebeam-power-off.timer"]
  }

  # The script `prepare` replaces @ADDRESS@ and @PRICE@ when the service starts, in a file that is not in `files`.
  options = {
    coordinator = join(" ", compact(concat([
      "--listen 0.0.0.0:${local.coordinator_port}",
      "--advertise https://@ADDRESS@:${local.coordinator_port}",
      # TLS and the token protect the dashboard. Only operator_cidrs can reach it without a tunnel.
      "--dashboard ${length(var.operator_cidrs) > 0 ? "0.0.0.0" : "127.0.0.1"}:${local.dashboard_port}",
      "--metrics 127.0.0.1:9100",
      "--idle-stop ${var.idle_stop_minutes}",
      "--min-workers ${var.min_workers}",
      "--deadline-file /etc/hatebeam/deadline",
      "--on-event ${local.lib}/on-event",
      var.coordinator_price_per_hour == null ? "@PRICE@" : "--price-per-hour ${var.coordinator_price_per_hour}",
    ], var.coordinator_options)))
    worker = "--listen @ADDRESS@:${local.worker_port} --metrics 127.0.0.1:${local.worker_metrics_port} @PRICE@"
  }
  variables = {
    coordinator = var.webhook == "" ? "" : "HATEBEAM_WEBHOOK=${var.webhook}\n"
    worker      = "HATEBEAM_COORDINATOR=https://${aws_instance.coordinator.private_ip}:${local.coordinator_port}\n"
  }
  # The files of each kind of machine, by path.
  files = {
    for kind, of in local.kinds : kind => merge(
      { for script in local.scripts[of.role] : "${local.lib}/${script}" => { mode = "0755", content = file("${local.machine}/${script}") } },
      { for unit in local.machine_units[of.role] : "${local.units}/${unit}" => { mode = "0644", content = file("${local.machine}/${unit}") } },
      {
        "/usr/lib/sysusers.d/hatebeam.conf"                     = { mode = "0644", content = file("${local.systemd}/hatebeam.sysusers") }
        "${local.units}/hatebeam-${of.role}.service"            = { mode = "0644", content = file("${local.systemd}/hatebeam-${of.role}.service") }
        "${local.units}/hatebeam-${of.role}.service.d/aws.conf" = { mode = "0644", content = file("${local.machine}/${of.role}.conf") }
        "/etc/hatebeam/${of.role}.env" = { mode = "0600", content = <<-EOT
          HATEBEAM_STORE=${local.store}
          HATEBEAM_S3_REGION=${var.region}
          HATEBEAM_TLS=/run/hatebeam/tls
          ${local.variables[of.role]}OPTIONS=${local.options[of.role]}
          EOT
        }
        "/etc/hatebeam/machine.env" = { mode = "0644", content = <<-EOT
          ROLE=${of.role}
          PROGRAM=s3://${var.bucket}/${of.program}
          SECRET=${aws_secretsmanager_secret.this[of.role].name}
          SECRET_FILES="${join(" ", local.secret_files[of.role])}"
          LOGS=s3://${var.bucket}/${local.logs[of.role]}
          ${of.role == "worker" ? local.worker_settings : local.watchdog_settings}
          EOT
        }
      },
      of.role == "worker" && var.worker_per_numa_node ? {
        # A template of the same service for the workers of NUMA nodes, with separate folders and files for each node.
        "${local.units}/hatebeam-worker@.service"            = { mode = "0644", content = replace(file("${local.systemd}/hatebeam-worker.service"), "hatebeam/worker", "hatebeam/worker-%i") }
        "${local.units}/hatebeam-worker@.service.d/aws.conf" = { mode = "0644", content = file("${local.machine}/worker.conf") }
      } : {},
      of.role == "worker" ? {} : {
        "/etc/hatebeam/event-command" = { mode = "0644", content = "${var.event_command}\n" }
        "/etc/hatebeam/deadline"      = { mode = "0644", content = "${local.deadline}\n" }
      },
    )
  }
  worker_settings   = <<-EOT
    PER_NUMA_NODE=${var.worker_per_numa_node}
    PORTS="${local.worker_port} ${local.worker_metrics_port}"
    EOT
  watchdog_settings = <<-EOT
    GROUP=${local.group}
    WORKERS=${var.workers}
    TOPIC=${aws_sns_topic.alerts.arn}
    NAMESPACE=${local.namespace}
    METRIC=${local.heartbeat}
    QUIET_MINUTES=${var.quiet_minutes}
    BLIND_MINUTES=${var.blind_minutes}
    LONELY_MINUTES=${var.lonely_minutes}
    STUCK_MINUTES=${var.stuck_minutes}
    EOT

  user_data = {
    for kind, _ in local.kinds : kind => templatefile("${local.machine}/cloud-config.tftpl", {
      lib      = local.lib
      update   = file("${local.machine}/update")
      settings = "AWS_REGION=${var.region}\nSETTINGS=s3://${var.bucket}/${local.settings_key[kind]}\n"
    })
  }
}

resource "aws_s3_object" "settings" {
  for_each = local.settings_key

  bucket       = var.bucket
  key          = each.value
  content      = jsonencode(local.files[each.key])
  content_type = "application/json"
}

data "aws_ssm_parameter" "image" {
  for_each = { for architecture, _ in local.binaries : architecture => { x86_64 = "x86_64", aarch64 = "arm64" }[architecture] if !contains(keys(var.image_ids), architecture) }

  name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-${each.value}"
}
