//! What a run leaves behind, how it is brought home, and who is told.

use crate::rig::{PATIENCE, Rig, hatebeam};
use crate::{WIDTH, wait_for_depth};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

fn told(args: &[&str]) -> String {
    let output = hatebeam().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files of a folder by their endings, and the stem that all of them have.
#[track_caller]
fn files(folder: &Path) -> (String, BTreeMap<String, Vec<u8>>) {
    let mut stems = Vec::new();
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let (stem, ending) = name.split_once('.').unwrap();
        stems.push(stem.to_owned());
        files.insert(ending.to_owned(), fs::read(entry.path()).unwrap());
    }
    stems.dedup();
    assert_eq!(stems.len(), 1, "{stems:?}");
    (stems.remove(0), files)
}

fn run_folder(rig: &Rig, run: &str) -> PathBuf {
    Path::new(&rig.place.store).join("runs").join(run)
}

/// All five files are in the store under a name that says what they are; `pull` brings the same; and what does
/// not hold is not brought.
#[test]
fn what_a_run_leaves_in_the_store_is_brought_home() {
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "2"]);
    let run = rig.submit(&WIDTH)["run"].as_str().unwrap().to_owned();
    let watched = rig.watch();
    rig.workers.clear();
    rig.coordinator = None;
    let (score, pieces) = (&watched.end["best_lines"], &watched.end["pieces"]);
    let folder = run_folder(&rig, &run);
    let (stem, stored) = files(&folder.join("replays"));
    let (score, pieces) = (score.as_u64().unwrap(), pieces.as_u64().unwrap());
    let says = format!("{score:05}-lines-{pieces:04}-pieces-2000-wide-20");
    assert!(stem.starts_with(&says), "{stem}");
    let endings: Vec<&str> = stored.keys().map(String::as_str).collect();
    assert_eq!(endings, ["html", "json", "raw.txt", "svg", "txt"]);
    let score = score.to_string();
    for ending in ["txt", "raw.txt"] {
        let file = folder.join(format!("replays/{stem}.{ending}"));
        told(&[
            "replay",
            "verify",
            "--file",
            &file.display().to_string(),
            "--expect-score",
            &score,
        ]);
    }
    let film: Value = serde_json::from_slice(&stored["json"]).unwrap();
    assert_eq!(film["score"].to_string(), score);
    assert_eq!(film["turns"].as_array().unwrap().len() as u64, pieces);
    let text = |ending: &str| String::from_utf8(stored[ending].clone()).unwrap();
    assert!(text("svg").contains(&format!(">{score} lines<")));
    assert!(
        text("html").contains("searched to the end") && text("html").contains(text("txt").trim())
    );

    let store = rig.place.store.clone();
    let listed: Value =
        serde_json::from_str(&told(&["replays", "list", "--store", &store, "--json"])).unwrap();
    assert_eq!(listed[0]["run"], run.as_str());
    assert_eq!(listed[0]["files"].as_array().unwrap().len(), 5);
    let date = listed[0]["date"].as_str().unwrap();
    assert!(stem.ends_with(date), "{stem} {date}");
    assert!(told(&["replays", "list", "--store", &store]).contains(date));
    // All of it comes home as it is in the store.
    let home = rig.dir.path().join("home");
    let pull = |args: &[&str]| {
        let all = ["replays", "pull", "--store", &store];
        hatebeam().args([&all[..], args].concat()).output().unwrap()
    };
    let out = home.display().to_string();
    assert!(
        pull(&["--best", "--format", "all", "--out", &out])
            .status
            .success()
    );
    assert_eq!(files(&home), (stem, stored.clone()));
    assert_eq!(pull(&["--best"]).stdout, stored["txt"]);
    assert_eq!(
        pull(&[&run[..12], "--format", "raw"]).stdout,
        stored["raw.txt"]
    );
    let picture = home.join("picture");
    let out = picture.display().to_string();
    let pulled = pull(&["--best", "--format", "svg", "--out", &out]);
    assert!(
        String::from_utf8(pulled.stdout)
            .unwrap()
            .starts_with(&format!("{score} lines"))
    );
    assert_eq!(fs::read(&picture).unwrap(), stored["svg"]);
    let refused = pull(&["--best", "--format", "all", "--out", &out]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is no folder"));

    // A manifest of before files were named still tells the game.
    let path = folder.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let outcome = manifest["outcome"].as_object_mut().unwrap();
    for new in ["depth", "ended_ms", "files"] {
        assert!(outcome.remove(new).is_some(), "{new}");
    }
    fs::write(&path, manifest.to_string()).unwrap();
    assert_eq!(pull(&["--best"]).stdout, stored["txt"]);
    assert_eq!(pull(&["--best", "--format", "json"]).stdout, stored["json"]);
    // One that claims more than its replay holds does not.
    manifest["outcome"]["score"] = 999.into();
    fs::write(&path, manifest.to_string()).unwrap();
    let refused = pull(&["--best"]);
    assert_eq!(
        (refused.status.code(), refused.stdout),
        (Some(1), Vec::new())
    );
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains(&format!("has {score} lines when it is played")),
        "{said}"
    );
}

/// The best game of a run that goes on, and games of its depths; and of one that keeps nothing none.
#[test]
fn a_run_that_goes_on_tells_its_best_game_so_far() {
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    let so_far = |rig: &Rig, args: &[&str]| rig.client(&[&["replays", "so-far"], args].concat());
    // Held in the middle, so that it is the same however long this takes.
    rig.submit(&["--width", "20k"]);
    wait_for_depth(&rig, 12);
    rig.workers["w0"].signal("-STOP");
    let first = so_far(&rig, &[]);
    assert!(first.status.success(), "{first:?}");
    let replay = String::from_utf8(first.stdout).unwrap();
    told(&["replay", "verify", replay.trim()]);
    let again = so_far(&rig, &[]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), replay);
    let film = so_far(&rig, &["--depth", "10", "--format", "json"]);
    let film: Value = serde_json::from_slice(&film.stdout).unwrap();
    assert!(film["turns"].as_array().unwrap().len() > 10);
    // It leads through that depth's best well.
    let status = rig.status().unwrap();
    let run = status["run"].as_str().unwrap();
    let manifest = fs::read(run_folder(&rig, run).join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(
        film["turns"][10]["well"],
        manifest["depths"][10]["record"]["best_well"]
    );
    let early = so_far(&rig, &["--depth", "9999"]);
    let said = String::from_utf8_lossy(&early.stderr).into_owned();
    assert!(
        !early.status.success() && said.contains("and not to depth 9999 yet"),
        "{said}"
    );
    let nobody = so_far(&rig, &["no-such"]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("there is no run"));

    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.submit(&[&WIDTH[..], &["--keep", "last"]].concat());
    rig.watch();
    let none = so_far(&rig, &[]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        !none.status.success() && said.contains("keeps the wells of"),
        "{said}"
    );
}

/// A server that takes in what it is told, but fails at the first request.
fn listener() -> (u16, Receiver<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (say, heard) = channel();
    std::thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let head = head.to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .unwrap()
                .lines()
                .next()
                .unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let status = if count == 0 { "503 Later" } else { "200 Well" };
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
            if count > 0 && say.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

fn is(name: &str) -> impl Fn(&&Value) -> bool {
    move |event| event["event"] == name
}

#[test]
fn those_who_want_to_know_are_told() {
    let mut rig = Rig::new();
    let (port, heard) = listener();
    let log = rig.dir.path().join("told");
    let mut flags = vec!["--webhook".to_owned(), format!("http://127.0.0.1:{port}/")];
    let command = format!("cat >> {0}; echo >> {0}", log.display());
    flags.extend(["--on-event".to_owned(), command]);
    flags.extend(["--event-every", "10", "--min-workers", "1"].map(str::to_owned));
    rig.coordinator_flags = flags;
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.start_worker("w1", &["--threads", "1"]);
    rig.submit(&WIDTH);
    wait_for_depth(&rig, 4);
    rig.workers.get_mut("w1").unwrap().kill();
    let watched = rig.watch();
    let mut events: Vec<Value> = Vec::new();
    while !events.iter().any(|event| event["event"] == "finished") {
        events.push(heard.recv_timeout(PATIENCE).unwrap());
    }
    assert!(
        events
            .iter()
            .all(|event| event["version"] == 1 && event["run"] == watched.end["run"])
    );
    assert_eq!(
        (&events[0]["event"], &events[0]["width"]),
        (&"started".into(), &2000.into())
    );
    let depths: Vec<u64> = events
        .iter()
        .filter(is("depth"))
        .map(|event| event["depth"].as_u64().unwrap())
        .collect();
    let last = watched.depths.keys().max().unwrap();
    assert_eq!(
        depths,
        (1..=last / 10).map(|at| at * 10).collect::<Vec<_>>()
    );
    // Each new best score once, as the depths have them.
    let mut best = 0;
    let mut expected = Vec::new();
    for record in watched.depths.values() {
        let lines = record["best_lines"].as_u64().unwrap();
        if lines > best {
            best = lines;
            expected.push((record["depth"].as_u64().unwrap(), lines));
        }
    }
    let scores: Vec<(u64, u64)> = events
        .iter()
        .filter(is("best-score"))
        .map(|event| {
            (
                event["depth"].as_u64().unwrap(),
                event["score"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(scores, expected);
    assert_eq!(
        events.iter().find(is("worker-lost")).unwrap()["worker"],
        "w1"
    );
    let end = events.iter().find(is("finished")).unwrap();
    assert_eq!(
        (&end["score"], &end["end"]),
        (&watched.end["best_lines"], &"over".into())
    );
    assert_eq!(end["replay"], watched.end["replay"]);
    let run = run_folder(&rig, end["run"].as_str().unwrap());
    for file in end["files"].as_array().unwrap() {
        assert!(run.join(file.as_str().unwrap()).is_file(), "{file}");
    }
    // The command was told the same, and nothing is owed to anybody.
    let owed = Path::new(&rig.place.store).join("events");
    let begun = Instant::now();
    while fs::read_dir(&owed).is_ok_and(|mut entries| entries.next().is_some()) {
        assert!(begun.elapsed() < PATIENCE, "{}", rig.logs());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, events);
}

/// Nobody listens when the run ends, and the coordinator is killed: the next one tells, and only once.
#[test]
fn the_end_of_a_run_is_told_after_all() {
    let mut rig = Rig::new();
    let away = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap();
    rig.coordinator_flags = vec!["--webhook".to_owned(), format!("http://{away}/")];
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.submit(&[&WIDTH[..], &["--max-depth", "6"]].concat());
    let watched = rig.watch();
    rig.coordinator.as_mut().unwrap().kill();
    let (port, heard) = listener();
    for is_first in [true, false] {
        rig.coordinator_flags = vec!["--webhook".to_owned(), format!("http://127.0.0.1:{port}/")];
        rig.start_coordinator();
        if is_first {
            let event = heard.recv_timeout(PATIENCE).unwrap();
            assert_eq!(event["event"], "finished");
            assert_eq!(
                (&event["end"], &event["depth"]),
                (&"max-depth".into(), &6.into())
            );
            assert_eq!(event["replay"], watched.end["replay"]);
        }
        rig.coordinator.as_ref().unwrap().signal("-INT");
        assert_eq!(
            rig.coordinator.as_mut().unwrap().ends(),
            Some(0),
            "{}",
            rig.logs()
        );
    }
    assert!(heard.try_recv().is_err(), "it was told again");
}
