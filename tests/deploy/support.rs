//! Helpers that read files of the repository, and run the program and external tools.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Standard AWS environment variables that the program reads.
const AWS: [&str; 2] = ["AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED"];
/// Environment variables in the deployment files that are not settings of the program.
const OWN: [&str; 3] = ["TMPDIR", "POD_NAME", "POD_IP"];

/// Returns the path of a file or folder in the repository.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

#[track_caller]
pub(crate) fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Parses YAML documents. Resolves anchors and merge keys, and rejects duplicate keys.
#[track_caller]
pub(crate) fn parse_yaml(name: &str, text: &str) -> Vec<Value> {
    // Kubernetes reads file modes such as 0440 as octal numbers.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_multiple_with_options(text, options)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
pub(crate) fn yaml(name: &str) -> Vec<Value> {
    parse_yaml(name, &read(name))
}

/// Returns the files below a folder of the repository whose names end with `ending`, as paths relative to the
/// repository.
pub(crate) fn files_below(folder: &str, ending: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(path(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&name, ending));
        } else if name.ends_with(ending) {
            found.insert(name);
        }
    }
    found
}

/// Returns the string at a JSON pointer. Panics if the value is missing or not a string.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no string at {pointer} in {value}"))
}

/// Returns the elements of the list at a JSON pointer, or no elements if there is no list.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns the entries of the object at a JSON pointer, or no entries if there is no object.
pub(crate) fn table<'a>(
    value: &'a Value,
    pointer: &str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let table = value.pointer(pointer).and_then(Value::as_object);
    table
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value))
}

/// Returns a command that runs a tool. The environment variable `variable` contains the path of the tool; if it is not
/// set, `PATH` is searched for `name`. If the tool is not found, prints a message and returns `None`.
pub(crate) fn tool(variable: &str, name: &str) -> Option<Command> {
    let named = std::env::var_os(variable).filter(|path| !path.is_empty());
    let found = named.map(PathBuf::from).or_else(|| {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    });
    if found.is_none() {
        println!(
            "skipped: no {name} (scripts/deploy-tools.sh and scripts/terraform-tools.sh provide some tools)"
        );
    }
    found.map(Command::new)
}

/// Runs a command, asserts that it succeeds, and returns its standard output.
#[track_caller]
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs checkov on a folder of the repository, asserts that it succeeds, and returns its JSON report. Returns `None` if
/// checkov is not installed.
#[track_caller]
pub(crate) fn checkov(framework: &str, folder: &str, skipped: &[&str]) -> Option<Value> {
    let mut checkov = tool("HATEBEAM_CHECKOV", "checkov")?;
    // Checkov's rules are built in, so --skip-download omits only their descriptions.
    checkov.args(["--framework", framework, "--skip-download"]);
    if !skipped.is_empty() {
        checkov.args(["--skip-check", &skipped.join(",")]);
    }
    // The path of the folder is relative, because checkov ignores folders whose path contains `..`.
    checkov.args(["--output", "json", "--directory", folder]);
    let report = succeeds(checkov.current_dir(path(".")));
    let report: Value = serde_json::from_str(&report).unwrap();
    let count = |what: &str| report["summary"][what].as_u64();
    assert!(count("passed") > Some(20), "{}", report["summary"]);
    assert_eq!(count("parsing_errors"), Some(0), "{}", report["summary"]);
    Some(report)
}

/// Returns a command that runs the program with an empty environment.
pub(crate) fn hatebeam() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatebeam-under-test"));
    command.env_clear();
    command
}

/// The command line and environment with which a deployment file starts the program.
#[derive(Debug)]
pub(crate) struct Start {
    /// Name of the file or service, for error messages.
    pub(crate) place: String,
    pub(crate) args: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Start {
    /// Asserts that the program accepts all options and their values, and reads all variables.
    #[track_caller]
    pub(crate) fn check(&self) {
        let unread = self.unread_variables();
        assert!(unread.is_empty(), "{}: {unread:?}", self.place);
    }

    /// Asserts that the program accepts all options and their values. Returns the variables that the command's help
    /// does not mention, except those in `AWS` and `OWN`.
    #[track_caller]
    pub(crate) fn unread_variables(&self) -> BTreeSet<&str> {
        let output = self.parsed();
        assert!(
            output.status.success(),
            "{}: {:?}: {}",
            self.place,
            self.args,
            String::from_utf8_lossy(&output.stderr)
        );
        let help = String::from_utf8(output.stdout).unwrap();
        let words: BTreeSet<&str> = help
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .collect();
        let names = self.variables.iter().map(|(name, _)| name.as_str());
        names
            .filter(|name| !words.contains(name) && !AWS.contains(name) && !OWN.contains(name))
            .collect()
    }

    /// Runs the command line with the additional option `--help`, so that the program parses all options and only
    /// prints its help.
    fn parsed(&self) -> Output {
        let mut command = hatebeam();
        command.args(&self.args).arg("--help");
        command.envs(self.variables.iter().cloned());
        command.output().unwrap()
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the value of an option, written as `--option=value` or `--option value`.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            match arg.strip_prefix(name) {
                Some("") => return args.next().map(String::as_str),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => {}
            }
        }
        None
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.args.iter().any(|arg| arg == flag)
    }

    /// Returns the port of an option whose value is an address.
    #[track_caller]
    pub(crate) fn port(&self, option: &str) -> u16 {
        let address = self.option(option);
        let address = address.unwrap_or_else(|| panic!("{}: no {option}", self.place));
        port_of(address)
    }
}

/// Returns the port at the end of an address or a URI.
#[track_caller]
pub(crate) fn port_of(address: &str) -> u16 {
    let port = address.rsplit_once(':').map(|(_, port)| port.parse());
    port.unwrap_or_else(|| panic!("no port in {address}"))
        .unwrap()
}

#[derive(Debug, PartialEq)]
pub(crate) struct Uri<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
}

#[track_caller]
pub(crate) fn uri(text: &str) -> Uri<'_> {
    let (scheme, rest) = text.split_once("://").unwrap();
    let (host, port) = rest.rsplit_once(':').unwrap();
    let port = port.parse().unwrap();
    Uri { scheme, host, port }
}
