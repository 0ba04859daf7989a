# What must be given

variable "bucket" {
  description = "The bucket that ../bucket made, or another one."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "'${var.bucket}' is no name of a bucket."
  }
}

variable "alert_email" {
  description = "Who is written to when the account's costs near the budget."
  type        = string

  validation {
    condition     = can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", var.alert_email))
    error_message = "'${var.alert_email}' is no address of mail."
  }
}

variable "binary_x86_64" {
  description = "The SHA-256 of the program for x86 machines, which lies in the bucket under bin/ and that sum."
  type        = string
  default     = ""

  validation {
    condition     = var.binary_x86_64 == "" || can(regex("^[0-9a-f]{64}$", var.binary_x86_64))
    error_message = "Give the 64 hex digits that sha256sum prints."
  }
}

variable "binary_aarch64" {
  description = "The same for Arm machines. At least one of the two is needed; machines of the other kind are not used."
  type        = string
  default     = ""

  validation {
    condition     = var.binary_aarch64 == "" || can(regex("^[0-9a-f]{64}$", var.binary_aarch64))
    error_message = "Give the 64 hex digits that sha256sum prints."
  }
  validation {
    condition     = var.binary_x86_64 != "" || var.binary_aarch64 != ""
    error_message = "There is no program: give binary_x86_64, binary_aarch64 or both."
  }
}

# Where

variable "name" {
  description = "What all that is made here is called; no two clusters in a region alike."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.name))
    error_message = "A name has up to 24 small letters, digits and hyphens, and begins with a letter."
  }
}

variable "region" {
  description = "The bucket's region."
  type        = string
  default     = "us-east-1"

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "'${var.region}' is no region; give one as us-east-1."
  }
}

variable "prefix" {
  description = "What the names of all runs in the bucket begin with: as given to ../bucket."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,64}$", var.prefix)) && var.prefix != "bin"
    error_message = "A prefix has 1 to 64 letters, digits, hyphens and underscores; 'bin' is where the programs are."
  }
}

variable "tags" {
  description = "Further tags of all that is made."
  type        = map(string)
  default     = {}
}

variable "vpc_id" {
  description = "A VPC that is there already; unless given, one is made."
  type        = string
  default     = null

  validation {
    condition     = (var.vpc_id == null) == (length(var.subnet_ids) == 0)
    error_message = "Give both vpc_id and subnet_ids of a VPC that is there, or neither and one is made."
  }
}

variable "subnet_ids" {
  description = "Subnets of that VPC. The coordinator is in the first."
  type        = list(string)
  default     = []
}

variable "availability_zones" {
  description = "Zones of a VPC that is made here; unless given, the region's first alone. Workers talk all the time, and what goes between zones costs 1 cent a GB at either end: more zones find more spot machines, and cost more."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.availability_zones) <= 6
    error_message = "At most 6 zones."
  }
}

variable "public_addresses" {
  description = "Give machines public addresses, through which they reach AWS (nothing reaches them). false where the subnets have a NAT gateway or endpoints, which cost more than addresses do for a few machines."
  type        = bool
  default     = true
}

variable "operator_cidrs" {
  description = "From where the coordinator can be reached without a tunnel: ports 7800 and 7880. Unless given, from nowhere: Session Manager's tunnel does."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for cidr in var.operator_cidrs : can(cidrnetmask(cidr)) && !can(regex("/[0-7]$", cidr))])
    error_message = "Give IPv4 networks as 203.0.113.7/32, of 2^24 addresses (/8) at most: the world is not an operator."
  }
}

# Machines

variable "workers" {
  description = "Workers while a run is open; there is none while there is nothing to do. `terraform apply` changes it within a minute or two."
  type        = number
  default     = 1

  validation {
    condition     = var.workers >= 1 && var.workers <= 256 && floor(var.workers) == var.workers
    error_message = "Give 1 to 256 workers."
  }
}

variable "worker_instance_types" {
  description = "What workers may be: of like size, as the cheapest that is likely to last is taken, with local NVMe disks. Types whose program is not given are left out."
  type        = list(string)
  default = [
    "c5d.18xlarge", "c5ad.16xlarge", "c6id.16xlarge", "m5d.16xlarge", "m6id.16xlarge",
    "c6gd.16xlarge", "c7gd.16xlarge", "m7gd.16xlarge",
  ]

  validation {
    condition     = length(var.worker_instance_types) >= 1 && length(var.worker_instance_types) <= 40 && length(distinct(var.worker_instance_types)) == length(var.worker_instance_types)
    error_message = "Give 1 to 40 types, no two alike."
  }
  validation {
    condition     = alltrue([for type in var.worker_instance_types : can(regex("^[a-z][a-z0-9-]*[.][a-z0-9-]+$", type))])
    error_message = "Types are written as c5d.18xlarge."
  }
}

variable "on_demand_base" {
  description = "So many of the workers are never spot machines."
  type        = number
  default     = 0

  validation {
    condition     = var.on_demand_base >= 0 && var.on_demand_base <= var.workers && floor(var.on_demand_base) == var.on_demand_base
    error_message = "Give 0 up to the number of workers."
  }
}

variable "on_demand_percent" {
  description = "Per cent of the workers above that base that are not spot machines: what is left should no spot machine be had. AWS has no rule that takes one only then."
  type        = number
  default     = 0

  validation {
    condition     = var.on_demand_percent >= 0 && var.on_demand_percent <= 100 && floor(var.on_demand_percent) == var.on_demand_percent
    error_message = "Give per cent from 0 to 100."
  }
}

variable "coordinator_instance_type" {
  description = "What the coordinator is. Unless given: t4g.small where there is a program for Arm, else t3.small."
  type        = string
  default     = null

  validation {
    condition     = var.coordinator_instance_type == null || can(regex("^[a-z][a-z0-9-]*[.][a-z0-9-]+$", var.coordinator_instance_type))
    error_message = "Types are written as t4g.small."
  }
}

variable "coordinator_price_per_hour" {
  description = "Dollars an hour of the coordinator's machine, for the account of a run's cost. Unless given, it is left out of that."
  type        = number
  default     = null

  validation {
    condition     = var.coordinator_price_per_hour == null ? true : var.coordinator_price_per_hour >= 0 && var.coordinator_price_per_hour <= 1000
    error_message = "Give dollars from 0 to 1000."
  }
}

variable "image_ids" {
  description = "Images for x86_64 and aarch64, if not the newest Amazon Linux 2023: with AWS's command line, Session Manager's agent and systemd."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for architecture in keys(var.image_ids) : contains(["x86_64", "aarch64"], architecture)])
    error_message = "Images are given for x86_64 and aarch64."
  }
}

# When all stops

variable "quiet_minutes" {
  description = "The workers go when no run was open for so long."
  type        = number
  default     = 5

  validation {
    condition     = var.quiet_minutes >= 1 && var.quiet_minutes <= 1440 && floor(var.quiet_minutes) == var.quiet_minutes
    error_message = "Give whole minutes from 1 to 1440."
  }
}

variable "idle_stop_minutes" {
  description = "The coordinator's machine is stopped when no run was open for so long (and its minder saw it: add blind_minutes)."
  type        = number
  default     = 60

  validation {
    condition     = var.idle_stop_minutes >= var.quiet_minutes && var.idle_stop_minutes <= 10080 && floor(var.idle_stop_minutes) == var.idle_stop_minutes
    error_message = "Give whole minutes, not fewer than quiet_minutes, 10080 (a week) at most."
  }
}

variable "blind_minutes" {
  description = "When nobody can say for so long whether a run is open, the workers go and the coordinator's machine is stopped. It is also the time that you have to put the certificates where they belong."
  type        = number
  default     = 30

  validation {
    condition     = var.blind_minutes >= 5 && var.blind_minutes <= 720 && floor(var.blind_minutes) == var.blind_minutes
    error_message = "Give whole minutes from 5 to 720."
  }
}

variable "lonely_minutes" {
  description = "When a run is open and no worker has come for so long, the machines that do not become workers go; an hour later it is tried again."
  type        = number
  default     = 20

  validation {
    condition     = var.lonely_minutes >= 10 && var.lonely_minutes <= 720 && floor(var.lonely_minutes) == var.lonely_minutes
    error_message = "Give whole minutes from 10 to 720: a large machine takes some to start."
  }
}

variable "max_hours" {
  description = "So long after the last `terraform apply` everything stops, whatever is under way. Each apply winds it up again."
  type        = number
  default     = 24

  validation {
    condition     = var.max_hours >= 1 && var.max_hours <= 720 && floor(var.max_hours) == var.max_hours
    error_message = "Give whole hours from 1 to 720 (30 days)."
  }
}

variable "budget_dollars" {
  description = "Dollars a month for the whole account: at half of it, at 80 % and at all of it a mail is sent, and when it looks like more. A warning hours late, no limit: the limit is `hatebeam submit --max-cost`."
  type        = number
  default     = 20

  validation {
    condition     = var.budget_dollars >= 1
    error_message = "Give a dollar at least."
  }
}
