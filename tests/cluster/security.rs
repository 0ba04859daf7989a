//! Tests of a cluster with certificates: the permissions of roles and tokens, and a coordinator that changes its
//! address.

use crate::program::{hatebeam, wait_until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A process that is killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // The process may already have exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A cluster with certificates. The folder `tls` contains all files from `hatebeam certs`. Each other folder contains a
/// selection.
struct SecureCluster {
    dir: TempDir,
}

impl SecureCluster {
    fn new() -> SecureCluster {
        let cluster = SecureCluster {
            dir: tempfile::tempdir().unwrap(),
        };
        let all = cluster.path("tls");
        let made = hatebeam().args(["certs", "--out"]).arg(&all).output();
        assert!(made.unwrap().status.success());
        let copy = |to: &str, files: &[(&str, &str)]| {
            let to = cluster.path(to);
            fs::create_dir(&to).unwrap();
            for (from, name) in files {
                fs::copy(all.join(from), to.join(name)).unwrap();
            }
        };
        let ca = ("ca.pem", "ca.pem");
        let pair = |member: &'static str, name: &'static str| match (member, name) {
            ("client", _) => [
                ("client.pem", "client.pem"),
                ("client-key.pem", "client-key.pem"),
            ],
            (_, "client") => [
                ("worker.pem", "client.pem"),
                ("worker-key.pem", "client-key.pem"),
            ],
            (_, "coordinator") => [
                ("worker.pem", "coordinator.pem"),
                ("worker-key.pem", "coordinator-key.pem"),
            ],
            _ => [
                ("worker.pem", "worker.pem"),
                ("worker-key.pem", "worker-key.pem"),
            ],
        };
        let token = ("token", "token");
        copy("worker", &[&[ca][..], &pair("worker", "worker")].concat());
        copy("client", &[&[ca, token][..], &pair("client", "")].concat());
        copy(
            "viewer",
            &[&[ca, ("view-token", "token")][..], &pair("client", "")].concat(),
        );
        // These folders contain a worker's certificate under the name of another role, and a token.
        copy(
            "false-client",
            &[&[ca, token][..], &pair("worker", "client")].concat(),
        );
        copy(
            "false-coordinator",
            &[&[ca, token][..], &pair("worker", "coordinator")].concat(),
        );
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, command: &str, tls: &str) -> Command {
        let mut program = hatebeam();
        program.arg(command).arg("--tls").arg(self.path(tls));
        program.current_dir(self.dir.path());
        program
    }

    /// Starts a coordinator. Returns the process and the URI.
    fn coordinator(&self, listen: &str) -> (Killed, String) {
        let mut command = self.command("coordinator", "tls");
        command.args([
            "--listen",
            listen,
            "--dashboard",
            "none",
            "--store",
            "store",
        ]);
        command.args(["--advertise", &format!("https://{listen}")]);
        command.args(["--min-workers", "2"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap();
        (Killed(child), format!("https://{address}"))
    }

    fn worker(&self, name: &str, coordinator: &str) -> Killed {
        let mut command = self.command("worker", "worker");
        command.args([
            "--coordinator",
            coordinator,
            "--store",
            "store",
            "--name",
            name,
        ]);
        command.args(["--threads", "1", "--dir", name]);
        Killed(command.stderr(Stdio::null()).spawn().unwrap())
    }

    fn call(&self, tls: &str, coordinator: &str, args: &[&str]) -> Output {
        let mut command = self.command(args[0], tls);
        command
            .args(&args[1..])
            .args(["--coordinator", coordinator]);
        command.output().unwrap()
    }

    fn workers(&self, coordinator: &str) -> usize {
        let status = self.call("viewer", coordinator, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        status["workers"].as_array().map_or(0, Vec::len)
    }
}

fn error_of(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn free_address() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

#[test]
fn certificates_and_tokens_limit_permissions() {
    let cluster = SecureCluster::new();
    let (_coordinator, uri) = cluster.coordinator(&free_address());
    // Workers have a certificate but no token.
    let _workers = [cluster.worker("w0", &uri), cluster.worker("w1", &uri)];
    wait_until(
        || cluster.workers(&uri) == 2,
        || "the two workers have not joined".to_owned(),
    );
    let submit = ["submit", "--width", "500", "--max-depth", "12", "--watch"];
    let searched = cluster.call("client", &uri, &submit);
    assert!(searched.status.success(), "{searched:?}");

    let refused = error_of(&cluster.call("viewer", &uri, &submit));
    assert!(refused.contains("this token is read-only"), "{refused}");
    let refused = error_of(&cluster.call("false-client", &uri, &submit));
    assert!(refused.contains("is for a worker"), "{refused}");
    // A client that the coordinator refuses does not try to reconnect for two minutes.
    let asked = Instant::now();
    let refused = error_of(&cluster.call("false-client", &uri, &["watch", "network"]));
    assert!(refused.contains("is for a worker"), "{refused}");
    assert!(asked.elapsed() < Duration::from_secs(60));
    // A coordinator does not start with the certificate of a worker.
    let mut command = cluster.command("coordinator", "false-coordinator");
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--dashboard",
        "none",
        "--store",
        "other",
    ]);
    let refused = error_of(&command.output().unwrap());
    assert!(refused.contains("not for a coordinator"), "{refused}");
}

#[test]
fn worker_reconnects_to_coordinator_at_new_address() {
    let cluster = SecureCluster::new();
    let nowhere = format!("https://{}", free_address());
    let (coordinator, uri) = cluster.coordinator(&free_address());
    // The worker's option contains a wrong address, and the object store contains the right address.
    let _worker = cluster.worker("w0", &nowhere);
    wait_until(
        || cluster.workers(&uri) == 1,
        || "the worker has not joined".to_owned(),
    );
    // While a run is open, here because it waits for another worker, the lease of a killed coordinator expires sooner.
    let submitted = cluster.call("client", &uri, &["submit", "--width", "100"]);
    assert!(submitted.status.success(), "{submitted:?}");
    drop(coordinator);
    let (_coordinator, moved) = cluster.coordinator(&free_address());
    assert_ne!(uri, moved);
    wait_until(
        || cluster.workers(&moved) == 1,
        || "the worker has not joined at the new address".to_owned(),
    );
    assert!(Path::new(&cluster.path("store/coordinator.json")).exists());
}
