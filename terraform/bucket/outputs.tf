output "bucket" {
  description = "The bucket, for the cluster's variable of that name."
  value       = aws_s3_bucket.this.bucket
}

output "store" {
  description = "What hatebeam is told with --store."
  value       = "s3://${aws_s3_bucket.this.bucket}/${var.prefix}"
}

output "next" {
  description = "What to type next: terraform output -raw next"
  value       = <<-EOT
    # The program, under its own checksum: for the machines this is the one that you mean, and no other.
    sum=$(sha256sum hatebeam | cut -c1-64)
    aws s3 cp --region ${var.region} hatebeam "s3://${aws_s3_bucket.this.bucket}/bin/$sum"

    # The machines (for a program that was built on Arm: binary_aarch64).
    terraform -chdir=../cluster init
    terraform -chdir=../cluster apply -var region=${var.region} -var bucket=${aws_s3_bucket.this.bucket} \
      -var prefix=${var.prefix} -var "binary_x86_64=$sum" -var alert_email=YOU@EXAMPLE.ORG
    EOT
}
