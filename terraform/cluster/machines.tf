# User data of the machines. It contains no secrets, because every process on a machine and everyone who can describe
# the machine can read it. Scripts are copied unchanged and read their settings from separate files.

locals {
  tags = merge({ project = "hatebeam", cluster = var.name }, var.tags)

  # Graviton types have a `g` after the generation number.
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

  # The group's name is fixed, because the coordinator needs it before the group exists: the group depends on the
  # coordinator's address.
  group   = "${var.name}-workers"
  store   = "s3://${var.bucket}/${var.prefix}"
  systemd = "${path.module}/../../deploy/systemd"
  lib     = "/usr/local/lib/hatebeam"

  # Files of both kinds of machine.
  common_files = {
    "${local.lib}/boot"                 = { from = file("${path.module}/machine/boot"), mode = "0755" }
    "${local.lib}/fetch-secrets"        = { from = file("${path.module}/machine/fetch-secrets"), mode = "0755" }
    "/usr/lib/sysusers.d/hatebeam.conf" = { from = file("${local.systemd}/hatebeam.sysusers"), mode = "0644" }
  }

  coordinator_options = compact([
    "--listen 0.0.0.0:${local.coordinator_port}",
    # TLS and the token protect the dashboard. Without a tunnel it is reachable only from operator_cidrs.
    "--dashboard ${length(var.operator_cidrs) > 0 ? "0.0.0.0" : "127.0.0.1"}:${local.dashboard_port}",
    "--metrics 127.0.0.1:9100",
    "--idle-stop ${var.idle_stop_minutes}",
    var.coordinator_price_per_hour == null ? "" : "--price-per-hour ${var.coordinator_price_per_hour}",
  ])
  # The machine replaces @ADDRESS@ with its own address when it starts.
  worker_options = ["--listen @ADDRESS@:${local.worker_port}", "--metrics 127.0.0.1:9101"]

  coordinator_files = merge(local.common_files, {
    "${local.lib}/watchdog"                                       = { from = file("${path.module}/machine/watchdog"), mode = "0755" }
    "/etc/systemd/system/hatebeam-watchdog.service"               = { from = file("${path.module}/machine/hatebeam-watchdog.service"), mode = "0644" }
    "/etc/systemd/system/hatebeam-watchdog.timer"                 = { from = file("${path.module}/machine/hatebeam-watchdog.timer"), mode = "0644" }
    "/etc/systemd/system/hatebeam-coordinator.service"            = { from = file("${local.systemd}/hatebeam-coordinator.service"), mode = "0644" }
    "/etc/systemd/system/hatebeam-coordinator.service.d/aws.conf" = { from = file("${path.module}/machine/secrets.conf"), mode = "0644" }
    "/etc/hatebeam/coordinator.env" = { mode = "0600", from = <<-EOT
      HATEBEAM_STORE=${local.store}
      HATEBEAM_S3_REGION=${var.region}
      HATEBEAM_TLS=/run/hatebeam/tls
      OPTIONS=${join(" ", local.coordinator_options)}
      EOT
    }
    "/etc/hatebeam/machine.env" = { mode = "0644", from = <<-EOT
      ROLE=coordinator
      AWS_REGION=${var.region}
      PROGRAM=s3://${var.bucket}/${lookup(local.binary_key, local.architecture[local.coordinator_type], "none")}
      SECRET=${aws_secretsmanager_secret.this["coordinator"].name}
      SECRET_FILES="${join(" ", local.secret_files["coordinator"])}"
      GROUP=${local.group}
      NAMESPACE=${local.namespace}
      METRIC=${local.heartbeat}
      QUIET_MINUTES=${var.quiet_minutes}
      BLIND_MINUTES=${var.blind_minutes}
      LONELY_MINUTES=${var.lonely_minutes}
      EOT
    }
  })

  worker_files = {
    for architecture, key in local.binary_key : architecture => merge(local.common_files, {
      "${local.lib}/disks"                                     = { from = file("${path.module}/machine/disks"), mode = "0755" }
      "${local.lib}/power-off"                                 = { from = file("${path.module}/machine/power-off"), mode = "0755" }
      "/etc/systemd/system/hatebeam-power-off.service"         = { from = file("${path.module}/machine/hatebeam-power-off.service"), mode = "0644" }
      "/etc/systemd/system/hatebeam-power-off.timer"           = { from = file("${path.module}/machine/hatebeam-power-off.timer"), mode = "0644" }
      "/etc/systemd/system/hatebeam-worker.service"            = { from = file("${local.systemd}/hatebeam-worker.service"), mode = "0644" }
      "/etc/systemd/system/hatebeam-worker.service.d/aws.conf" = { from = file("${path.module}/machine/secrets.conf"), mode = "0644" }
      "/etc/hatebeam/worker.env" = { mode = "0600", from = <<-EOT
        HATEBEAM_STORE=${local.store}
        HATEBEAM_S3_REGION=${var.region}
        HATEBEAM_COORDINATOR=https://${aws_instance.coordinator.private_ip}:${local.coordinator_port}
        HATEBEAM_TLS=/run/hatebeam/tls
        OPTIONS=${join(" ", local.worker_options)}
        EOT
      }
      "/etc/hatebeam/machine.env" = { mode = "0644", from = <<-EOT
        ROLE=worker
        AWS_REGION=${var.region}
        PROGRAM=s3://${var.bucket}/${key}
        SECRET=${aws_secretsmanager_secret.this["worker"].name}
        SECRET_FILES="${join(" ", local.secret_files["worker"])}"
        EOT
      }
    })
  }

  cloud_config          = "${path.module}/machine/cloud-config.tftpl"
  coordinator_user_data = templatefile(local.cloud_config, { files = local.coordinator_files, boot = "${local.lib}/boot" })
  worker_user_data = {
    for architecture, files in local.worker_files :
    architecture => templatefile(local.cloud_config, { files = files, boot = "${local.lib}/boot" })
  }
}

data "aws_ssm_parameter" "image" {
  for_each = { for architecture, _ in local.binaries : architecture => { x86_64 = "x86_64", aarch64 = "arm64" }[architecture] if !contains(keys(var.image_ids), architecture) }

  name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-${each.value}"
}
