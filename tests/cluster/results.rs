//! Tests of the best game's files in the object store, and of the commands `hatebeam replays`.

use crate::harness::{Cluster, RunOutput};
use crate::program::hatebeam;
use crate::{SHORT, WIDTH};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

#[track_caller]
fn succeeds(args: &[&str]) -> String {
    let output = hatebeam().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files of a game.
#[derive(Debug, PartialEq)]
struct GameFiles {
    /// Common name of the files, without the extension.
    stem: String,
    /// Contents of each file, by extension.
    contents: BTreeMap<String, Vec<u8>>,
}

impl GameFiles {
    #[track_caller]
    fn read(folder: &Path) -> GameFiles {
        let mut stems = Vec::new();
        let mut contents = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let (stem, extension) = name.split_once('.').unwrap();
            stems.push(stem.to_owned());
            contents.insert(extension.to_owned(), fs::read(entry.path()).unwrap());
        }
        stems.dedup();
        assert_eq!(stems.len(), 1, "{stems:?}");
        GameFiles {
            stem: stems.remove(0),
            contents,
        }
    }

    fn text(&self, extension: &str) -> String {
        String::from_utf8(self.contents[extension].clone()).unwrap()
    }
}

/// A finished run in the object store of a cluster that has stopped.
struct StoredRun {
    cluster: Cluster,
    name: String,
    output: RunOutput,
}

impl StoredRun {
    fn search() -> StoredRun {
        let mut cluster = Cluster::new();
        cluster.start_coordinator();
        cluster.start_worker("w0", &["--threads", "2"]);
        let name = cluster.submit_name(&SHORT);
        let output = cluster.watch();
        cluster.workers.clear();
        cluster.coordinator = None;
        StoredRun {
            cluster,
            name,
            output,
        }
    }

    fn score(&self) -> String {
        self.output.end["best_lines"].to_string()
    }

    fn replays(&self) -> PathBuf {
        self.cluster.run_folder(&self.name).join("replays")
    }

    fn pull(&self, args: &[&str]) -> Output {
        let mut command = hatebeam();
        command.args(["replays", "pull", "--store", &self.cluster.store.location]);
        command.args(args).output().unwrap()
    }

    fn write_manifest(&self, manifest: &Value) {
        let path = self.cluster.run_folder(&self.name).join("manifest.json");
        fs::write(path, manifest.to_string()).unwrap();
    }
}

#[test]
fn finished_run_has_five_files_and_pull_downloads_them() {
    let run = StoredRun::search();
    let score = run.score();
    let (lines, pieces) = (&run.output.end["best_lines"], &run.output.end["pieces"]);
    let (lines, pieces) = (lines.as_u64().unwrap(), pieces.as_u64().unwrap());
    let stored = GameFiles::read(&run.replays());
    let start = format!("{lines:05}-lines-{pieces:04}-pieces-2000-wide-20");
    assert!(stored.stem.starts_with(&start), "{}", stored.stem);
    let extensions: Vec<&String> = stored.contents.keys().collect();
    assert_eq!(extensions, ["html", "json", "raw.txt", "svg", "txt"]);
    for extension in ["txt", "raw.txt"] {
        let file = run.replays().join(format!("{}.{extension}", stored.stem));
        let file = file.display().to_string();
        succeeds(&[
            "replay",
            "verify",
            "--file",
            &file,
            "--expect-score",
            &score,
        ]);
    }
    let film: Value = serde_json::from_slice(&stored.contents["json"]).unwrap();
    assert_eq!(film["score"], lines);
    assert_eq!(film["turns"].as_array().unwrap().len() as u64, pieces);
    let svg = stored.text("svg");
    assert!(svg.contains(&format!(">{score} lines<")));
    let html = stored.text("html");
    assert!(html.contains("stopped at its depth limit"));
    assert!(html.contains(stored.text("txt").trim()));

    let store = &run.cluster.store.location;
    let list = ["replays", "list", "--store", store];
    let listed = succeeds(&[&list[..], &["--json"]].concat());
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["run"], run.name.as_str());
    assert_eq!(listed[0]["files"].as_array().unwrap().len(), 5);
    let date = listed[0]["date"].as_str().unwrap();
    assert!(stored.stem.ends_with(date), "{} {date}", stored.stem);
    assert!(succeeds(&list).contains(date));

    let folder = run.cluster.dir.path().join("pulled");
    let out = folder.display().to_string();
    let all = run.pull(&["--best", "--format", "all", "--out", &out]);
    assert!(all.status.success(), "{all:?}");
    assert_eq!(GameFiles::read(&folder), stored);
    assert_eq!(run.pull(&["--best"]).stdout, stored.contents["txt"]);
    let raw = run.pull(&[&run.name[..12], "--format", "raw"]);
    assert_eq!(raw.stdout, stored.contents["raw.txt"]);
    let picture = folder.join("picture");
    let out = picture.display().to_string();
    let pulled = run.pull(&["--best", "--format", "svg", "--out", &out]);
    let text = String::from_utf8(pulled.stdout).unwrap();
    assert!(text.starts_with(&format!("{score} lines")), "{text}");
    assert_eq!(fs::read(&picture).unwrap(), stored.contents["svg"]);
    let refused = run.pull(&["--best", "--format", "all", "--out", &out]);
    assert!(stderr(&refused).contains("is not a folder"), "{refused:?}");
}

#[test]
fn pull_verifies_score_and_accepts_manifest_without_files() {
    let run = StoredRun::search();
    let stored = GameFiles::read(&run.replays());
    // Removes the fields that manifests of the first version lack.
    let mut manifest = run.cluster.manifest(&run.name);
    let result = manifest["result"].as_object_mut().unwrap();
    for field in ["depth", "ended_ms", "files"] {
        assert!(result.remove(field).is_some(), "{field}");
    }
    run.write_manifest(&manifest);
    assert_eq!(run.pull(&["--best"]).stdout, stored.contents["txt"]);
    let film = run.pull(&["--best", "--format", "json"]);
    assert_eq!(film.stdout, stored.contents["json"]);
    // Makes the score in the manifest differ from the score of the replay.
    manifest["result"]["lines"] = 999.into();
    run.write_manifest(&manifest);
    let refused = run.pull(&["--best"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(refused.stdout, b"");
    let expected = format!("clears {} lines when it is played", run.score());
    assert!(stderr(&refused).contains(&expected), "{refused:?}");
}

fn so_far(cluster: &Cluster, args: &[&str]) -> Output {
    cluster.client(&[&["replays", "so-far"], args].concat())
}

#[test]
fn so_far_prints_games_of_run_in_progress() {
    let cluster = Cluster::start(&["w0"]);
    let run = cluster.submit_name(&["--width", "20k"]);
    cluster.wait_for_depth(12);
    // Suspends the only worker, so that the run does not advance.
    cluster.workers["w0"].signal("-STOP");
    let first = so_far(&cluster, &[]);
    assert!(first.status.success(), "{first:?}");
    let replay = String::from_utf8(first.stdout).unwrap();
    succeeds(&["replay", "verify", replay.trim()]);
    let again = so_far(&cluster, &[]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), replay);
    let film = so_far(&cluster, &["--depth", "10", "--format", "json"]);
    let film: Value = serde_json::from_slice(&film.stdout).unwrap();
    assert!(film["turns"].as_array().unwrap().len() > 10);
    // The game contains the best well at depth 10.
    let manifest = cluster.manifest(&run);
    let best_well = &manifest["depths"][10]["record"]["best_well"];
    assert_eq!(&film["turns"][10]["well"], best_well);
    let early = so_far(&cluster, &["--depth", "9999"]);
    assert!(!early.status.success());
    let error = stderr(&early);
    assert!(error.contains("not depth 9999"), "{error}");
    let error = stderr(&so_far(&cluster, &["no-such"]));
    assert!(error.contains("there is no run"), "{error}");
}

#[test]
fn run_that_keeps_only_last_depth_has_no_game() {
    let cluster = Cluster::start(&["w0"]);
    let keep_last = ["--keep", "last", "--max-depth", "20"];
    cluster.submit(&[&WIDTH[..], &keep_last].concat());
    cluster.watch();
    let game = so_far(&cluster, &[]);
    assert!(!game.status.success());
    let error = stderr(&game);
    assert!(error.contains("--keep "), "{error}");
}
