//! `doctor`, with a coordinator and a server for an object store.

use super::place_of;
use crate::cost::Service;
use crate::rig::{Rig, hatebeam};
use crate::servers::Server;
use serde_json::Value;

fn find<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["check"] == name).collect()
}

#[test]
fn a_coordinator_is_looked_at() {
    let mut rig = Rig::new();
    rig.start_coordinator();
    let output = rig.client(&[
        "doctor",
        "--json",
        "--dir",
        rig.dir.path().to_str().unwrap(),
    ]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = find(&report, "coordinator");
    assert_eq!(found[0]["verdict"], "ok", "{report}");
    let text = found[0]["found"].as_str().unwrap();
    let version = concat!("of the same version ", env!("CARGO_PKG_VERSION"));
    assert!(
        text.contains(version) && text.contains("0 workers"),
        "{text}"
    );
    let clock = find(&report, "clock")[0]["found"].as_str().unwrap();
    assert!(
        clock.contains("agrees with that of the coordinator"),
        "{clock}"
    );
}

#[test]
fn an_s3_server_is_looked_at() {
    for (server, honours) in [(Server::moto(), true), (Server::garage(), false)] {
        let Some(server) = server else {
            continue;
        };
        let place = place_of(&server, &server.options().endpoint.unwrap());
        let mut command = hatebeam();
        command.args(["doctor", "--json", "--store", &place.store]);
        command.args(["--dir", env!("CARGO_TARGET_TMPDIR")]);
        command.args(&place.flags).envs(place.env);
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let store = find(&report, "object store")[0];
        assert_eq!(store["verdict"] == "ok", honours, "{report}");
        assert_ne!(store["verdict"], "failed", "{report}");
        assert_eq!(find(&report, "store speed").len(), 1, "{report}");
        let clock = find(&report, "clock")[0]["found"].as_str().unwrap();
        assert!(
            clock.contains("agrees with that of the object store"),
            "{clock}"
        );
    }
}

#[test]
fn a_machine_of_aws_is_looked_at() {
    let service = Service::start();
    for (endpoint, verdict, part) in [
        (
            service.endpoint.as_str(),
            "ok",
            "c5d.18xlarge, spot, in us-east-1b, $1.38 an hour",
        ),
        ("http://127.0.0.1:1", "warning", "does not answer"),
    ] {
        let mut command = hatebeam();
        command.args(["doctor", "--json", "--dir", env!("CARGO_TARGET_TMPDIR")]);
        command.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint);
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let machine = find(&report, "machine")[0];
        assert_eq!(machine["verdict"], verdict, "{machine}");
        assert!(
            machine["found"].as_str().unwrap().contains(part),
            "{machine}"
        );
    }
}
