//! Tests of `hatebeam doctor` with a coordinator, an S3 server and an AWS machine.

use crate::harness::{Cluster, Store};
use crate::metadata::MetadataService;
use crate::program::hatebeam;
use crate::servers::Server;
use serde_json::Value;

/// A path that is not a folder, so that the command does not measure the speed of a disk.
const NO_DIR: &str = "/dev/null";

fn checks<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["check"] == name).collect()
}

/// Returns the finding of the first check with the given name.
#[track_caller]
fn found<'a>(report: &'a Value, name: &str) -> &'a str {
    checks(report, name)[0]["found"].as_str().unwrap()
}

#[test]
fn doctor_checks_coordinator() {
    let cluster = Cluster::start(&[]);
    let output = cluster.client(&["doctor", "--json", "--dir", NO_DIR]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        checks(&report, "coordinator")[0]["verdict"],
        "ok",
        "{report}"
    );
    let text = found(&report, "coordinator");
    let version = concat!("has the same version ", env!("CARGO_PKG_VERSION"));
    assert!(
        text.contains(version) && text.contains("0 workers"),
        "{text}"
    );
    let clock = found(&report, "clock");
    assert!(
        clock.contains("agrees with the clock of the coordinator"),
        "{clock}"
    );
}

#[test]
fn doctor_warns_about_store_without_conditional_writes() {
    for (server, verdict) in [(Server::moto(), "ok"), (Server::garage(), "warning")] {
        let Some(server) = server else {
            continue;
        };
        let store = Store::s3(&server, &server.options().endpoint.unwrap());
        let mut command = hatebeam();
        command.args(["doctor", "--json", "--dir", NO_DIR]);
        store.configure(&mut command);
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let check = checks(&report, "object store")[0];
        assert_eq!(check["verdict"], verdict, "{report}");
        assert_eq!(checks(&report, "store speed").len(), 1, "{report}");
        let clock = found(&report, "clock");
        assert!(
            clock.contains("agrees with the clock of the object store"),
            "{clock}"
        );
    }
}

#[test]
fn doctor_checks_aws_machine() {
    let service = MetadataService::start();
    let price = "c5d.18xlarge, spot, in us-east-1b, $1.38 per hour";
    for (endpoint, verdict, expected) in [
        (service.endpoint.as_str(), "ok", price),
        ("http://127.0.0.1:1", "warning", "does not answer"),
    ] {
        let mut command = hatebeam();
        command.args(["doctor", "--json", "--dir", NO_DIR]);
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint);
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let machine = checks(&report, "machine")[0];
        assert_eq!(machine["verdict"], verdict, "{machine}");
        let text = found(&report, "machine");
        assert!(text.contains(expected), "{text}");
    }
}
