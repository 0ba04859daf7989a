# Required

variable "bucket" {
  description = "Bucket for runs and programs: the bucket from ../bucket, or any other bucket."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "'${var.bucket}' is not a valid bucket name."
  }
}

variable "alert_email" {
  description = "E-mail address that receives a mail when a run ends, when the watchdog or the heartbeat alarm reports a problem, and when the account's costs approach the budget."
  type        = string

  validation {
    condition     = can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", var.alert_email))
    error_message = "'${var.alert_email}' is not an e-mail address."
  }
}

variable "binary_x86_64" {
  description = "SHA-256 checksum of the program for x86 machines. The bucket must contain the program at bin/CHECKSUM."
  type        = string
  default     = ""

  validation {
    condition     = var.binary_x86_64 == "" || can(regex("^[0-9a-f]{64}$", var.binary_x86_64))
    error_message = "Give the 64 hex digits that sha256sum prints."
  }
}

variable "binary_aarch64" {
  description = "SHA-256 checksum of the program for Arm machines. The bucket must contain the program at bin/CHECKSUM. At least one of the two programs is required; machine types without a program are not used."
  type        = string
  default     = ""

  validation {
    condition     = var.binary_aarch64 == "" || can(regex("^[0-9a-f]{64}$", var.binary_aarch64))
    error_message = "Give the 64 hex digits that sha256sum prints."
  }
  validation {
    condition     = var.binary_x86_64 != "" || var.binary_aarch64 != ""
    error_message = "There is no program: set binary_x86_64, binary_aarch64 or both."
  }
}

# Names, region and network

variable "name" {
  description = "Name of the cluster, which is also the prefix of the names of its resources. It must be unique in the region."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.name))
    error_message = "A name must have 1 to 24 lower-case letters, digits and hyphens, and must begin with a letter."
  }
}

variable "region" {
  description = "Region of the bucket and the machines. It has no default, because Terraform would not find the machines in a wrong region."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "'${var.region}' is not a region: use a name such as us-east-1."
  }
}

variable "prefix" {
  description = "Key prefix of all runs in the bucket. Use the same value as in ../bucket."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,64}$", var.prefix)) && !contains(["bin", "logs", "machines"], var.prefix)
    error_message = "A prefix must have 1 to 64 letters, digits, hyphens and underscores; 'bin', 'logs' and 'machines' are reserved."
  }
}

variable "tags" {
  description = "Additional tags for all resources."
  type        = map(string)
  default     = {}
}

variable "vpc_id" {
  description = "ID of an existing VPC to use. By default, Terraform creates a new VPC."
  type        = string
  default     = null

  validation {
    condition     = (var.vpc_id == null) == (length(var.subnet_ids) == 0)
    error_message = "Set both vpc_id and subnet_ids for an existing VPC, or neither of them for a new VPC."
  }
}

variable "subnet_ids" {
  description = "IDs of subnets in the existing VPC. The coordinator runs in the first subnet."
  type        = list(string)
  default     = []
}

variable "availability_zones" {
  description = "Zones of the new VPC. The default is the first zone of the region. More zones offer more spot machines, but workers exchange data continuously, and traffic between zones costs 1 cent per GB at each end."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.availability_zones) <= 6
    error_message = "availability_zones must contain at most 6 zones."
  }
}

variable "public_addresses" {
  description = "Whether machines get public addresses, through which they connect to AWS. The security groups block incoming connections from outside, except from operator_cidrs. Set this to false if the subnets have a NAT gateway or endpoints, which cost more than the addresses of a few machines."
  type        = bool
  default     = true
}

variable "operator_cidrs" {
  description = "IPv4 networks that can reach the coordinator's ports 7800 and 7880 without a tunnel. By default, only tunnels of Session Manager give access."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for cidr in var.operator_cidrs : can(cidrnetmask(cidr)) && !can(regex("/[0-7]$", cidr))])
    error_message = "operator_cidrs must contain IPv4 networks such as 203.0.113.7/32, each with at most 2^24 addresses (/8)."
  }
}

# Machines

variable "workers" {
  description = "Number of worker machines while a run is open. Without an open run, there are none. A new number takes effect within two minutes after `terraform apply`, and no machine is replaced."
  type        = number
  default     = 1

  validation {
    condition     = var.workers >= 1 && var.workers <= 256 && floor(var.workers) == var.workers
    error_message = "The number of workers must be an integer from 1 to 256."
  }
}

variable "worker_instance_types" {
  description = "Machine types of the workers. AWS selects types that are cheap and unlikely to be reclaimed, so use types of similar size, with local NVMe disks. Types without a program are ignored."
  type        = list(string)
  default = [
    "c5d.18xlarge", "c5ad.16xlarge", "c6id.16xlarge", "m5d.16xlarge", "m6id.16xlarge",
    "c6gd.16xlarge", "c7gd.16xlarge", "m7gd.16xlarge",
  ]

  validation {
    condition     = length(var.worker_instance_types) >= 1 && length(var.worker_instance_types) <= 40 && length(distinct(var.worker_instance_types)) == length(var.worker_instance_types)
    error_message = "worker_instance_types must contain 1 to 40 different types."
  }
  validation {
    condition     = alltrue([for type in var.worker_instance_types : can(regex("^[a-z][a-z0-9-]*[.][a-z0-9-]+$", type))])
    error_message = "worker_instance_types must contain types such as c5d.18xlarge."
  }
}

variable "worker_per_numa_node" {
  description = "Whether a machine with several NUMA nodes (processor sockets, as in c5d.18xlarge) runs one worker on each node. Such a worker uses the node's cores and prefers the node's memory. `workers` remains the number of machines. A change applies to machines that start after it."
  type        = bool
  default     = false
}

variable "on_demand_base" {
  description = "Number of workers that are always on-demand machines."
  type        = number
  default     = 0

  validation {
    condition     = var.on_demand_base >= 0 && var.on_demand_base <= var.workers && floor(var.on_demand_base) == var.on_demand_base
    error_message = "on_demand_base must be an integer from 0 to the number of workers."
  }
}

variable "on_demand_percent" {
  description = "Percentage of on-demand machines among the workers above on_demand_base. These workers also run when no spot machines are available. AWS cannot use on-demand machines only as a replacement for unavailable spot machines."
  type        = number
  default     = 0

  validation {
    condition     = var.on_demand_percent >= 0 && var.on_demand_percent <= 100 && floor(var.on_demand_percent) == var.on_demand_percent
    error_message = "on_demand_percent must be an integer from 0 to 100."
  }
}

variable "coordinator_instance_type" {
  description = "Type of the coordinator's machine. The default is t4g.small if there is a program for Arm, and t3.small otherwise."
  type        = string
  default     = null

  validation {
    condition     = var.coordinator_instance_type == null || can(regex("^[a-z][a-z0-9-]*[.][a-z0-9-]+$", var.coordinator_instance_type))
    error_message = "coordinator_instance_type must be a type such as t4g.small."
  }
}

variable "coordinator_price_per_hour" {
  description = "Price of the coordinator's machine in dollars per hour. The default is the price in hatebeam's price table, or an upper estimate if the table does not contain the type."
  type        = number
  default     = null

  validation {
    condition     = var.coordinator_price_per_hour == null ? true : var.coordinator_price_per_hour >= 0 && var.coordinator_price_per_hour <= 1000
    error_message = "The price must be from 0 to 1000 dollars."
  }
}

variable "coordinator_address" {
  description = "Private IPv4 address of the coordinator in the first subnet. The default is address 10 of the subnet in a new VPC, and an address that AWS chooses in an existing VPC. If the address of the coordinator changes, workers find the new address through the bucket."
  type        = string
  default     = null

  validation {
    condition     = var.coordinator_address == null || can(cidrnetmask("${var.coordinator_address}/32"))
    error_message = "'${coalesce(var.coordinator_address, "-")}' is not an IPv4 address."
  }
}

variable "min_workers" {
  description = "Number of workers that must be connected before a run starts or resumes. With worker_per_numa_node, each worker on a machine counts."
  type        = number
  default     = 1

  validation {
    condition     = var.min_workers >= 1 && var.min_workers <= var.workers && floor(var.min_workers) == var.min_workers
    error_message = "min_workers must be an integer from 1 to the number of workers."
  }
}

variable "coordinator_options" {
  description = "Additional options for `hatebeam coordinator`. Each element is one option, with its value after an equals sign and without spaces."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for option in var.coordinator_options : can(regex("^--[a-z-]+(=[^ '\"\\\\$%]*)?$", option))])
    error_message = "coordinator_options must contain options such as --lost-after=10."
  }
}

variable "webhook" {
  description = "URL that receives the events of runs: see docs/events.md. Terraform's state contains the URL, and so does an object in the bucket, which among the machines only the coordinator's machine can read."
  type        = string
  default     = ""
  sensitive   = true

  validation {
    condition     = var.webhook == "" || can(regex("^https?://[^ '\"\\\\$]+$", var.webhook))
    error_message = "webhook must be a URL that begins with https:// or http://."
  }
}

variable "event_command" {
  description = "Shell command that the coordinator's machine runs for each event of a run, in addition to the mail: see docs/events.md. It runs in the sandbox of the coordinator's service."
  type        = string
  default     = ""
}

variable "image_ids" {
  description = "IDs of machine images for the keys x86_64 and aarch64. The default is the latest Amazon Linux 2023. An image must contain systemd, dnf, the AWS CLI and Session Manager's agent."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for architecture in keys(var.image_ids) : contains(["x86_64", "aarch64"], architecture)])
    error_message = "The keys of image_ids must be x86_64 or aarch64."
  }
}

# Conditions that stop machines

variable "quiet_minutes" {
  description = "Number of minutes without an open run after which the workers are stopped."
  type        = number
  default     = 5

  validation {
    condition     = var.quiet_minutes >= 1 && var.quiet_minutes <= 1440 && floor(var.quiet_minutes) == var.quiet_minutes
    error_message = "quiet_minutes must be an integer from 1 to 1440."
  }
}

variable "idle_stop_minutes" {
  description = "Number of minutes without an open run after which the coordinator exits. Its machine is stopped blind_minutes later."
  type        = number
  default     = 60

  validation {
    condition     = var.idle_stop_minutes >= var.quiet_minutes && var.idle_stop_minutes <= 10080 && floor(var.idle_stop_minutes) == var.idle_stop_minutes
    error_message = "idle_stop_minutes must be an integer from quiet_minutes to 10080 (a week)."
  }
}

variable "blind_minutes" {
  description = "Number of minutes without an answer from the coordinator after which the workers and the coordinator's machine are stopped. The certificates must be uploaded within this time."
  type        = number
  default     = 30

  validation {
    condition     = var.blind_minutes >= 5 && var.blind_minutes <= 720 && floor(var.blind_minutes) == var.blind_minutes
    error_message = "blind_minutes must be an integer from 5 to 720."
  }
}

variable "lonely_minutes" {
  description = "Number of minutes with an open run but without a connected worker after which all worker machines are stopped. They are started again after an hour. After each further failed attempt, the pause is twice as long, up to 32 hours."
  type        = number
  default     = 20

  validation {
    condition     = var.lonely_minutes >= 10 && var.lonely_minutes <= 720 && floor(var.lonely_minutes) == var.lonely_minutes
    error_message = "lonely_minutes must be an integer from 10 to 720; a large machine takes several minutes to start."
  }
}

variable "stuck_minutes" {
  description = "Number of minutes with an open run and connected workers but without a new depth after which all worker machines are stopped. They are started again when the list of open runs changes."
  type        = number
  default     = 60

  validation {
    condition     = var.stuck_minutes >= 15 && var.stuck_minutes <= 1440 && floor(var.stuck_minutes) == var.stuck_minutes
    error_message = "stuck_minutes must be an integer from 15 to 1440; a depth of a wide beam takes minutes."
  }
}

variable "max_hours" {
  description = "Number of hours after the last `terraform apply` at which all machines stop, even during a run. Each apply extends this deadline. `hatebeam status` shows the time until the deadline, and the dashboard warns in the last hour."
  type        = number
  default     = 24

  validation {
    condition     = var.max_hours >= 1 && var.max_hours <= 720 && floor(var.max_hours) == var.max_hours
    error_message = "max_hours must be an integer from 1 to 720 (30 days)."
  }
}

variable "budget_dollars" {
  description = "Budget of the whole account in dollars per month. AWS sends a mail when the costs reach 50, 80 and 100 % of the budget, and when the forecast exceeds it. The mails arrive hours late and stop nothing. To limit the cost of a run, use `hatebeam submit --max-cost`."
  type        = number
  default     = 20

  validation {
    condition     = var.budget_dollars >= 1
    error_message = "The budget must be at least 1 dollar."
  }
}
