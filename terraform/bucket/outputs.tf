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
    # Upload the program under its own checksum. The machines verify it, so they run exactly this program.
    sum=$(sha256sum hatebeam | cut -c1-64)
    aws s3 cp --region ${var.region} hatebeam "s3://${aws_s3_bucket.this.bucket}/bin/$sum"

    # Create the machines. For a program built on Arm, replace binary_x86_64 with binary_aarch64.
    terraform -chdir=../cluster init
    terraform -chdir=../cluster apply -var region=${var.region} -var bucket=${aws_s3_bucket.this.bucket} \
      -var prefix=${var.prefix} -var "binary_x86_64=$sum" -var alert_email=YOU@EXAMPLE.ORG
    EOT
}
