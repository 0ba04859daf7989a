variable "region" {
  description = "Region of the bucket. Create the machines in the same region, because traffic between regions costs money."
  type        = string
  default     = "us-east-1"

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "'${var.region}' is not a region: write it like us-east-1."
  }
}

variable "bucket" {
  description = "Name of the bucket, which must be unique in all of AWS. The default is hatebeam-ACCOUNT-REGION."
  type        = string
  default     = null

  validation {
    condition     = var.bucket == null || can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "A bucket's name has 3 to 63 lower-case letters, digits and hyphens, and neither begins nor ends with a hyphen."
  }
}

variable "prefix" {
  description = "Prefix of all runs in the bucket. hatebeam's option is --store s3://BUCKET/PREFIX."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,64}$", var.prefix)) && !contains(["bin", "logs", "machines"], var.prefix)
    error_message = "A prefix has 1 to 64 letters, digits, hyphens and underscores; 'bin', 'logs' and 'machines' are reserved."
  }
}

variable "frontier_days" {
  description = "Days after which frontiers (the wells that a run stores at each depth) are deleted; 0 keeps them. A run without its frontiers cannot be resumed, and no further games can be read from it. Replays, manifests and reports are kept."
  type        = number
  default     = 30

  validation {
    condition     = var.frontier_days == 0 || (var.frontier_days >= 7 && var.frontier_days <= 3650 && floor(var.frontier_days) == var.frontier_days)
    error_message = "frontier_days must be 0 or an integer from 7 to 3650; with fewer days a running search could lose its wells."
  }
}

variable "force_destroy" {
  description = "Whether `terraform destroy` deletes the bucket with everything in it. Apply a change of this variable before you run `terraform destroy`: see the README."
  type        = bool
  default     = false
}
