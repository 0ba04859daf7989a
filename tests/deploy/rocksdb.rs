//! RocksDB takes more than ten minutes to compile. Cargo compiles it again if a selection of packages gives one of its
//! dependencies other features.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const ROCKSDB: &str = "librocksdb-sys ";

/// Returns the packages that RocksDB depends on, each with its version and features, if Cargo builds this selection.
fn dependencies(selection: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--prefix", "depth"]);
    command.args(["--format", " {p} {f}"]).args(selection);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{selection:?}: {error}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let mut children: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut path: Vec<&str> = Vec::new();
    for line in tree.lines() {
        // A selection of several packages has several trees.
        let Some((depth, package)) = line.split_once(' ') else {
            continue;
        };
        // A package that occurs again is marked, and the lines of its dependencies are not repeated.
        let package = package.trim_end_matches(" (*)");
        path.truncate(depth.parse().unwrap());
        if let Some(parent) = path.last() {
            children.entry(parent).or_default().insert(package);
        }
        path.push(package);
    }
    let rocksdb = children.keys().filter(|name| name.starts_with(ROCKSDB));
    let mut waiting: Vec<&str> = rocksdb.copied().collect();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    let mut found = BTreeSet::new();
    while let Some(package) = waiting.pop() {
        if found.insert(package.to_owned()) {
            waiting.extend(children.get(package).into_iter().flatten());
        }
    }
    found
}

#[test]
fn rocksdb_is_compiled_only_once_for_all_selections() {
    let all = dependencies(&["--workspace"]);
    assert!(all.len() > 20, "{all:?}");
    const BUILT: &str = "--edges=normal,build";
    let selections: [&[&str]; 6] = [
        &["--package=hatebeam", BUILT],
        &["--package=hatebeam", "--no-default-features", BUILT],
        &["--package=hatebeam-tests", "--features=otlp", BUILT],
        &["--package=hatebeam-store"],
        &["--package=hatebeam-runs"],
        &["--package=hatebeam-sim"],
    ];
    for selection in selections {
        assert_eq!(dependencies(selection), all, "{selection:?}");
    }
}
