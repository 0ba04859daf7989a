//! Simulated hosts on one machine. Each host is a network namespace that is connected to a common bridge.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Name of the host on which the coordinator and the clients run.
pub(crate) const COORDINATOR: &str = "c";

/// Simulated hosts and their network, which are deleted on drop.
pub(crate) struct Hosts {
    /// Prefix of the names of all namespaces.
    prefix: String,
    names: Vec<String>,
}

impl Hosts {
    /// Creates hosts for a coordinator and the given workers. If network namespaces cannot be created, prints the
    /// reason and returns `None`.
    pub(crate) fn new(workers: &[&str]) -> Option<Hosts> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let names = [&[COORDINATOR], workers].concat();
        let hosts = Hosts {
            prefix: format!("hb{}x{number}", std::process::id()),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        match hosts.create() {
            Ok(()) => Some(hosts),
            Err(reason) => {
                println!("skipped: cannot create network namespaces: {reason}");
                None
            }
        }
    }

    fn create(&self) -> Result<(), String> {
        let bridge = self.namespace("sw");
        ip(&["netns", "add", &bridge])?;
        ip(&["-n", &bridge, "link", "add", "bridge0", "type", "bridge"])?;
        ip(&["-n", &bridge, "link", "set", "bridge0", "up"])?;
        for (at, name) in self.names.iter().enumerate() {
            let (host, port) = (self.namespace(name), format!("p{at}"));
            ip(&["netns", "add", &host])?;
            ip(&[
                "-n", &bridge, "link", "add", &port, "type", "veth", "peer", "name", "net",
                "netns", &host,
            ])?;
            ip(&[
                "-n", &bridge, "link", "set", &port, "master", "bridge0", "up",
            ])?;
            let address = format!("{}/24", self.address(name));
            ip(&["-n", &host, "addr", "add", &address, "dev", "net"])?;
            ip(&["-n", &host, "link", "set", "net", "up"])?;
            ip(&["-n", &host, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    pub(crate) fn address(&self, name: &str) -> String {
        let at = self.names.iter().position(|host| host == name);
        format!("10.77.0.{}", at.unwrap() + 1)
    }

    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(name)]);
        command
    }

    /// Drops the packets that the host `from` sends to the host `to`. The opposite direction still works.
    pub(crate) fn cut_one_way(&self, from: &str, to: &str) {
        // Sends the frames to a link-layer address that no host has. They are lost without an error.
        let (host, address) = (self.namespace(from), self.address(to));
        let nowhere = [
            "lladdr",
            "02:00:00:00:00:fe",
            "dev",
            "net",
            "nud",
            "permanent",
        ];
        ip(&[&["-n", &host, "neigh", "replace", &address][..], &nowhere].concat()).unwrap();
    }

    /// Undoes [`cut_one_way`](Hosts::cut_one_way).
    pub(crate) fn restore(&self, from: &str, to: &str) {
        let (host, address) = (self.namespace(from), self.address(to));
        ip(&["-n", &host, "neigh", "del", &address, "dev", "net"]).unwrap();
    }

    pub(crate) fn unplug(&self, name: &str) {
        self.set_link(name, "down");
    }

    /// Undoes [`unplug`](Hosts::unplug).
    pub(crate) fn plug_in(&self, name: &str) {
        self.set_link(name, "up");
    }

    fn set_link(&self, name: &str, state: &str) {
        ip(&["-n", &self.namespace(name), "link", "set", "net", state]).unwrap();
    }

    /// Limits the rate at which a host sends packets. A packet waits in the host's queue for at most `latency`. Returns
    /// `false` if this machine does not support the limit.
    pub(crate) fn slow(&self, name: &str, rate: &str, latency: &str) -> bool {
        let mut command = self.command(name);
        command.args(["tc", "qdisc", "replace", "dev", "net", "root", "tbf"]);
        command.args(["rate", rate, "burst", "32kbit", "latency", latency]);
        run(command)
            .inspect_err(|reason| println!("skipped: cannot slow down the network: {reason}"))
            .is_ok()
    }

    /// Drops each packet that a host sends, with a probability of `per_thousand` in 1000. Returns `false` if this
    /// machine does not support packet loss.
    pub(crate) fn lose(&self, name: &str, per_thousand: u32) -> bool {
        let chain = "type filter hook output priority 0;";
        let rule = format!("numgen random mod 1000 < {per_thousand} drop;");
        let rules = format!("table inet lossy {{ chain out {{ {chain} {rule} }}; }};");
        let mut command = self.command(name);
        command.args(["nft", &rules]);
        run(command)
            .inspect_err(|reason| println!("skipped: cannot drop packets: {reason}"))
            .is_ok()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().map(String::as_str).chain(["sw"]) {
            let _ = ip(&["netns", "del", &self.namespace(name)]);
        }
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(args);
    run(command)
}

/// Runs a command and waits until it exits. If the command fails, returns its command line and its standard error.
fn run(mut command: Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", stderr.trim()))
}
