output "bucket" {
  description = "Name of the bucket, for the cluster's variable `bucket`."
  value       = aws_s3_bucket.this.bucket
}

output "store" {
  description = "Value for hatebeam's option --store."
  value       = "s3://${aws_s3_bucket.this.bucket}/${var.prefix}"
}

output "next" {
  description = "Commands for the next steps. Print them with: terraform output -raw next"
  value       = <<-EOT
    # Run these commands in this folder. Set your own address, and the path of the program.
    email=YOU@EXAMPLE.ORG
    program=../../target/release/hatebeam

    # Upload the program with its checksum as its name. The machines verify the checksum.
    sum=$(sha256sum "$program" | cut -c1-64)
    aws s3 cp --region ${var.region} "$program" "s3://${aws_s3_bucket.this.bucket}/bin/$sum"

    # Write the variables to a file for `terraform apply` and `terraform destroy`.
    # If the program was built on Arm, replace binary_x86_64 with binary_aarch64.
    cat > ../cluster/terraform.tfvars <<END
    region        = "${var.region}"
    bucket        = "${aws_s3_bucket.this.bucket}"
    prefix        = "${var.prefix}"
    binary_x86_64 = "$sum"
    alert_email   = "$email"

    # For a first try, use one of the smallest machines with a local disk. It is within the quota of a new account, and
    # costs 4 cents an hour as a spot machine. Delete this line to use large machines.
    worker_instance_types = ["c6id.large", "m6id.large", "c5d.large"]
    END

    # Create the machines.
    terraform -chdir=../cluster init
    terraform -chdir=../cluster apply
    EOT
}
