# Values that the mock provider returns for attributes that must not be random strings.

mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_data "aws_availability_zones" {
  defaults = { names = ["us-east-1a", "us-east-1b", "us-east-1c"] }
}

mock_data "aws_iam_policy_document" {
  defaults = { json = "{}" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/role" }
}

mock_resource "aws_launch_template" {
  defaults = { latest_version = 1 }
}

mock_resource "aws_autoscaling_policy" {
  defaults = { arn = "arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:1:autoScalingGroupName/workers:policyName/no-workers" }
}

mock_resource "aws_instance" {
  defaults = { private_ip = "10.77.0.4" }
}

mock_data "aws_s3_bucket" {
  defaults = { region = "us-east-1", arn = "arn:aws:s3:::bucket" }
}

mock_resource "aws_subnet" {
  defaults = { cidr_block = "10.77.0.0/20" }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:us-east-1:123456789012:hatebeam-alerts" }
}
