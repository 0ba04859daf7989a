//! Several hosts on one machine: network namespaces, each with a cable to a switch.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The host that the coordinator and the clients are on.
pub(crate) const COORDINATOR: &str = "c";

/// The hosts' network, which goes with this value.
pub(crate) struct Hosts {
    /// What the names of all its namespaces begin with.
    prefix: String,
    names: Vec<String>,
}

impl Hosts {
    /// Hosts for a coordinator and these workers; none, which is said aloud, where this machine does not
    /// allow it.
    pub(crate) fn new(workers: &[&str]) -> Option<Hosts> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let names = [&[COORDINATOR], workers].concat();
        let hosts = Hosts {
            prefix: format!("hb{}x{number}", std::process::id()),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        match hosts.make() {
            Ok(()) => Some(hosts),
            Err(reason) => {
                println!("SKIPPED: network namespaces cannot be made here: {reason}");
                None
            }
        }
    }

    fn make(&self) -> Result<(), String> {
        let switch = self.space("sw");
        ip(&["netns", "add", &switch])?;
        ip(&["-n", &switch, "link", "add", "bridge0", "type", "bridge"])?;
        ip(&["-n", &switch, "link", "set", "bridge0", "up"])?;
        for (at, name) in self.names.iter().enumerate() {
            let (space, port) = (self.space(name), format!("p{at}"));
            ip(&["netns", "add", &space])?;
            ip(&[
                "-n", &switch, "link", "add", &port, "type", "veth", "peer", "name", "net",
                "netns", &space,
            ])?;
            ip(&[
                "-n", &switch, "link", "set", &port, "master", "bridge0", "up",
            ])?;
            let address = format!("{}/24", self.address(name));
            ip(&["-n", &space, "addr", "add", &address, "dev", "net"])?;
            ip(&["-n", &space, "link", "set", "net", "up"])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    fn space(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// The address of a host.
    pub(crate) fn address(&self, name: &str) -> String {
        let at = self.names.iter().position(|host| host == name);
        format!("10.77.0.{}", at.unwrap() + 1)
    }

    /// A command that is carried out on a host.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(name)]);
        command
    }

    /// What one host sends to another does not come to it any more; what that one sends still does.
    pub(crate) fn cut_one_way(&self, from: &str, to: &str) {
        // An address of no host: the frames go nowhere, and nobody is told.
        let (space, address) = (self.space(from), self.address(to));
        let nowhere = [
            "lladdr",
            "02:00:00:00:00:fe",
            "dev",
            "net",
            "nud",
            "permanent",
        ];
        ip(&[&["-n", &space, "neigh", "replace", &address][..], &nowhere].concat()).unwrap();
    }

    /// Undoes [`cut_one_way`](Hosts::cut_one_way).
    pub(crate) fn mend(&self, from: &str, to: &str) {
        let (space, address) = (self.space(from), self.address(to));
        ip(&["-n", &space, "neigh", "del", &address, "dev", "net"]).unwrap();
    }

    /// Pulls a host's cable, or puts it in again.
    pub(crate) fn plug(&self, name: &str, is_in: bool) {
        let state = if is_in { "up" } else { "down" };
        ip(&["-n", &self.space(name), "link", "set", "net", state]).unwrap();
    }

    /// Makes what a host sends slow, and late; whether this machine can.
    pub(crate) fn slow(&self, name: &str, rate: &str, latency: &str) -> bool {
        let mut command = self.command(name);
        command.args(["tc", "qdisc", "replace", "dev", "net", "root", "tbf"]);
        command.args(["rate", rate, "burst", "32kbit", "latency", latency]);
        done(command)
            .inspect_err(|reason| println!("SKIPPED: no slow network: {reason}"))
            .is_ok()
    }

    /// Loses some of the packets that a host sends, so many in a thousand; whether this machine can.
    pub(crate) fn lose(&self, name: &str, in_a_thousand: u32) -> bool {
        let mut rules =
            String::from("table inet lossy { chain out { type filter hook output priority 0; ");
        let _ = write!(
            rules,
            "numgen random mod 1000 < {in_a_thousand} drop; }}; }};"
        );
        let mut command = self.command(name);
        command.args(["nft", &rules]);
        let lost = done(command);
        lost.inspect_err(|reason| println!("SKIPPED: no lossy network: {reason}"))
            .is_ok()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names.iter().map(String::as_str).chain(["sw"]) {
            let _ = ip(&["netns", "del", &self.space(name)]);
        }
    }
}

fn ip(args: &[&str]) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(args);
    done(command)
}

fn done(mut command: Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
