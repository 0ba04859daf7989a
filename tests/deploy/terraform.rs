//! Tests of the modules in terraform/, with checkov and with Terraform's mock provider.

mod machine;

use crate::support::{Start, checkov, files_below, list, path, read, succeeds, text, tool};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const MODULES: [&str; 2] = ["bucket", "cluster"];

/// An initialized copy of the modules. Terraform writes its files to the copy and not to the checkout.
struct Workshop {
    dir: tempfile::TempDir,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        // Skips files that `terraform init` has created in the checkout.
        if name.to_str().unwrap().starts_with(".terraform") {
            continue;
        }
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(name));
        } else {
            std::fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// Returns whether Terraform has a configuration file, which may name a provider mirror.
fn is_configured() -> bool {
    let named = std::env::var_os("TF_CLI_CONFIG_FILE").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".terraformrc"));
    named.or(home).is_some_and(|file| file.is_file())
}

impl Workshop {
    /// Creates the copy. If Terraform or its AWS provider is not installed, prints a message and returns `None`.
    fn open() -> Option<Workshop> {
        tool("HATEBEAM_TERRAFORM", "terraform")?;
        let plugins = std::env::var_os("HATEBEAM_TERRAFORM_PLUGINS")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from);
        if plugins.is_none() && !is_configured() {
            println!(
                "skipped: no mirror with Terraform's AWS provider (scripts/terraform-tools.sh looks for one)"
            );
            return None;
        }
        let workshop = Workshop {
            dir: tempfile::tempdir().unwrap(),
        };
        copy(&path("terraform"), &workshop.path("terraform"));
        copy(&path("deploy/systemd"), &workshop.path("deploy/systemd"));
        if let Some(plugins) = plugins {
            let mirror = format!(
                "provider_installation {{\n  filesystem_mirror {{\n    path = {}\n  }}\n}}\n",
                serde_json::to_string(&plugins).unwrap()
            );
            std::fs::write(workshop.path("terraformrc"), mirror).unwrap();
        }
        for module in MODULES {
            let args = ["init", "-backend=false", "-input=false", "-no-color"];
            succeeds(workshop.terraform(module).args(args));
        }
        Some(workshop)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn terraform(&self, module: &str) -> Command {
        let mut command = tool("HATEBEAM_TERRAFORM", "terraform").unwrap();
        let (config, absent) = (self.path("terraformrc"), self.path("absent"));
        if config.exists() {
            command.env("TF_CLI_CONFIG_FILE", config);
        }
        // Removes credentials, in case a test contacts AWS by mistake.
        command
            .current_dir(self.path(&format!("terraform/{module}")))
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_SHARED_CREDENTIALS_FILE", &absent)
            .env("AWS_CONFIG_FILE", &absent)
            .env("CHECKPOINT_DISABLE", "1");
        for variable in ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "TF_LOG"] {
            command.env_remove(variable);
        }
        command
    }
}

/// Copy of the modules that all tests share, because its initialization takes seconds.
static WORKSHOP: LazyLock<Option<Workshop>> = LazyLock::new(Workshop::open);

#[test]
fn modules_are_formatted() {
    let Some(mut terraform) = tool("HATEBEAM_TERRAFORM", "terraform") else {
        return;
    };
    succeeds(
        terraform
            .args(["fmt", "-check", "-diff", "-recursive"])
            .arg(path("terraform"))
            .env("CHECKPOINT_DISABLE", "1"),
    );
}

#[test]
fn modules_pass_their_own_tests() {
    let Some(workshop) = &*WORKSHOP else { return };
    for module in MODULES {
        let output = succeeds(workshop.terraform(module).args(["test", "-no-color"]));
        let (_, summary) = output.rsplit_once("Success! ").unwrap();
        assert!(summary.contains(" passed, 0 failed."), "{output}");
        assert!(!summary.starts_with("0 "), "{output}");
    }
}

#[test]
fn modules_pass_checkov_and_skip_only_rules_that_they_violate() {
    let mut used = BTreeSet::new();
    for module in MODULES {
        let Some(report) = checkov("terraform", &format!("terraform/{module}"), &[]) else {
            return;
        };
        let checks = list(&report, "/results/skipped_checks");
        used.extend(checks.map(|check| text(check, "/check_id").to_owned()));
    }
    assert_eq!(used, exceptions());
}

/// Returns the ids of the checkov rules that comments in the modules skip.
fn exceptions() -> BTreeSet<String> {
    let files = MODULES.map(|module| files_below(&format!("terraform/{module}"), ".tf"));
    let mut ids = BTreeSet::new();
    for name in files.iter().flatten() {
        let text = read(name);
        let comments = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("#checkov:skip="));
        ids.extend(comments.map(|comment| comment.split(':').next().unwrap().to_owned()));
    }
    ids
}

/// Results of the run `user_data` in the Terraform tests of the module `cluster`.
struct Rendered {
    /// Contents of each machine's files. The outer keys are the addresses of the machines' Terraform resources, and the
    /// inner keys are the paths of the files.
    machines: BTreeMap<String, BTreeMap<String, String>>,
    /// Text of the module's output `next`.
    next: String,
}

fn unpacked(base64: &str) -> String {
    let mut unpack = Command::new("sh")
        .args(["-c", "base64 -d | gzip -d"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = unpack.stdin.take().unwrap();
    stdin.write_all(base64.as_bytes()).unwrap();
    drop(stdin);
    String::from_utf8(unpack.wait_with_output().unwrap().stdout).unwrap()
}

/// Returns the contents of the files in a cloud-config, by path. The cloud-config's YAML is also valid JSON.
fn files_of(user_data: &str) -> BTreeMap<String, String> {
    assert!(user_data.starts_with("#cloud-config\n"), "{user_data}");
    let lines = user_data.lines().filter(|line| !line.starts_with('#'));
    let config: Value = serde_json::from_str(&lines.collect::<String>()).unwrap();
    let files = config["write_files"].as_array().unwrap().iter();
    let parts = |file| {
        (
            text(file, "/path").to_owned(),
            text(file, "/content").to_owned(),
        )
    };
    files.map(parts).collect()
}

impl Rendered {
    fn read() -> Option<Rendered> {
        let workshop = WORKSHOP.as_ref()?;
        let output = succeeds(workshop.terraform("cluster").args([
            "test",
            "-verbose",
            "-json",
            "-filter=tests/user_data.tftest.hcl",
        ]));
        let state = output
            .lines()
            .find(|line| line.contains(r#""test_state":{"#));
        let state: Value = serde_json::from_str(state.unwrap()).unwrap();
        let resources = state.pointer("/test_state/root_module/resources").unwrap();
        let mut machines = BTreeMap::new();
        for resource in resources.as_array().unwrap() {
            let key = match text(resource, "/type") {
                "aws_instance" => "/values/user_data_base64",
                "aws_launch_template" => "/values/user_data",
                _ => continue,
            };
            let user_data = unpacked(text(resource, key));
            machines.insert(text(resource, "/address").to_owned(), files_of(&user_data));
        }
        assert_eq!(machines.len(), 3, "{:?}", machines.keys());
        let next = text(&state, "/test_state/outputs/next/value").to_owned();
        Some(Rendered { machines, next })
    }
}

static RENDERED: LazyLock<Option<Rendered>> = LazyLock::new(Rendered::read);

/// Returns the command line and environment with which the unit of a role starts the program on a machine with the
/// given files.
fn start(files: &BTreeMap<String, String>, role: &str) -> Start {
    let unit = &files[&format!("/etc/systemd/system/hatebeam-{role}.service")];
    let env = &files[&format!("/etc/hatebeam/{role}.env")];
    let assigns = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        // The machine replaces @ADDRESS@ with its own address.
        (name.to_owned(), value.replace("@ADDRESS@", "10.77.0.9"))
    };
    let (options, variables): (Vec<_>, Vec<_>) = env
        .lines()
        .map(assigns)
        .partition(|(name, _)| name == "OPTIONS");
    let command = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/hatebeam "));
    let command = command.unwrap().replace("$OPTIONS", &options[0].1);
    Start {
        place: format!("{role}.env"),
        args: command.split_whitespace().map(str::to_owned).collect(),
        variables,
    }
}

#[test]
fn program_accepts_command_lines_of_machines() {
    let Some(rendered) = &*RENDERED else { return };
    for (machine, files) in &rendered.machines {
        let is_worker = machine.contains("worker");
        let role = if is_worker { "worker" } else { "coordinator" };
        let start = start(files, role);
        start.check();
        assert_eq!(start.variable("HATEBEAM_TLS"), Some("/run/hatebeam/tls"));
        assert!(!start.has("--insecure-bind"), "{machine}");
        // The unit runs as this user.
        assert!(files["/usr/lib/sysusers.d/hatebeam.conf"].contains("u hatebeam "));
        if is_worker {
            assert_eq!(start.port("--listen"), 7801);
            let coordinator = start.variable("HATEBEAM_COORDINATOR");
            assert_eq!(coordinator, Some("https://10.77.0.4:7800"));
            let dir = start.option("--dir").unwrap();
            assert!(dir.starts_with("/var/lib/hatebeam/"), "{dir}");
        } else {
            assert_eq!(
                (start.port("--listen"), start.port("--dashboard")),
                (7800, 7880)
            );
            assert_eq!(start.option("--idle-stop"), Some("60"));
            assert_eq!(start.option("--price-per-hour"), Some("0.0168"));
        }
    }
}

#[test]
fn machines_have_the_scripts_that_they_run() {
    let Some(rendered) = &*RENDERED else { return };
    for (machine, files) in &rendered.machines {
        for (name, content) in files {
            let words =
                content.split(|letter: char| letter.is_whitespace() || "='+".contains(letter));
            for script in words.filter(|word| word.starts_with("/usr/local/lib/hatebeam/")) {
                // `boot` runs on both kinds of machine, but runs `disks` only on workers.
                let is_for_workers = name.ends_with("/boot") && script.ends_with("/disks");
                let is_there = files.contains_key(script) || is_for_workers;
                assert!(is_there, "{machine}: {name}: {script}");
            }
        }
        let is_worker = machine.contains("worker");
        assert_eq!(
            files.contains_key("/usr/local/lib/hatebeam/disks"),
            is_worker
        );
        let guard = if is_worker { "power-off" } else { "watchdog" };
        for ending in ["service", "timer"] {
            let unit = format!("/etc/systemd/system/hatebeam-{guard}.{ending}");
            assert!(files.contains_key(&unit), "{machine}: no {unit}");
        }
    }
}

/// Returns the command lines of the program in a document.
fn commands(text: &str) -> Vec<Vec<String>> {
    let whole = text.replace("\\\n", " ");
    let lines = whole.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix("hatebeam "))
        .map(|line| line.split_once(" #").map_or(line, |(line, _)| line))
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect()
}

#[track_caller]
fn check_commands(place: &str, text: &str) {
    let commands = commands(text);
    assert!(!commands.is_empty(), "{place}");
    for args in commands {
        let start = Start {
            place: place.to_owned(),
            args,
            variables: Vec::new(),
        };
        start.check();
    }
}

#[test]
fn program_accepts_documented_commands() {
    let readme = read("terraform/README.md");
    let blocks: Vec<&str> = readme.split("```").skip(1).step_by(2).collect();
    check_commands("terraform/README.md", &blocks.concat());
    let Some(rendered) = &*RENDERED else { return };
    check_commands("the output `next`", &rendered.next);
}

#[test]
fn readme_lists_every_variable() {
    let readme = read("terraform/README.md");
    for module in MODULES {
        let text = read(&format!("terraform/{module}/variables.tf"));
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("variable \""));
        for name in names.map(|rest| rest.split('"').next().unwrap()) {
            assert!(readme.contains(&format!("`{name}`")), "{module}: {name}");
        }
    }
}
