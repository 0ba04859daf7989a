variable "region" {
  description = "Region of the bucket. Create the machines in the same region, because traffic between regions costs money."
  type        = string
  default     = "us-east-1"

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "'${var.region}' is not a region: use a name such as us-east-1."
  }
}

variable "bucket" {
  description = "Name of the bucket, which must be unique in AWS. The default is hatebeam-ACCOUNT-REGION."
  type        = string
  default     = null

  validation {
    condition     = var.bucket == null || can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "The name of a bucket must have 3 to 63 lower-case letters, digits and hyphens, and must not begin or end with a hyphen."
  }
}

variable "prefix" {
  description = "Key prefix of all runs in the bucket. The corresponding option of hatebeam is --store s3://BUCKET/PREFIX."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,64}$", var.prefix)) && !contains(["bin", "logs", "machines"], var.prefix)
    error_message = "A prefix must have 1 to 64 letters, digits, hyphens and underscores; 'bin', 'logs' and 'machines' are reserved."
  }
}

variable "frontier_days" {
  description = "Number of days after which frontiers (the wells that a run stores at each depth) are deleted; 0 keeps them. Without its frontiers, a run cannot be resumed, and no further games can be read from it. Replays, manifests and reports are kept."
  type        = number
  default     = 30

  validation {
    condition     = var.frontier_days == 0 || (var.frontier_days >= 7 && var.frontier_days <= 3650 && floor(var.frontier_days) == var.frontier_days)
    error_message = "frontier_days must be 0 or an integer from 7 to 3650; with fewer days, a search in progress could lose its wells."
  }
}

variable "force_destroy" {
  description = "Whether `terraform destroy` deletes the bucket and all objects in it. Run `terraform apply` after a change of this variable and before `terraform destroy`: see the README."
  type        = bool
  default     = false
}
