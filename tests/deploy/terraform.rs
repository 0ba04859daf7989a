//! Tests of the Terraform modules in terraform/. They use checkov, Terraform's mock provider, and moto, a mock of AWS.

mod applied;
mod machine;
mod watchdog;

use crate::support::{
    Start, checkov, files_below, hatebeam, list, path, read, succeeds, text, tool,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const MODULES: [&str; 2] = ["bucket", "cluster"];

/// A copy of the modules. Terraform writes its files to this copy, so the checkout remains unchanged.
struct Workshop {
    dir: tempfile::TempDir,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        // Skips files that `terraform init` creates.
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

/// Returns `true` if Terraform has a configuration file, which may contain the location of a provider mirror.
fn is_configured() -> bool {
    let named = std::env::var_os("TF_CLI_CONFIG_FILE").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".terraformrc"));
    named.or(home).is_some_and(|file| file.is_file())
}

impl Workshop {
    /// Creates the copy and initializes these modules in it. If Terraform or a mirror with its AWS provider is missing,
    /// prints a message and returns `None`.
    fn open(modules: &[&str]) -> Option<Workshop> {
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
        for module in modules {
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
        // Removes the user's credentials, in case a test contacts AWS by mistake.
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

/// Copy of the modules that the tests share, because the initialization takes seconds.
static WORKSHOP: LazyLock<Option<Workshop>> = LazyLock::new(|| Workshop::open(&MODULES));

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

/// Returns the IDs of the checkov rules that comments in the modules skip.
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

/// Results of the Terraform test `user_data` of the module `cluster`.
struct Rendered {
    /// For each kind of machine, the files in its user data and in its settings object, by path.
    machines: BTreeMap<String, BTreeMap<String, String>>,
    /// The module's output `next`.
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

/// Returns the contents of the files in a cloud-config, by path. The YAML of the cloud-config is also valid JSON.
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
        let user_data = state
            .pointer("/test_state/outputs/user_data/value")
            .unwrap();
        let mut machines = BTreeMap::new();
        let resources = state.pointer("/test_state/root_module/resources").unwrap();
        let settings = resources.as_array().unwrap().iter();
        for object in settings.filter(|resource| text(resource, "/type") == "aws_s3_object") {
            let kind = text(object, "/index").to_owned();
            let packed = text(user_data, &format!("/{kind}"));
            let mut files = files_of(&unpacked(packed));
            let settings = text(object, "/values/content");
            let settings: BTreeMap<String, Value> = serde_json::from_str(settings).unwrap();
            for (path, file) in settings {
                files.insert(path, text(&file, "/content").to_owned());
            }
            machines.insert(kind, files);
        }
        assert_eq!(machines.len(), 3, "{:?}", machines.keys());
        let next = text(&state, "/test_state/outputs/next/value").to_owned();
        Some(Rendered { machines, next })
    }
}

static RENDERED: LazyLock<Option<Rendered>> = LazyLock::new(Rendered::read);

/// Returns the command line and environment with which the unit of a role starts the program. `files` are the files of
/// the machine.
fn start(files: &BTreeMap<String, String>, role: &str) -> Start {
    let unit = &files[&format!("/etc/systemd/system/hatebeam-{role}.service")];
    let env = &files[&format!("/etc/hatebeam/{role}.env")];
    let assigns = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        // The script `prepare` replaces these placeholders with the machine's address and price.
        let value = value.replace("@ADDRESS@", "10.77.0.9");
        (
            name.to_owned(),
            value.replace("@PRICE@", "--price-per-hour 1.38"),
        )
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
        // The service runs as this user.
        assert!(files["/usr/lib/sysusers.d/hatebeam.conf"].contains("u hatebeam "));
        if is_worker {
            assert_eq!(start.port("--listen"), 7801);
            let coordinator = start.variable("HATEBEAM_COORDINATOR");
            assert_eq!(coordinator, Some("https://10.77.0.10:7800"));
            let dir = start.option("--dir").unwrap();
            assert!(dir.starts_with("/var/lib/hatebeam/"), "{dir}");
        } else {
            assert_eq!(
                (start.port("--listen"), start.port("--dashboard")),
                (7800, 7880)
            );
            assert_eq!(start.option("--idle-stop"), Some("60"));
            assert_eq!(start.option("--price-per-hour"), Some("0.0168"));
            assert_eq!(start.option("--advertise"), Some("https://10.77.0.9:7800"));
            for (option, file) in [
                ("--deadline-file", "/etc/hatebeam/deadline"),
                ("--on-event", "/usr/local/lib/hatebeam/on-event"),
            ] {
                assert_eq!(start.option(option), Some(file));
                assert!(files.contains_key(file), "{file}");
            }
        }
    }
}

#[test]
fn machines_contain_scripts_that_their_files_call() {
    let Some(rendered) = &*RENDERED else { return };
    for (machine, files) in &rendered.machines {
        for (name, content) in files {
            let words =
                content.split(|letter: char| letter.is_whitespace() || "='+".contains(letter));
            for script in words.filter(|word| word.starts_with("/usr/local/lib/hatebeam/")) {
                assert!(files.contains_key(script), "{machine}: {name}: {script}");
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

/// Returns the arguments of each command line of the program in a document.
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

/// Returns the default machine types of the module `cluster`.
fn default_types() -> Vec<String> {
    let variables = read("terraform/cluster/variables.tf");
    let (_, after) = variables
        .split_once("variable \"worker_instance_types\" {")
        .unwrap();
    let (list, _) = after.split_once("validation {").unwrap();
    quoted(list.split_once("default = [").unwrap().1)
}

fn quoted(text: &str) -> Vec<String> {
    text.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn price_table_contains_all_machine_types_of_modules() {
    let mut types = default_types();
    assert!(types.len() >= 8, "{types:?}");
    let machines = read("terraform/cluster/machines.tf");
    let coordinator = machines
        .lines()
        .find(|line| line.trim().starts_with("coordinator_type = "));
    types.extend(
        quoted(coordinator.unwrap())
            .into_iter()
            .filter(|text| text.contains('.')),
    );
    assert!(types.contains(&"t3.small".to_owned()) && types.contains(&"t4g.small".to_owned()));
    // The bucket's output `next` contains these types.
    let first = read("terraform/bucket/outputs.tf");
    let (_, list) = first.split_once("worker_instance_types = [").unwrap();
    types.extend(quoted(list.split_once(']').unwrap().0));
    for kind in types {
        succeeds(hatebeam().args(["plan", "--width", "1k", "--count", "1", "--instance", &kind]));
    }
}

/// Runs the commands in the output `next` of the module `bucket`, with stand-ins for the AWS CLI and Terraform. Returns
/// the variables file that the commands write.
fn written_variables(workshop: &Workshop) -> String {
    let output = succeeds(workshop.terraform("bucket").args([
        "test",
        "-verbose",
        "-json",
        "-filter=tests/bucket.tftest.hcl",
    ]));
    let state = output
        .lines()
        .find(|line| line.contains(r#""test_state":{"#));
    let state: Value = serde_json::from_str(state.unwrap()).unwrap();
    let next = text(&state, "/test_state/outputs/next/value");
    let dir = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let folder = dir.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let (bin, cluster) = (folder("bin"), folder("terraform/cluster"));
    std::fs::write(folder("target/release").join("hatebeam"), "program").unwrap();
    for name in ["aws", "terraform"] {
        std::os::unix::fs::symlink("/bin/true", bin.join(name)).unwrap();
    }
    let system = std::env::var("PATH").unwrap();
    succeeds(
        Command::new("bash")
            .args(["-euc", next])
            .current_dir(folder("terraform/bucket"))
            .env("PATH", format!("{}:{system}", bin.display())),
    );
    std::fs::read_to_string(cluster.join("terraform.tfvars")).unwrap()
}

#[test]
fn cluster_accepts_variables_that_bucket_commands_write() {
    let Some(workshop) = &*WORKSHOP else { return };
    let written = written_variables(workshop);
    assert!(written.contains("binary_x86_64 = \"1310ca2c"), "{written}");
    let file = workshop.path("written.tfvars");
    std::fs::write(&file, written).unwrap();
    succeeds(
        workshop
            .terraform("cluster")
            .args(["test", "-no-color", "-test-directory=tests/written"])
            .arg(format!("-var-file={}", file.display())),
    );
}
