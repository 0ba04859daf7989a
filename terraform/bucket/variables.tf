variable "region" {
  description = "Where the bucket is, and the machines are to be: what goes between regions costs."
  type        = string
  default     = "us-east-1"

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "'${var.region}' is no region; give one as us-east-1."
  }
}

variable "bucket" {
  description = "The bucket's name, which nobody else in the world may have. Unless given: hatebeam-ACCOUNT-REGION."
  type        = string
  default     = null

  validation {
    condition     = var.bucket == null || can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "A bucket's name has 3 to 63 small letters, digits and hyphens, and no hyphen at either end."
  }
}

variable "prefix" {
  description = "What the names of all runs begin with: hatebeam is told --store s3://BUCKET/PREFIX."
  type        = string
  default     = "hatebeam"

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,64}$", var.prefix)) && var.prefix != "bin"
    error_message = "A prefix has 1 to 64 letters, digits, hyphens and underscores; 'bin' is where the programs are."
  }
}

variable "frontier_days" {
  description = "After so many days frontiers are deleted; 0 keeps them. A run whose frontiers are gone cannot go on, nor be asked for further games; replays, manifests and reports stay."
  type        = number
  default     = 30

  validation {
    condition     = var.frontier_days == 0 || (var.frontier_days >= 7 && var.frontier_days <= 3650 && floor(var.frontier_days) == var.frontier_days)
    error_message = "Give whole days from 7 to 3650, so that no run that is still searched loses its wells, or 0."
  }
}

variable "force_destroy" {
  description = "Let `terraform destroy` delete the bucket with all that is in it. It counts once it is applied: see the README."
  type        = bool
  default     = false
}
