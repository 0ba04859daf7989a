//! Tests of the scripts on the AWS machines. Stand-ins replace the AWS CLI, the clock and other system commands.

use crate::support::{files_below, read, succeeds, tool};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const FOLDER: &str = "terraform/cluster/machine";

#[test]
fn units_pass_systemd_analyze_verify() {
    let Some(mut verify) = tool("HATEBEAM_SYSTEMD_ANALYZE", "systemd-analyze") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut units = Vec::new();
    for (folder, ending) in [
        (FOLDER, ".service"),
        (FOLDER, ".timer"),
        ("deploy/systemd", ".service"),
    ] {
        for name in files_below(folder, ending) {
            let (_, unit) = name.rsplit_once('/').unwrap();
            // Replaces programs that are not installed on this machine.
            let text = read(&name)
                .replace("/usr/local/bin/hatebeam", "/bin/true")
                .replace("/usr/local/lib/hatebeam/watchdog", "/bin/true")
                .replace("/usr/local/lib/hatebeam/update", "/bin/true")
                .replace("/usr/local/lib/hatebeam/disks", "/bin/true")
                .replace("/usr/local/lib/hatebeam/ship-logs", "/bin/true")
                .replace("/usr/local/lib/hatebeam/power-off", "/bin/true");
            let file = dir.path().join(unit);
            std::fs::write(&file, text).unwrap();
            if folder != FOLDER {
                let drop_ins = dir.path().join(format!("{unit}.d"));
                std::fs::create_dir(&drop_ins).unwrap();
                let role = unit
                    .trim_start_matches("hatebeam-")
                    .trim_end_matches(".service");
                let drop_in = read(&format!("{FOLDER}/{role}.conf"))
                    .replace("/usr/local/lib/hatebeam/prepare", "/bin/true");
                std::fs::write(drop_ins.join("aws.conf"), drop_in).unwrap();
                if role == "worker" {
                    units.push(numa_unit(dir.path()));
                }
            }
            units.push(file);
        }
    }
    assert_eq!(units.len(), 10, "{units:?}");
    let output = verify
        .arg("verify")
        .args(units)
        .env("SYSTEMD_LOG_LEVEL", "warning")
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    // Ignores messages about other units, and about the missing script fetch-secrets.
    let is_clean = messages
        .lines()
        .all(|line| !line.contains("hatebeam") || line.contains("fetch-secrets"));
    assert!(is_clean, "{messages}");
}

/// Writes the unit for the worker of a NUMA node, as Terraform and the script `boot` do. Returns the path of the unit.
fn numa_unit(dir: &Path) -> PathBuf {
    let text = read("deploy/systemd/hatebeam-worker.service")
        .replace("/usr/local/bin/hatebeam", "/bin/true")
        .replace("hatebeam/worker", "hatebeam/worker-%i");
    std::fs::write(dir.join("hatebeam-worker@.service"), text).unwrap();
    let drop_ins = dir.join("hatebeam-worker@1.service.d");
    std::fs::create_dir(&drop_ins).unwrap();
    let node = "[Service]\nCPUAffinity=numa\nNUMAPolicy=preferred\nNUMAMask=1\nMemoryMax=47%\n";
    std::fs::write(drop_ins.join("node.conf"), node).unwrap();
    dir.join("hatebeam-worker@1.service")
}

/// A folder that a script uses as the root of the file system, with stand-ins for the commands that the script calls.
pub(super) struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    pub(super) fn new(env: &str) -> Machine {
        let machine = Machine {
            dir: tempfile::tempdir().unwrap(),
        };
        for folder in [
            "bin",
            "etc/hatebeam",
            "usr/local/bin",
            "usr/local/lib/hatebeam",
            "run",
        ] {
            std::fs::create_dir_all(machine.path(folder)).unwrap();
        }
        machine.write(
            "etc/hatebeam/settings.env",
            "AWS_REGION=here\nSETTINGS=s3://bucket/machines/x/worker.json\n",
        );
        machine.write("etc/hatebeam/machine.env", env);
        machine.write("log", "");
        machine
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a command that logs its name and arguments, and then runs `script` in the machine's folder.
    pub(super) fn command(&self, file: &str, script: &str) {
        let name = file.rsplit_once('/').map_or(file, |(_, name)| name);
        let dir = self.dir.path().display();
        self.write(
            file,
            &format!("#!/usr/bin/env bash\necho \"{name} $*\" >>{dir}/log\ncd {dir}\n{script}\n"),
        );
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(file), mode).unwrap();
    }

    pub(super) fn stand_in(&self, name: &str, script: &str) {
        self.command(&format!("bin/{name}"), script);
    }

    /// Runs a script with its absolute paths replaced by paths below the machine's folder.
    pub(super) fn run(&self, script: &str) -> Output {
        self.run_with(script, &[])
    }

    /// Runs a script like [`run`](Machine::run), with arguments.
    pub(super) fn run_with(&self, script: &str, args: &[&str]) -> Output {
        let mut text = read(&format!("{FOLDER}/{script}"));
        for place in [
            "/etc/hatebeam",
            "/usr/local",
            "/run/hatebeam",
            "/var/lib/hatebeam",
            "/etc/machine-id",
            "/etc/systemd",
            "/sys/devices",
        ] {
            text = text.replace(place, &format!("{}{place}", self.dir.path().display()));
        }
        self.write("script", &text);
        let system = std::env::var("PATH").unwrap();
        Command::new("bash")
            .arg(self.path("script"))
            .args(args)
            .env("PATH", format!("{}:{system}", self.path("bin").display()))
            .current_dir(self.dir.path())
            .output()
            .unwrap()
    }

    /// Returns the logged calls of commands since the previous call of this function.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = self.read("log").lines().map(str::to_owned).collect();
        self.write("log", "");
        calls
    }
}

/// Replaces the secret that the machine can fetch. The new secret contains files with the given names, whose contents
/// include `salt`.
fn offer_secret(machine: &Machine, names: &[&str], salt: &str) {
    let tls = machine.path("tls");
    let _ = std::fs::remove_dir_all(&tls);
    std::fs::create_dir(&tls).unwrap();
    for name in names {
        std::fs::write(tls.join(name), format!("{name} {salt}")).unwrap();
    }
    // This is the same command as in the module's output `next`.
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(tls)
        .arg("-czf")
        .arg(machine.path("secret"));
    succeeds(tar.args(names));
    let get =
        "secretsmanager get-secret-value --secret-id x/worker --query SecretBinary --output text";
    machine.stand_in("aws", &format!("[ \"$*\" = '{get}' ] && base64 secret"));
}

#[test]
fn fetched_secrets_are_private_and_never_partially_replaced() {
    let files = ["ca.pem", "worker.pem", "worker-key.pem", "token"];
    let machine = Machine::new(&format!(
        "SECRET=x/worker\nSECRET_FILES=\"{}\"\n",
        files.join(" ")
    ));
    machine.stand_in("chown", "");
    let offer = |names: &[&str], salt: &str| offer_secret(&machine, names, salt);
    let place = |name: &str| machine.path("run/hatebeam/tls").join(name);

    machine.stand_in("aws", "echo ResourceNotFoundException >&2; exit 254");
    let output = machine.run("fetch-secrets");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("terraform output -raw next"),
        "{message}"
    );
    assert!(!place("token").exists());

    // Files that the machine's role does not need are not extracted.
    offer(
        &[
            "ca.pem",
            "worker.pem",
            "worker-key.pem",
            "token",
            "ca-key.pem",
        ],
        "1",
    );
    assert!(machine.run("fetch-secrets").status.success());
    for name in files {
        assert_eq!(
            std::fs::read_to_string(place(name)).unwrap(),
            format!("{name} 1")
        );
        let mode = place(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    assert!(!place("ca-key.pem").exists());

    // A renewed secret replaces the files. An incomplete secret changes nothing.
    offer(&files, "2");
    assert!(machine.run("fetch-secrets").status.success());
    offer(&files[..3], "3");
    assert!(!machine.run("fetch-secrets").status.success());
    for name in files {
        assert_eq!(
            std::fs::read_to_string(place(name)).unwrap(),
            format!("{name} 2")
        );
    }
    // An unchanged secret replaces no files, because another worker may be reading them.
    let inode = |name: &str| std::os::unix::fs::MetadataExt::ino(&place(name).metadata().unwrap());
    let before = inode("token");
    offer(&files, "2");
    assert!(machine.run("fetch-secrets").status.success());
    assert_eq!(inode("token"), before);
    // If the last step of the replacement fails, nothing changes.
    offer(&files, "4");
    machine.stand_in("mv", "exit 1");
    assert!(!machine.run("fetch-secrets").status.success());
    for name in files {
        let content = std::fs::read_to_string(place(name)).unwrap();
        assert_eq!(content, format!("{name} 2"));
    }
    // Only the symbolic link and its target folder remain.
    let left = std::fs::read_dir(machine.path("run/hatebeam"))
        .unwrap()
        .count();
    assert_eq!(left, 2, "incomplete files were not removed");
}

/// Sets the state and the number of restarts of the machine's services.
fn with_service(machine: &Machine, state: &str, restarts: u32) {
    let script =
        format!("case $* in *ActiveState*) echo {state} ;; *NRestarts*) echo {restarts} ;; esac");
    machine.stand_in("systemctl", &script);
}

#[test]
fn machine_powers_off_after_worker_stops() {
    let machine = Machine::new("");
    machine.command("usr/local/lib/hatebeam/ship-logs", "");
    for (state, powers_off) in [
        ("active", false),
        ("activating", false),
        ("deactivating", false),
        ("inactive", true),
        ("failed", true),
    ] {
        with_service(&machine, state, 0);
        assert!(machine.run("power-off").status.success(), "{state}");
        let calls = machine.calls();
        let off = calls.contains(&"systemctl poweroff".to_owned());
        assert_eq!(off, powers_off, "{state}");
        assert_eq!(calls.contains(&"ship-logs ".to_owned()), powers_off);
    }
}

#[test]
fn machine_powers_off_if_worker_restarts_for_ten_minutes() {
    let machine = Machine::new("");
    machine.command("usr/local/lib/hatebeam/ship-logs", "");
    let is_off = |restarts| {
        with_service(&machine, "activating", restarts);
        assert!(machine.run("power-off").status.success());
        machine.calls().contains(&"systemctl poweroff".to_owned())
    };
    // A minute without a restart ends the first series of nine minutes.
    assert!((1..10).all(|minute| !is_off(4 * minute)));
    assert!(!is_off(36));
    assert!((10..19).all(|minute| !is_off(4 * minute)));
    assert!(is_off(76));
}

#[test]
fn machine_powers_off_after_last_of_several_workers_stops() {
    let machine = Machine::new("");
    machine.command("usr/local/lib/hatebeam/ship-logs", "");
    machine.write(
        "etc/hatebeam/services",
        "hatebeam-worker@0.service\nhatebeam-worker@1.service\n",
    );
    let is_off = |states: [&str; 2], restarts: [u32; 2]| {
        let script = format!(
            "case $* in *ActiveState*@0*) echo {} ;; *ActiveState*) echo {} ;; *NRestarts*@0*) echo {} ;; *) echo {} ;; esac",
            states[0], states[1], restarts[0], restarts[1]
        );
        machine.stand_in("systemctl", &script);
        assert!(machine.run("power-off").status.success());
        machine.calls().contains(&"systemctl poweroff".to_owned())
    };
    assert!(!is_off(["active", "active"], [0, 0]));
    assert!(!is_off(["inactive", "active"], [0, 0]));
    assert!(is_off(["inactive", "failed"], [0, 0]));
    // One of the two workers restarts in each of ten minutes.
    assert!((1..10).all(|minute| !is_off(["active", "activating"], [0, minute])));
    assert!(is_off(["active", "activating"], [0, 10]));
}

/// Creates NUMA nodes on the machine, one for each list of processors.
fn with_nodes(machine: &Machine, processors: &[&str]) {
    for (node, processors) in processors.iter().enumerate() {
        let folder = format!("sys/devices/system/node/node{node}");
        std::fs::create_dir_all(machine.path(&folder)).unwrap();
        machine.write(&format!("{folder}/cpulist"), &format!("{processors}\n"));
    }
}

#[test]
fn boot_starts_worker_per_numa_node_if_setting_is_true() {
    let one = "systemctl enable --now --no-block hatebeam-worker.service";
    let two =
        "systemctl enable --now --no-block hatebeam-worker@0.service hatebeam-worker@1.service";
    for (setting, processors, start) in [
        ("true", &["0-35", "36-71"][..], two),
        ("true", &["0-35", "36-71", ""], two),
        ("true", &["0-71"], one),
        ("false", &["0-35", "36-71"], one),
    ] {
        let machine = new_machine("worker", "0");
        let env = machine.read("etc/hatebeam/machine.env");
        let env = format!("{env}PER_NUMA_NODE={setting}\nPORTS=\"7801 9101\"\n");
        machine.write("etc/hatebeam/machine.env", &env);
        with_nodes(&machine, processors);
        let output = machine.run("boot");
        assert!(output.status.success(), "{output:?}");
        let calls = machine.calls();
        assert_eq!(
            calls.last().map(String::as_str),
            Some(start),
            "{processors:?}"
        );
        if start == two {
            let drop_in = machine.read("etc/systemd/system/hatebeam-worker@1.service.d/node.conf");
            assert_eq!(
                drop_in,
                "[Service]\nCPUAffinity=numa\nNUMAPolicy=preferred\nNUMAMask=1\nMemoryMax=47%\n"
            );
            assert!(machine.path("etc/hatebeam/worker-1.env").exists());
        }
    }
}

#[test]
fn workers_of_numa_nodes_have_different_ports_and_environments() {
    let sum = sum_of(&new_machine("worker", "0"));
    let machine = new_machine("worker", &sum);
    let env = machine.read("etc/hatebeam/machine.env");
    machine.write(
        "etc/hatebeam/machine.env",
        &format!("{env}PORTS=\"7801 9101\"\n"),
    );
    machine.write(
        "etc/hatebeam/worker.env",
        "HATEBEAM_COORDINATOR=https://10.77.0.10:7800\nOPTIONS=--listen @ADDRESS@:7801 --metrics 127.0.0.1:9101 @PRICE@\n",
    );
    for node in ["0", "1"] {
        let output = machine.run_with("prepare", &[node]);
        assert!(output.status.success(), "{output:?}");
    }
    let options = |ports: [u16; 2]| {
        format!(
            "HATEBEAM_COORDINATOR=https://10.77.0.10:7800\nOPTIONS=--listen 10.77.1.2:{} --metrics 127.0.0.1:{} \
             --price-per-hour 1.382100\n",
            ports[0], ports[1]
        )
    };
    assert_eq!(
        machine.read("etc/hatebeam/worker-0.env"),
        options([7801, 9101])
    );
    assert_eq!(
        machine.read("etc/hatebeam/worker-1.env"),
        options([7802, 9102])
    );
    // The common environment file still contains the placeholders.
    assert!(
        machine
            .read("etc/hatebeam/worker.env")
            .contains("@ADDRESS@")
    );
}

#[test]
fn all_disks_of_instance_store_are_used() {
    let line = |name: &str| format!("{name} Amazon EC2 NVMe Instance Storage\n");
    let system = "/dev/nvme0n1 Amazon Elastic Block Store\n";
    for (disks, device) in [
        (vec![], None),
        (vec!["/dev/nvme1n1"], Some("/dev/nvme1n1")),
        (vec!["/dev/nvme1n1", "/dev/nvme2n1"], Some("/dev/md0")),
    ] {
        let machine = Machine::new("");
        machine.stand_in("mountpoint", "exit 1");
        let listed: String = disks.iter().map(|disk| line(disk)).collect();
        machine.write("disks", &format!("{system}{listed}"));
        machine.stand_in("lsblk", "cat disks");
        for command in ["mdadm", "mkfs.xfs", "mount", "chown"] {
            machine.stand_in(command, "");
        }
        assert!(machine.run("disks").status.success());
        let folder = machine.path("var/lib/hatebeam");
        let mut expected = Vec::new();
        if disks.len() > 1 {
            let (count, disks) = (disks.len(), disks.join(" "));
            expected.push("mdadm --stop --scan".to_owned());
            expected.push(format!(
                "mdadm --create /dev/md0 --run --force --level=0 --raid-devices={count} {disks}"
            ));
        }
        if let Some(device) = device {
            expected.push(format!("mkfs.xfs -q -f {device}"));
            expected.push(format!("mount -o noatime {device} {}", folder.display()));
            expected.push(format!("chown hatebeam:hatebeam {}", folder.display()));
        }
        let mut calls = machine.calls();
        calls.retain(|call| !call.starts_with("lsblk") && !call.starts_with("mountpoint"));
        assert_eq!(calls, expected);
        // If the disks are already mounted, the script changes nothing.
        machine.stand_in("mountpoint", "");
        assert!(machine.run("disks").status.success());
        assert_eq!(machine.calls().len(), 1);
    }
}

/// Returns a new machine with the given role. `sum` is the checksum of its program, and the program's name in the
/// bucket.
fn new_machine(role: &str, sum: &str) -> Machine {
    let machine = Machine::new(&format!(
        "ROLE={role}\nPROGRAM=s3://bucket/bin/{sum}\nPER_NUMA_NODE=false\n"
    ));
    machine.write("program", "#!/bin/sh\necho hatebeam 1\n");
    machine.stand_in(
        "aws",
        "case \"$1 $2\" in 's3 cp') cp program \"${@: -1}\" ;; 'ec2 describe-spot-price-history') cat price ;; esac",
    );
    machine.write("price", "1.382100\n");
    machine.write("cycle", "spot\n");
    machine.stand_in(
        "curl",
        "case $* in *token) echo t ;; *local-ipv4) echo 10.77.1.2 ;; *instance-life-cycle) cat cycle ;; \
         *instance-type) echo c5d.18xlarge ;; *availability-zone) echo us-east-1b ;; esac",
    );
    for command in ["dnf", "systemctl", "systemd-sysusers", "sleep"] {
        machine.stand_in(command, "");
    }
    for script in ["update", "fetch-secrets"] {
        machine.command(&format!("usr/local/lib/hatebeam/{script}"), "");
    }
    machine.write(
        &format!("etc/hatebeam/{role}.env"),
        "OPTIONS=--listen @ADDRESS@:7801 @PRICE@\n",
    );
    machine
}

fn sum_of(machine: &Machine) -> String {
    let output = succeeds(Command::new("sha256sum").arg(machine.path("program")));
    output.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn boot_starts_guard_before_other_steps_and_service_last() {
    for (role, guard) in [("worker", "power-off"), ("coordinator", "watchdog")] {
        let machine = new_machine(role, "0");
        let output = machine.run("boot");
        assert!(output.status.success(), "{output:?}");
        let calls = machine.calls();
        let at = |call: &str| calls.iter().position(|made| made == call);
        // The second call starts the guard, the timer that stops machines without work. The steps that can fail follow.
        assert_eq!(
            at(&format!(
                "systemctl enable --now hatebeam-{guard}.timer hatebeam-logs.timer"
            )),
            Some(1)
        );
        let start = format!("systemctl enable --now --no-block hatebeam-{role}.service");
        assert_eq!(at(&start), Some(calls.len() - 1));
    }
}

#[test]
fn prepare_installs_program_and_sets_address_and_price_of_service() {
    let sum = sum_of(&new_machine("worker", "0"));
    for (cycle, price, expected) in [
        ("spot", "1.382100", "--price-per-hour 1.382100"),
        ("spot", "None", ""),
        ("spot", "1; reboot", ""),
        ("on-demand", "1.382100", ""),
    ] {
        let machine = new_machine("worker", &sum);
        machine.write("cycle", cycle);
        machine.write("price", price);
        let output = machine.run("prepare");
        assert!(output.status.success(), "{output:?}");
        assert!(machine.path("usr/local/bin/hatebeam").exists());
        let env = machine.read("etc/hatebeam/worker-run.env");
        assert_eq!(env, format!("OPTIONS=--listen 10.77.1.2:7801 {expected}\n"));
        let calls = machine.calls();
        assert_eq!(calls.first().map(String::as_str), Some("update "));
        assert_eq!(calls.last().map(String::as_str), Some("fetch-secrets "));
        let asks = "--instance-types c5d.18xlarge --availability-zone us-east-1b";
        let is_asked = calls.iter().any(|call| call.contains(asks));
        assert_eq!(is_asked, cycle == "spot");
        // If the program is already installed, `prepare` does not download it.
        assert!(machine.run("prepare").status.success());
        assert!(
            machine
                .calls()
                .iter()
                .all(|call| !call.starts_with("aws s3"))
        );
    }
}

#[test]
fn address_and_price_are_in_private_file_that_update_does_not_write() {
    for role in ["worker", "coordinator"] {
        let sum = sum_of(&new_machine(role, "0"));
        let machine = new_machine(role, &sum);
        let template = machine.read(&format!("etc/hatebeam/{role}.env"));
        let output = machine.run("prepare");
        assert!(output.status.success(), "{output:?}");
        // `update` finds the content that it has written, so it does not write the file between `prepare` and the start.
        assert_eq!(machine.read(&format!("etc/hatebeam/{role}.env")), template);
        let file = machine.path(&format!("etc/hatebeam/{role}-run.env"));
        assert!(!std::fs::read_to_string(&file).unwrap().contains('@'));
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{role}");
        let drop_in = read(&format!("{FOLDER}/{role}.conf"));
        let setting = format!("EnvironmentFile=-/etc/hatebeam/{role}-run.env");
        assert!(drop_in.lines().any(|line| line == setting), "{drop_in}");
    }
}

#[test]
fn prepare_fails_without_address() {
    let sum = sum_of(&new_machine("coordinator", "0"));
    let machine = new_machine("coordinator", &sum);
    machine.stand_in("curl", "exit 1");
    assert!(!machine.run("prepare").status.success());
    assert!(!machine.path("etc/hatebeam/coordinator-run.env").exists());
}

#[test]
fn prepare_does_not_install_program_with_wrong_checksum() {
    let machine = new_machine("worker", &"0".repeat(64));
    assert!(!machine.run("prepare").status.success());
    assert!(!machine.path("usr/local/bin/hatebeam").exists());
}

#[test]
fn update_writes_settings_and_keeps_files_if_download_fails() {
    let machine = Machine::new("");
    machine.stand_in("aws", "[ \"$1 $2\" = 's3 cp' ] && cp settings \"${@: -1}\"");
    machine.stand_in("systemctl", "");
    machine.stand_in("sleep", "");
    let file = |name: &str| machine.path(name).display().to_string();
    let (script, secret, unit) = (
        file("usr/local/lib/hatebeam/boot"),
        file("etc/hatebeam/worker.env"),
        file("etc/systemd/system/hatebeam.service"),
    );
    let settings = |text: &str| {
        serde_json::json!({
            &script: {"mode": "0755", "content": "#!/bin/sh\n"},
            &secret: {"mode": "0600", "content": text},
            &unit: {"mode": "0644", "content": "[Unit]\n"},
        })
        .to_string()
    };
    machine.write("settings", &settings("A=ü 'x' $1\n"));
    assert!(machine.run("update").status.success());
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "A=ü 'x' $1\n");
    for (name, expected) in [(&script, 0o755), (&secret, 0o600), (&unit, 0o644)] {
        let mode = std::fs::metadata(name).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, expected, "{name}");
    }
    let reloads = || {
        machine
            .calls()
            .contains(&"systemctl daemon-reload".to_owned())
    };
    assert!(reloads());
    machine.write("settings", &settings("A=2\n"));
    assert!(machine.run("update").status.success());
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "A=2\n");
    assert!(!reloads());
    // If the download fails, no file changes, and the script retries only with --wait.
    machine.stand_in("aws", "exit 1");
    assert!(!machine.run("update").status.success());
    assert_eq!(machine.calls().len(), 1);
    assert!(!machine.run_with("update", &["--wait"]).status.success());
    assert!(machine.calls().len() > 20);
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "A=2\n");
}

#[test]
fn ship_logs_copies_each_piece_and_retries_failed_copies() {
    let machine = Machine::new("LOGS=s3://bucket/logs/x/worker\n");
    machine.write("etc/machine-id", "abc\n");
    machine.stand_in("date", "cat now");
    machine.stand_in("journalctl", "cat journal");
    let shipped = |now: &str, journal: &str| {
        machine.write("now", now);
        machine.write("journal", journal);
        let output = machine.run("ship-logs");
        let calls = machine.calls();
        let copied = calls.iter().filter(|call| call.starts_with("aws s3 cp"));
        let names = copied.map(|call| call.rsplit_once(' ').unwrap().1.to_owned());
        (output.status.success(), names.collect::<Vec<_>>())
    };
    let object = |name: &str| format!("s3://bucket/logs/x/worker/abc/{name}.log.gz");
    machine.stand_in("aws", "");
    assert_eq!(shipped("T1", "one\n"), (true, vec![object("T1")]));
    assert_eq!(shipped("T2", ""), (true, vec![]));
    machine.stand_in("aws", "exit 1");
    assert_eq!(shipped("T3", "three\n"), (false, vec![object("T3")]));
    machine.stand_in("aws", "");
    assert_eq!(
        shipped("T4", "four\n"),
        (true, vec![object("T3"), object("T4")])
    );
}

#[test]
fn on_event_mails_end_of_run_and_runs_command_of_operator() {
    let machine = Machine::new("TOPIC=topic\n");
    machine.write(
        "etc/hatebeam/event-command",
        "echo \"$HATEBEAM_EVENT\" >>events\ncat >>events\n",
    );
    machine.write("events", "");
    machine.stand_in("aws", "");
    for (event, mails) in [
        ("finished", 1),
        ("failed", 1),
        ("cancelled", 1),
        ("depth", 0),
    ] {
        let text = read(&format!("{FOLDER}/on-event")).replace(
            "/etc/hatebeam",
            &machine.path("etc/hatebeam").display().to_string(),
        );
        machine.write("script", &text);
        let system = std::env::var("PATH").unwrap();
        let mut hook = Command::new("bash")
            .arg(machine.path("script"))
            .env(
                "PATH",
                format!("{}:{system}", machine.path("bin").display()),
            )
            .env("HATEBEAM_EVENT", event)
            .env("HATEBEAM_RUN", "r")
            .env("HATEBEAM_SCORE", "7")
            .current_dir(machine.path("."))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        hook.stdin.take().unwrap().write_all(b"{json}\n").unwrap();
        assert!(hook.wait().unwrap().success());
        let calls = machine.calls();
        assert_eq!(calls.len(), mails, "{calls:?}");
    }
    assert_eq!(
        machine.read("events"),
        "finished\n{json}\nfailed\n{json}\ncancelled\n{json}\ndepth\n{json}\n"
    );
}
