//! Machines of AWS: terraform/. By Terraform, with a provider that makes nothing, and checkov, where they are at hand.

mod machine;

use crate::support::{Start, files_below, list, path, read, succeeds, text, tool};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const MODULES: [&str; 2] = ["bucket", "cluster"];

/// A copy of the modules, so that Terraform leaves nothing in the checkout, with Terraform set up.
struct Workshop {
    dir: tempfile::TempDir,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        // What a person's own use of them has left there.
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

/// Whether a configuration of Terraform's own says where providers are.
fn is_configured() -> bool {
    let named = std::env::var_os("TF_CLI_CONFIG_FILE").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".terraformrc"));
    named.or(home).is_some_and(|file| file.is_file())
}

impl Workshop {
    /// With the provider in its place, or none and a word about it.
    fn open() -> Option<Workshop> {
        tool("HATEBEAM_TERRAFORM", "terraform")?;
        let plugins = std::env::var_os("HATEBEAM_TERRAFORM_PLUGINS")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from);
        if plugins.is_none() && !is_configured() {
            println!(
                "skipped: no mirror with Terraform's provider for AWS (scripts/terraform-tools.sh looks for one)"
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
        let (config, nowhere) = (self.path("terraformrc"), self.path("nowhere"));
        if config.exists() {
            command.env("TF_CLI_CONFIG_FILE", config);
        }
        // Should anything be asked of AWS after all, it is by nobody.
        command
            .current_dir(self.path(&format!("terraform/{module}")))
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_SHARED_CREDENTIALS_FILE", &nowhere)
            .env("AWS_CONFIG_FILE", &nowhere)
            .env("CHECKPOINT_DISABLE", "1");
        for variable in ["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "TF_LOG"] {
            command.env_remove(variable);
        }
        command
    }
}

/// It takes seconds to set up, and the tests run beside each other.
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
fn modules_are_valid() {
    let Some(workshop) = &*WORKSHOP else { return };
    for module in MODULES {
        succeeds(workshop.terraform(module).args(["validate", "-no-color"]));
    }
}

#[test]
fn modules_do_what_their_tests_say() {
    let Some(workshop) = &*WORKSHOP else { return };
    for module in MODULES {
        let said = succeeds(workshop.terraform(module).args(["test", "-no-color"]));
        let (_, last) = said.rsplit_once("Success! ").unwrap();
        println!("{module}: {last}");
        assert!(last.contains(" passed, 0 failed."), "{said}");
        assert!(!last.starts_with("0 "), "{said}");
    }
}

#[test]
fn modules_are_found_secure() {
    let mut skipped = BTreeSet::new();
    for module in MODULES {
        let Some(mut checkov) = tool("HATEBEAM_CHECKOV", "checkov") else {
            return;
        };
        // Its rules come with it; what it could fetch are words about them.
        checkov.args(["--framework", "terraform", "--skip-download"]);
        checkov.args(["--output", "json", "--directory"]);
        let said = succeeds(checkov.arg(path("terraform").join(module)));
        let found: Value = serde_json::from_str(&said).unwrap();
        let count = |what: &str| found["summary"][what].as_u64();
        assert!(count("passed") > Some(20), "{}", found["summary"]);
        assert_eq!(count("parsing_errors"), Some(0), "{}", found["summary"]);
        let checks = list(&found, "/results/skipped_checks");
        skipped.extend(checks.map(|check| text(check, "/check_id").to_owned()));
    }
    // An exception from a rule that finds nothing any more is to be taken out.
    let excepted: BTreeSet<String> = exceptions().into_iter().map(|(id, _)| id).collect();
    assert_eq!(skipped, excepted);
}

/// What checkov is told not to look at, and why.
fn exceptions() -> Vec<(String, String)> {
    let files = MODULES.map(|module| files_below(&format!("terraform/{module}"), ".tf"));
    let texts = files.iter().flatten().map(|name| read(name));
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines
        .iter()
        .filter_map(|line| line.trim().strip_prefix("#checkov:skip="))
        .map(|exception| {
            let (id, why) = exception.split_once(':').unwrap();
            (id.to_owned(), why.to_owned())
        })
        .collect()
}

#[test]
fn every_exception_has_a_reason() {
    let exceptions = exceptions();
    assert!(!exceptions.is_empty());
    for (id, why) in exceptions {
        assert!(why.split_whitespace().count() >= 5, "{id}: {why}");
    }
}

/// What the run `told` of the cluster's tests came to.
struct Told {
    /// By the address of the resource: files by their names.
    machines: BTreeMap<String, BTreeMap<String, String>>,
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

/// The files of a cloud-config whose YAML is JSON.
fn files_of(told: &str) -> BTreeMap<String, String> {
    assert!(told.starts_with("#cloud-config\n"), "{told}");
    let lines = told.lines().filter(|line| !line.starts_with('#'));
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

impl Told {
    fn read() -> Option<Told> {
        let workshop = WORKSHOP.as_ref()?;
        let said = succeeds(workshop.terraform("cluster").args([
            "test",
            "-verbose",
            "-json",
            "-filter=tests/told.tftest.hcl",
        ]));
        let state = said.lines().find(|line| line.contains(r#""test_state":{"#));
        let state: Value = serde_json::from_str(state.unwrap()).unwrap();
        let resources = state.pointer("/test_state/root_module/resources").unwrap();
        let mut machines = BTreeMap::new();
        for resource in resources.as_array().unwrap() {
            let key = match text(resource, "/type") {
                "aws_instance" => "/values/user_data_base64",
                "aws_launch_template" => "/values/user_data",
                _ => continue,
            };
            let told = unpacked(text(resource, key));
            machines.insert(text(resource, "/address").to_owned(), files_of(&told));
        }
        assert_eq!(machines.len(), 3, "{:?}", machines.keys());
        let next = text(&state, "/test_state/outputs/next/value").to_owned();
        Some(Told { machines, next })
    }
}

static TOLD: LazyLock<Option<Told>> = LazyLock::new(Told::read);

/// How the unit of a role starts the program on a machine that was told this.
fn start(files: &BTreeMap<String, String>, role: &str) -> Start {
    let unit = &files[&format!("/etc/systemd/system/hatebeam-{role}.service")];
    let env = &files[&format!("/etc/hatebeam/{role}.env")];
    let assigns = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        // The machine puts its own address there.
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
fn the_program_understands_what_machines_are_told() {
    let Some(told) = &*TOLD else { return };
    for (machine, files) in &told.machines {
        let is_worker = machine.contains("worker");
        let role = if is_worker { "worker" } else { "coordinator" };
        let start = start(files, role);
        start.check();
        assert_eq!(start.variable("HATEBEAM_TLS"), Some("/run/hatebeam/tls"));
        assert!(!start.has("--insecure-bind"), "{machine}");
        // The unit starts it as the user that this file makes, and the disks are mounted where it writes.
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
fn machines_find_what_they_are_told_to_start() {
    let Some(told) = &*TOLD else { return };
    for (machine, files) in &told.machines {
        for (name, content) in files {
            for word in
                content.split(|letter: char| letter.is_whitespace() || "='+".contains(letter))
            {
                if word.starts_with("/usr/local/lib/hatebeam/") {
                    // `boot` is for both roles, and starts what is of one.
                    let other = name.ends_with("/boot") && word.ends_with("/disks");
                    assert!(
                        files.contains_key(word) || other,
                        "{machine}: {name}: {word}"
                    );
                }
            }
        }
        let is_worker = machine.contains("worker");
        assert_eq!(
            files.contains_key("/usr/local/lib/hatebeam/disks"),
            is_worker
        );
        let watcher = if is_worker { "leave" } else { "watchdog" };
        for ending in ["service", "timer"] {
            let unit = format!("/etc/systemd/system/hatebeam-{watcher}.{ending}");
            assert!(files.contains_key(&unit), "{machine}: no {unit}");
        }
    }
}

/// Command lines of the program in a text that a person types from.
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
fn the_program_understands_what_a_person_is_to_type() {
    let readme = read("terraform/README.md");
    let blocks: Vec<&str> = readme.split("```").skip(1).step_by(2).collect();
    check_commands("terraform/README.md", &blocks.concat());
    let Some(told) = &*TOLD else { return };
    check_commands("the output `next`", &told.next);
}

#[test]
fn the_readme_names_every_variable() {
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
