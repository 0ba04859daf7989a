//! Tests of `hatebeam train` and of runs with a network.

use crate::state::State;
use crate::support::{command, run};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// A training recipe. Each of its generations takes about a second.
const RECIPE: &str = "\
samples = 2000
buffer = 2
epoch = 5000
[exam]
widths = [20, 30, 40]
[[stages]]
generations = 1
[[stages.beams]]
player = \"patterns\"
widths = [40, 60]
noise = 0.5
[[stages.beams]]
player = \"own\"
widths = [30, 40]
noise = 1.0
";

fn train(folder: &Path, args: &[&str]) -> String {
    let folder = folder.to_str().unwrap();
    run(&[&["train", folder], args].concat()).silent_results()
}

#[test]
fn generation_is_saved_although_output_is_closed() {
    let temp = tempfile::tempdir().unwrap();
    let recipe = temp.path().join("recipe.toml");
    fs::write(&recipe, RECIPE).unwrap();
    let folder = temp.path().join("folder");
    let (folder, recipe) = (folder.to_str().unwrap(), recipe.to_str().unwrap());
    let args = ["train", folder, "--json", "--generations", "1"];
    let mut training = command(&[&args[..], &["--recipe", recipe]].concat())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    drop(training.stdout.take());
    assert_eq!(training.wait().unwrap().code(), Some(0));
    // No generation is left to train. A crash before the report was written leaves none.
    fs::remove_file(temp.path().join("folder/report.html")).unwrap();
    let last = run(&args).json();
    let network = temp.path().join("folder/network");
    assert_eq!(last["file"].as_str(), network.to_str());
    let network = fs::read(network).unwrap();
    assert_eq!(last["network"], digest_of(&network));
    let report = fs::read_to_string(temp.path().join("folder/report.html")).unwrap();
    assert!(report.contains("<svg"), "{report}");
}

#[test]
fn folder_of_another_training_is_refused_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let recipe = temp.path().join("recipe.toml");
    fs::write(&recipe, RECIPE).unwrap();
    let recipe = ["--recipe", recipe.to_str().unwrap()];
    let folder = temp.path().join("folder");
    fs::create_dir(&folder).unwrap();
    // Another process locks this file while it trains.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let folder = folder.to_str().unwrap();
    let args = [&["train", folder, "--generations", "1"], &recipe[..]].concat();
    let error = run(&args).error(1);
    let expected = format!("{folder} is used by another process: ");
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    drop(lock);
    run(&args).silent_results();
}

#[test]
fn file_instead_of_folder_and_training_without_generations_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("file.md");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    for command in ["train", "tune"] {
        let error = run(&[command, file]).error(2);
        let expected = format!("{file} is a file: name a folder");
        assert!(error.contains(&expected), "{error}");
    }
    let folder = temp.path().join("folder");
    let folder = folder.to_str().unwrap();
    let error = run(&["train", folder, "--generations", "0"]).error(2);
    assert!(error.contains("--generations"), "{error}");
    assert!(!Path::new(folder).exists());
}

#[test]
fn error_for_invalid_recipe_contains_the_reason_once() {
    let temp = tempfile::tempdir().unwrap();
    let recipe = temp.path().join("recipe.toml");
    fs::write(&recipe, "samples = \"many\"\n").unwrap();
    let folder = temp.path().join("folder");
    let found = run(&[
        "train",
        folder.to_str().unwrap(),
        "--recipe",
        recipe.to_str().unwrap(),
    ]);
    assert_eq!(found.code, 1);
    assert_eq!(found.err.matches("invalid type").count(), 1, "{found:?}");
}

#[test]
fn recipe_that_is_too_large_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("recipe.toml");
    File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let folder = temp.path().join("folder");
    let [path, folder] = [&path, &folder].map(|path| path.to_str().unwrap());
    for path in [path, "/dev/zero"] {
        let error = run(&["train", folder, "--recipe", path]).error(1);
        let expected = format!("{path} is larger than 4047228 bytes");
        assert!(error.starts_with(&expected), "{error}");
    }
    assert!(!Path::new(folder).exists());
}

#[test]
fn killed_training_resumes_and_network_can_be_reproduced() {
    let temp = tempfile::tempdir().unwrap();
    let recipe = temp.path().join("recipe.toml");
    fs::write(&recipe, RECIPE).unwrap();
    let recipe = recipe.to_str().unwrap();
    let whole = temp.path().join("whole");
    let text = train(&whole, &["--recipe", recipe, "--generations", "3"]);
    assert!(
        text.contains("network ") && text.lines().count() == 5,
        "{text}"
    );
    let network = fs::read(whole.join("network")).unwrap();
    let report = fs::read_to_string(whole.join("report.html")).unwrap();
    assert!(report.contains("3 generations") && report.contains("<svg"));

    let killed = temp.path().join("killed");
    for milliseconds in [50, 400, 900] {
        let mut training = command(&["train", killed.to_str().unwrap(), "--recipe", recipe])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(milliseconds));
        training.kill().unwrap();
        training.wait().unwrap();
    }
    // The killed training may have finished more than four generations.
    train(&killed, &["--generations", "4", "--threads", "2"]);
    let report = fs::read_to_string(killed.join("report.html")).unwrap();
    let (before, _) = report.split_once(" generations").unwrap();
    let generations = before.rsplit('>').next().unwrap();
    train(&whole, &["--generations", generations]);
    let again = fs::read(killed.join("network")).unwrap();
    assert!(again == fs::read(whole.join("network")).unwrap());
    assert!(again != network);

    let from_network = temp.path().join("again");
    let path = temp.path().join("network");
    fs::write(&path, &network).unwrap();
    let args = ["--recipe", path.to_str().unwrap(), "--generations", "3"];
    train(&from_network, &args);
    assert!(fs::read(from_network.join("network")).unwrap() == network);

    let other = temp.path().join("other.toml");
    fs::write(&other, RECIPE.replace("2000", "2001")).unwrap();
    let args = [
        "train",
        whole.to_str().unwrap(),
        "--recipe",
        other.to_str().unwrap(),
    ];
    assert!(run(&args).error(2).contains("another recipe"));
}

/// Returns the digest at the end of a network file, in hex.
fn digest_of(network: &[u8]) -> String {
    let digest = &network[network.len() - 32..];
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Trains a network for one generation. Returns its file.
fn trained_network(folder: &Path) -> PathBuf {
    let recipe = folder.join("recipe.toml");
    fs::write(&recipe, RECIPE).unwrap();
    let training = folder.join("training");
    let recipe = recipe.to_str().unwrap();
    train(&training, &["--recipe", recipe, "--generations", "1"]);
    training.join("network")
}

#[test]
fn run_names_its_network_and_refuses_a_damaged_or_unneeded_one() {
    let temp = tempfile::tempdir().unwrap();
    let path = trained_network(temp.path());
    let network = fs::read(&path).unwrap();
    let state = State::new("network");
    let path = path.to_str().unwrap();
    let found = state.search(&["--width", "50", "--evaluator", path]);
    assert!(found.name().starts_with("network-"), "{}", found.name());
    let digest = digest_of(&network);
    let manifest = state
        .path()
        .join("runs")
        .join(found.name())
        .join("manifest.json");
    assert!(fs::read_to_string(manifest).unwrap().contains(&digest));
    let other = state.search(&["--width", "52", "--evaluator", "plain", "--max-depth", "1"]);
    let with_file = ["resume", other.name(), "--evaluator", path];
    let error = state.run(&with_file).error(1);
    assert!(error.contains("the run has the evaluator plain"), "{error}");
    let error = state
        .run(&["resume", found.name(), "--evaluator", "network"])
        .error(1);
    assert!(error.contains("is part of the program"), "{error}");
    let mut damaged = network.clone();
    damaged[100_000] ^= 1;
    fs::write(path, damaged).unwrap();
    let error = run(&["run", "--width", "50", "--evaluator", path]).error(1);
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn run_can_be_shown_but_not_continued_without_the_file_of_its_network() {
    let temp = tempfile::tempdir().unwrap();
    let path = trained_network(temp.path());
    let path = path.to_str().unwrap();
    let state = State::new("network-file");
    let args = ["--width", "51", "--evaluator", path, "--max-depth", "3"];
    let begun = state.search(&args).name().to_owned();
    let shown = state.run(&["runs", "show", &begun]).silent_results();
    assert!(shown.contains("network"), "{shown}");
    // A run that is refused keeps its older format, which a program that can search it may need.
    let manifest = state.path().join("runs").join(&begun).join("manifest.json");
    let older = fs::read_to_string(&manifest).unwrap();
    let older = older.replace("\"format\": 5", "\"format\": 4");
    fs::write(&manifest, &older).unwrap();
    for command in [
        &["resume", &begun, "--quiet"][..],
        &["runs", "repair", &begun],
    ] {
        let error = state.run(command).error(1);
        assert!(
            error.contains("is not available") && error.contains("--evaluator"),
            "{error}"
        );
        assert!(!error.contains("hatebeam resume"), "{error}");
    }
    let other = ["run", "--quiet", "--width", "53", "--name", &begun];
    let error = state.run(&other).error(1);
    let digest = digest_of(&fs::read(path).unwrap());
    let expected = format!(
        "run {begun} has width 51, not 53; evaluator network {digest}, not network: pass another --name"
    );
    assert!(error.starts_with(&expected), "{error}");
    assert_eq!(fs::read_to_string(&manifest).unwrap(), older);
    assert!(older.contains("\"format\": 4"), "{older}");
    for command in [
        &["resume", "--json", "--quiet", "--max-depth", "5"][..],
        &["runs", "repair"],
    ] {
        let with_file = [command, &[&begun, "--evaluator", path]].concat();
        state.run(&with_file).silent_results();
    }
}

#[test]
fn run_with_built_in_network_and_quiescence_finishes() {
    let state = State::new("shipped-network");
    let flags = "--width 50 --evaluator network --quiescence first";
    let flags: Vec<&str> = flags.split(' ').collect();
    let found = state.search(&flags);
    assert!(found.name().starts_with("network-"), "{}", found.name());
}
