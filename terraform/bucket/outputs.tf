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

    # Upload the program under its own checksum. The machines verify it, so they run exactly this program.
    sum=$(sha256sum "$program" | cut -c1-64)
    aws s3 cp --region ${var.region} "$program" "s3://${aws_s3_bucket.this.bucket}/bin/$sum"

    # Write the variables down, for every later `terraform apply` and `terraform destroy`.
    # For a program built on Arm, replace binary_x86_64 by binary_aarch64.
    cat > ../cluster/terraform.tfvars <<END
    region        = "${var.region}"
    bucket        = "${aws_s3_bucket.this.bucket}"
    prefix        = "${var.prefix}"
    binary_x86_64 = "$sum"
    alert_email   = "$email"

    # A first try: one of the smallest machines with a local disk, within the quota of a new account, for 4 cents an
    # hour as a spot machine. Delete this line to use large machines.
    worker_instance_types = ["c6id.large", "m6id.large", "c5d.large"]
    END

    # Create the machines.
    terraform -chdir=../cluster init
    terraform -chdir=../cluster apply
    EOT
}
