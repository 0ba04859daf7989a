//! Files of the repository, the program, and tools.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Variables of AWS's own that the program heeds.
const AWS: [&str; 2] = ["AWS_SHARED_CREDENTIALS_FILE", "AWS_EC2_METADATA_DISABLED"];
/// What the images and manifests need for themselves.
const OWN: [&str; 3] = ["TMPDIR", "POD_NAME", "POD_IP"];

/// A file or folder of the repository.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

#[track_caller]
pub(crate) fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The documents of YAML text: anchors and merges resolved, keys that come twice refused.
#[track_caller]
pub(crate) fn parse_yaml(name: &str, text: &str) -> Vec<Value> {
    // Modes of files are written as Kubernetes reads them.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_multiple_with_options(text, options)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
pub(crate) fn yaml(name: &str) -> Vec<Value> {
    parse_yaml(name, &read(name))
}

/// Files below a folder of the repository whose names end so.
pub(crate) fn files_below(folder: &str, ends: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(path(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&name, ends));
        } else if name.ends_with(ends) {
            found.insert(name);
        }
    }
    found
}

/// What is at this place, which must be text.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

/// The elements of a list, none where there is no list.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// The entries of a table, none where there is no table.
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

/// A program that a variable names or the machine has; none, and a word about it, where it is missing.
pub(crate) fn tool(variable: &str, name: &str) -> Option<Command> {
    let named = std::env::var_os(variable).filter(|path| !path.is_empty());
    let found = named.map(PathBuf::from).or_else(|| {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())
    });
    if found.is_none() {
        println!("skipped: no {name} (scripts/deploy-tools.sh finds what can be had)");
    }
    found.map(Command::new)
}

/// Runs a command, which must succeed; what it wrote to standard output.
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

/// The program, and nothing of what the one who tests has set.
pub(crate) fn hatebeam() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatebeam-under-test"));
    command.env_clear();
    command
}

/// How a process of the program is started somewhere: its command line and its variables.
#[derive(Debug)]
pub(crate) struct Start {
    /// Where it is written.
    pub(crate) place: String,
    pub(crate) args: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

impl Start {
    /// The program knows every option, takes every value, and heeds every variable.
    #[track_caller]
    pub(crate) fn check(&self) {
        let unheeded = self.unheeded();
        assert!(unheeded.is_empty(), "{}: {unheeded:?}", self.place);
    }

    /// The variables that the command does not heed, whose options and values the program must know.
    #[track_caller]
    pub(crate) fn unheeded(&self) -> BTreeSet<&str> {
        let told = self.parsed();
        assert!(
            told.status.success(),
            "{}: {:?}: {}",
            self.place,
            self.args,
            String::from_utf8_lossy(&told.stderr)
        );
        let help = String::from_utf8(told.stdout).unwrap();
        let words: BTreeSet<&str> = help
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .collect();
        let names = self.variables.iter().map(|(name, _)| name.as_str());
        names
            .filter(|name| !words.contains(name) && !AWS.contains(name) && !OWN.contains(name))
            .collect()
    }

    /// With --help at its end a command line is looked at to the end, and nothing is done.
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

    /// The value of an option, written as `--option=value` or as two words.
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

    /// The port of an option whose value is an address.
    #[track_caller]
    pub(crate) fn port(&self, option: &str) -> u16 {
        let address = self.option(option);
        let address = address.unwrap_or_else(|| panic!("{}: no {option}", self.place));
        port_of(address)
    }
}

/// The port at the end of an address or a URI.
#[track_caller]
pub(crate) fn port_of(address: &str) -> u16 {
    let port = address.rsplit_once(':').map(|(_, port)| port.parse());
    port.unwrap_or_else(|| panic!("no port in {address}"))
        .unwrap()
}

/// The parts of a URI: scheme, host, port.
#[track_caller]
pub(crate) fn uri(text: &str) -> (&str, &str, u16) {
    let (scheme, rest) = text.split_once("://").unwrap();
    let (host, port) = rest.rsplit_once(':').unwrap();
    (scheme, host, port.parse().unwrap())
}
