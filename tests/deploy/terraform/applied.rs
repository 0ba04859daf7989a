//! Test that applies the module `cluster` to moto, a mock of AWS that starts no machines.

use super::Workshop;
use crate::servers::Server;
use crate::support::succeeds;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

/// Configuration of the AWS provider for moto, which serves buckets only with path-style URLs.
const PROVIDER: &str = r#"
provider "aws" {
  region            = var.region
  access_key        = "test"
  secret_key        = "test"
  s3_use_path_style = true
}
"#;

/// Changes of settings that a user may make during a run.
const CHANGES: [&str; 6] = [
    "-var=workers=3",
    "-var=quiet_minutes=9",
    "-var=worker_per_numa_node=true",
    "-var=operator_cidrs=[\"203.0.113.7/32\"]",
    "-var=coordinator_options=[\"--lost-after=10\"]",
    "-var=binary_x86_64=2222222222222222222222222222222222222222222222222222222222222222",
];

/// A copy of the module `cluster`, and a mock of AWS.
struct Account {
    workshop: Workshop,
    server: Server,
}

impl Account {
    /// Prepares the module and starts moto. Returns `None` if Terraform, its AWS provider or moto is not installed.
    fn open() -> Option<Account> {
        let workshop = Workshop::open(&["cluster"])?;
        let server = Server::moto()?;
        let module = |name: &str| workshop.path(&format!("terraform/cluster/{name}"));
        // moto does not support budgets.
        let limits = std::fs::read_to_string(module("limits.tf")).unwrap();
        let (limits, _) = limits
            .split_once("resource \"aws_budgets_budget\"")
            .unwrap();
        std::fs::write(module("limits.tf"), limits).unwrap();
        std::fs::write(module("mock_override.tf"), PROVIDER).unwrap();
        let bucket = server.location("x").replace("s3://", "").replace("/x", "");
        let variables = format!(
            "region = \"us-east-1\"\nbucket = \"{bucket}\"\nalert_email = \"me@example.org\"\nbinary_x86_64 = \"{}\"\n",
            "1".repeat(64)
        );
        std::fs::write(module("terraform.tfvars"), variables).unwrap();
        Some(Account { workshop, server })
    }

    fn terraform(&self, args: &[&str]) -> Command {
        let mut command = self.workshop.terraform("cluster");
        command
            .args(args)
            .args(["-no-color"])
            .env("TF_IN_AUTOMATION", "1")
            .env(
                "AWS_ENDPOINT_URL",
                format!("http://{}", self.server.address()),
            );
        command
    }

    /// Plans changes of variables, and writes the plan to the file `plan`. Returns each creation and deletion in the plan
    /// as a pair of the action and the resource's address.
    fn creations_and_deletions(&self, changes: &[&str]) -> BTreeSet<(String, String)> {
        succeeds(
            self.terraform(&["plan", "-input=false", "-out=plan"])
                .args(changes),
        );
        let plan = succeeds(&mut self.terraform(&["show", "-json", "plan"]));
        let plan: Value = serde_json::from_str(&plan).unwrap();
        let changes = plan["resource_changes"].as_array().unwrap().iter();
        let actions = changes.flat_map(|change| {
            let address = change["address"].as_str().unwrap();
            let actions = change["change"]["actions"].as_array().unwrap().iter();
            actions.map(move |action| (action.as_str().unwrap().to_owned(), address.to_owned()))
        });
        actions
            .filter(|(action, _)| action == "create" || action == "delete")
            .collect()
    }

    /// Sends a request to an AWS service of moto and returns the response.
    fn ask(&self, service: &str, body: &str) -> String {
        let address: SocketAddr = self.server.address();
        let mut stream = TcpStream::connect(address).unwrap();
        // moto reads the name of the service from the signature, but does not verify the signature.
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential=test/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// Returns all machines as pairs of an ID and a state.
    fn machines(&self) -> BTreeSet<(String, String)> {
        let answer = self.ask("ec2", "Action=DescribeInstances&Version=2016-11-15");
        let ids = elements(&answer, "instanceId");
        let states = answer.split("<instanceState>").skip(1);
        let states = states.flat_map(|state| elements(state, "name").into_iter().take(1));
        ids.into_iter().zip(states).collect()
    }

    fn resources(&self) -> Vec<String> {
        let list = succeeds(self.workshop.terraform("cluster").args(["state", "list"]));
        let resources = list.lines().filter(|line| !line.starts_with("data."));
        resources.map(str::to_owned).collect()
    }
}

/// Returns the contents of the XML elements with the given name.
fn elements(xml: &str, name: &str) -> Vec<String> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let parts = xml.split(&start).skip(1);
    parts
        .map(|part| part.split(&end).next().unwrap().to_owned())
        .collect()
}

#[test]
fn cluster_can_be_applied_changed_during_run_and_destroyed() {
    let Some(account) = Account::open() else {
        return;
    };
    let apply = ["apply", "-auto-approve", "-input=false"];
    succeeds(&mut account.terraform(&apply));
    let resources = account.resources();
    assert!(resources.len() >= 35, "{resources:?}");
    // A second plan creates and deletes nothing.
    assert_eq!(account.creations_and_deletions(&[]), BTreeSet::new());

    // Starts a worker, as the watchdog does while a run is open.
    account.ask(
        "autoscaling",
        "Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=hatebeam-workers&DesiredCapacity=1",
    );
    let running = account.machines();
    assert_eq!(running.len(), 2, "{running:?}");
    assert!(
        running.iter().all(|(_, state)| state == "running"),
        "{running:?}"
    );
    let created = account.creations_and_deletions(&CHANGES);
    let operator = "aws_vpc_security_group_ingress_rule.coordinator_from_operator";
    assert!(
        created
            .iter()
            .all(|(action, address)| action == "create" && address.starts_with(operator)),
        "{created:?}"
    );
    succeeds(account.terraform(&apply).arg("plan"));
    assert_eq!(account.machines(), running);

    // In another region, Terraform would find no resources and remove all of them from its state. So these commands must
    // fail.
    let before = account.resources();
    for action in [&["plan"][..], &["destroy", "-auto-approve"]] {
        let mut command = account.terraform(action);
        let output = command
            .args(["-input=false", "-var=region=eu-central-1"])
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert!(
            !output.status.success() && message.contains("not in eu-central-1"),
            "{action:?}: {message}"
        );
    }
    assert_eq!(account.resources(), before);
    assert_eq!(account.machines(), running);

    succeeds(&mut account.terraform(&["destroy", "-auto-approve", "-input=false"]));
    assert_eq!(account.resources(), Vec::<String>::new());
    let left = account.machines();
    assert!(
        left.iter().all(|(_, state)| state == "terminated"),
        "{left:?}"
    );
    for (service, body, name) in [
        (
            "autoscaling",
            "Action=DescribeAutoScalingGroups&Version=2011-01-01",
            "AutoScalingGroupName",
        ),
        ("iam", "Action=ListRoles&Version=2010-05-08", "RoleName"),
        (
            "ec2",
            "Action=DescribeLaunchTemplates&Version=2016-11-15",
            "launchTemplateName",
        ),
        ("sns", "Action=ListTopics&Version=2010-03-31", "TopicArn"),
    ] {
        let left = elements(&account.ask(service, body), name);
        assert_eq!(left, Vec::<String>::new(), "{service}");
    }
    // Only the account's default VPC remains.
    let vpcs = account.ask("ec2", "Action=DescribeVpcs&Version=2016-11-15");
    assert_eq!(elements(&vpcs, "isDefault"), ["true"]);
}
