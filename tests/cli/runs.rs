//! Tests of `hatebeam runs` and `hatebeam keyframes`.

use crate::state::{Search, State};
use crate::support::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn keyframes_finds_game_that_leads_to_well() {
    let state = State::new("keyframes");
    let search = state.search(&["--width", "400"]);
    let name = search.name();
    let game = state.run(&["keyframes", name, "--json"]).json();
    let wells = game["wells"].as_array().unwrap();
    assert_eq!(wells.len() as u64, game["depth"].as_u64().unwrap() + 1);
    assert!(game["lookups"].as_u64().unwrap() < 2 * wells.len() as u64);
    let depth_20 = ["keyframes", name, "--depth", "20"];
    let keyframes = |args: &[&str]| state.run(&[&depth_20, args].concat());
    // With `--well`, the game passes through the given well.
    let middle = wells[20].as_str().unwrap();
    let part = keyframes(&["--well", middle, "--json"]).json();
    assert_eq!(part["wells"].as_array().unwrap()[20], middle);

    let replay = keyframes(&["--replay"]).silent_results();
    run(&["replay", "verify", replay.trim()]).results();
    let drawn = keyframes(&["--every", "10"]);
    assert_eq!(drawn.out.matches("after piece").count(), 3);
    let all = keyframes(&["--json"]).json();
    let some = keyframes(&["--json", "--every", "8"]).json();
    let expected = [0, 8, 16, 20].map(|index| &all["wells"][index]);
    assert_eq!(
        some["wells"].as_array().unwrap().iter().collect::<Vec<_>>(),
        expected
    );
    assert_eq!(some["keys"], all["keys"]);
    keyframes(&["--json", "--replay"]).error(2);

    let error = state.run(&["keyframes", name, "--depth", "900"]).error(1);
    assert!(error.contains("the run has depths 0 to"), "{error}");
    let early = wells[5].as_str().unwrap();
    for (well, expected) in [
        ("zz", "--well"),
        (early, "depth 20 does not contain the well"),
    ] {
        let error = keyframes(&["--well", well]).error(1);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn runs_lists_shows_and_removes_runs() {
    let state = State::new("runs");
    let empty = state.run(&["runs"]);
    assert!(empty.err.contains("no runs in"), "{empty:?}");
    let search = state.search(&["--width", "100"]);
    state.search(&["--width", "101"]);
    state.search(&["--width", "102", "--name", "mine", "--max-depth", "4"]);
    let list = state.run(&["runs"]).silent_results();
    assert_eq!(list.lines().count(), 4, "{list}");
    for word in ["mine", "max-depth", "over"] {
        assert!(list.contains(word), "{word}: {list}");
    }
    let lines = state.run(&["runs", "list", "--json"]).silent_results();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["stored_bytes"].as_u64().unwrap() > 0);
    }
    let name = search.name();
    let shown = state.run(&["runs", "show", name, "--verify"]);
    let shown = shown.silent_results();
    assert!(shown.contains("all stored data is intact"), "{shown}");
    let spec = "\nwidth     100\nwell      10 x 16\nstart     the empty well\nevaluator network\nquiescence off\n\
                loops     ignore\nkeep      all\n";
    assert!(shown.contains(spec), "{shown}");
    let error = state.run(&["runs", "show", "network"]).error(1);
    assert!(error.contains("give more of the name"), "{error}");
    let error = state.run(&["runs", "show", "other"]).error(1);
    assert!(error.contains("there is no run \"other\""), "{error}");
    state.run(&["runs", "rm", name]).error(2);
    state.run(&["runs", "rm", name, "--yes"]).results();
    let list = state.run(&["runs"]).silent_results();
    assert!(!list.contains(name), "{list}");
    // `runs rm` has moved the files of the best game to the folder `replays`.
    let saved = state.path().join("replays").join(name);
    for file in search.files() {
        assert!(!file.exists());
        assert!(saved.join(file.file_name().unwrap()).is_file());
    }
}

#[test]
fn second_process_can_read_but_not_resume_run_in_progress() {
    let state = State::new("in-use");
    let limited = state.search(&["--width", "100k", "--name", "long", "--max-depth", "2"]);
    assert_eq!(limited.summary["end"], "max-depth");
    let running = state.start(&["--width", "100k", "--name", "long"]);
    state.wait_for_depths("long", 12);
    // The result of the first search is not that of the run, which has continued.
    for command in [&["runs"][..], &["runs", "show", "long"]] {
        let shown = state.run(command).silent_results();
        assert!(!shown.contains("max-depth"), "{shown}");
    }
    for args in [&["resume", "long"][..], &["runs", "rm", "long", "--yes"]] {
        let error = state.run(args).error(1);
        assert!(error.contains("in use by another process"), "{error}");
    }
    let read = state.run(&["keyframes", "long", "--depth", "10", "--json"]);
    assert_eq!(read.json()["wells"].as_array().unwrap().len(), 11);
    state.run(&["runs"]).silent_results();
    running.signal("-KILL");
    running.wait();
}

#[test]
fn verification_finds_no_damage_while_a_search_drops_depths() {
    let state = State::new("verify-in-use");
    let running = state.start(&["--width", "100k", "--keep", "last", "--name", "long"]);
    state.wait_for_depths("long", 12);
    for _ in 0..5 {
        let shown = state.run(&["runs", "show", "long", "--verify"]);
        assert!(shown.results().contains("all stored data is intact"));
    }
    running.signal("-KILL");
    running.wait();
}

#[test]
fn manifest_with_later_format_or_damage_is_refused() {
    let state = State::new("manifest");
    let search = state.search(&["--width", "60"]);
    let path = Path::new(search.summary["folder"].as_str().unwrap()).join("manifest.json");
    let manifest = fs::read_to_string(&path).unwrap();
    let mut later: Value = serde_json::from_str(&manifest).unwrap();
    later["format"] = 99.into();
    for (text, expected) in [
        (later.to_string().as_str(), "format 99"),
        (&manifest[..manifest.len() / 2], "damaged"),
    ] {
        fs::write(&path, text).unwrap();
        let name = search.summary["run"].as_str().unwrap();
        for command in [&["run", "--width", "60"][..], &["runs", "show", name]] {
            let error = state.run(command).error(1);
            assert!(error.contains(expected), "{error}");
        }
        let list = state.run(&["runs"]);
        assert!(list.err.contains("cannot read the run in"), "{list:?}");
        assert!(list.err.contains(expected), "{list:?}");
    }
}

#[test]
fn repair_removes_damaged_depth() {
    let state = State::new("damage");
    let search = state.search(&["--width", "60"]);
    let folder = Path::new(search.summary["folder"].as_str().unwrap());
    let table = fs::read_dir(folder.join("db"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .max()
        .unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[20] ^= 1;
    fs::write(&table, bytes).unwrap();
    let name = search.name();
    let damaged = state.run(&["runs", "show", name, "--verify"]);
    let (_, error) = damaged.late_error();
    for word in ["depth", "damaged", "hatebeam runs repair"] {
        assert!(error.contains(word), "{error}");
    }
    // The suggested command names the state folder, because --state was given.
    let (_, rest) = error.split_once("depth ").unwrap();
    let (depth, _) = rest.split_once(' ').unwrap();
    let read = state.run(&["keyframes", name, "--depth", depth]);
    let repair = format!("runs repair {name} --state {}", state.path().display());
    assert!(read.err.contains(&repair), "{read:?}");
    let repaired = Search::parse(state.run(&["runs", "repair", name, "--json"]));
    let depths = repaired.summary["repaired"].as_array().unwrap();
    assert_eq!(depths.len(), 1);
    state.run(&["runs", "show", name, "--verify"]).results();
    let again = state.run(&["runs", "repair", name]);
    let expected = "all stored data is intact";
    assert!(again.out.contains(expected), "{}", again.out);
}

#[test]
fn lost_records_are_reported_and_searched_again() {
    let state = State::new("lost");
    let search = state.search(&["--width", "60", "--name", "lost"]);
    let digests = state.digests("lost");
    let depths = Path::new(search.summary["folder"].as_str().unwrap()).join("depths.jsonl");
    // The last line contains the records of several depths.
    let mut bytes = fs::read(&depths).unwrap();
    let at = bytes.len() - 10;
    bytes[at] ^= 1;
    fs::write(&depths, bytes).unwrap();
    for command in [&["show", "lost", "--verify"][..], &["repair", "lost"]] {
        let (_, error) = state.run(&[&["runs"], command].concat()).late_error();
        for part in [
            "the records of the depths ",
            " are lost",
            "hatebeam resume ",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
    let resumed = Search::parse(state.run(&["resume", "lost", "--json", "-q"]));
    for field in ["end", "depth", "digest", "replay"] {
        assert_eq!(resumed.summary[field], search.summary[field], "{field}");
    }
    assert_eq!(state.digests("lost"), digests);
    state.run(&["runs", "show", "lost", "--verify"]).results();
}

#[test]
fn new_retention_rule_is_stored_with_the_run() {
    let state = State::new("new-rule");
    let begin = ["--width", "60", "--name", "rule", "--max-depth", "1"];
    state.search(&begin);
    let last = ["resume", "rule", "--keep", "last", "--max-depth", "12"];
    Search::parse(state.run(&[&last[..], &["--json", "-q"]].concat()));
    let shown = state.run(&["runs", "show", "rule"]).silent_results();
    assert!(shown.contains("keep      last"), "{shown}");
    // A later search follows the rule and recomputes nothing, and no depth counts as missing.
    let resumed = Search::parse(state.run(&["resume", "rule", "--json", "-q"]));
    assert_eq!(resumed.summary["end"], "over");
    assert!(resumed.summary["replay"].is_null());
    state.digests("rule");
    let shown = state.run(&["runs", "show", "rule", "--json"]).json();
    let depths = shown["depths"].as_array().unwrap();
    let kept = depths.iter().filter(|record| record["kept"] == true);
    // The first depth was followed by another one before the rule changed.
    let kept: Vec<Option<u64>> = kept.map(|record| record["depth"].as_u64()).collect();
    assert_eq!(kept, [Some(0), depths.last().unwrap()["depth"].as_u64()]);
    let repaired = state.run(&["runs", "repair", "rule"]).silent_results();
    assert_eq!(repaired, "all stored data is intact\n");
    // The specification is that of the first search.
    let same = ["run", "--width", "60", "--name", "rule"];
    assert_eq!(state.run(&same).code, 0);
}

#[test]
fn game_across_too_many_dropped_depths_is_refused_with_remedy() {
    let state = State::new("too-many-dropped");
    let search = |name, keep, depth| {
        let flags = ["--width", "60", "--name", name, "--keep", keep];
        state.search(&[&flags[..], &["--max-depth", depth]].concat())
    };
    search("changed", "all", "5");
    assert!(search("changed", "last", "18").summary["replay"].is_null());
    search("last", "last", "18");
    for (name, dropped, remedy) in [
        ("changed", "5 to 17", ": pass --depth 4 or less"),
        ("last", "0 to 17", ""),
    ] {
        let error = state.run(&["keyframes", name, "--depth", "18"]).error(1);
        let expected = format!(
            "the wells of depths {dropped} were not kept, so no game can be read back from depth 18{remedy}"
        );
        assert_eq!(error, expected);
    }
    let read = state.run(&["keyframes", "changed", "--depth", "4"]);
    assert_eq!(read.code, 0, "{read:?}");
}

#[test]
fn missing_depths_are_reported_and_recomputed() {
    let state = State::new("missing");
    let search = state.search(&["--width", "60", "--name", "gaps", "--keep", "last"]);
    assert_eq!(search.summary["end"], "over");
    assert!(search.summary["replay"].is_null(), "{}", search.summary);
    // Earlier versions dropped depths by a rule that they did not store.
    let path = Path::new(search.summary["folder"].as_str().unwrap()).join("manifest.json");
    let manifest = fs::read_to_string(&path).unwrap();
    let changed = manifest.replace("\"keep\": \"last\"", "\"keep\": \"all\"");
    assert_ne!(changed, manifest);
    fs::write(&path, changed).unwrap();
    let (_, error) = state
        .run(&["runs", "show", "gaps", "--verify"])
        .late_error();
    for part in [
        "depth 0 has no tables, although its retention rule keeps all depths (and ",
        "hatebeam runs repair",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let shown = state.run(&["runs", "show", "gaps", "--verify", "--json"]);
    assert_eq!(shown.code, 1);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(shown["damaged"], serde_json::json!([]));
    assert_eq!(shown["missing"][0], 0);

    // The run has no replay only because tables are missing, so it is repaired and its best game is read back.
    let resume = ["resume", "gaps", "--json", "-q"];
    let resumed = state.run(&resume);
    assert!(resumed.err.contains("tables are missing"), "{resumed:?}");
    let resumed = resumed.results();
    let resumed: Value = serde_json::from_str(resumed.lines().last().unwrap()).unwrap();
    assert!(resumed["replay"].is_string(), "{resumed}");
    state.digests("gaps");
    let again = Search::parse(state.run(&resume));
    assert_eq!(again.summary["replay"], resumed["replay"]);
}

#[test]
fn damaged_runs_can_be_removed() {
    let state = State::new("remove-damaged");
    for (name, file, is_removed) in [
        ("manifest", "manifest.json", false),
        ("no-manifest", "manifest.json", true),
        ("no-depths", "depths.jsonl", true),
        ("no-db", "db", true),
    ] {
        let search = state.search(&["--width", "20", "--name", name]);
        let folder = Path::new(search.summary["folder"].as_str().unwrap());
        let path = folder.join(file);
        match is_removed {
            false => fs::write(&path, "").unwrap(),
            true if path.is_dir() => fs::remove_dir_all(&path).unwrap(),
            true => fs::remove_file(&path).unwrap(),
        }
        let remove = format!("runs rm {name} --state {}`", state.path().display());
        let error = state
            .run(&["run", "--width", "20", "--name", name])
            .error(1);
        for part in [&remove, "--name"] {
            assert!(error.contains(part), "{error}");
        }
        if name != "no-manifest" {
            for command in [&["resume", name][..], &["runs", "show", name]] {
                let error = state.run(command).error(1);
                assert!(error.contains(&remove), "{error}");
            }
        }
        let removed = state.run(&["runs", "rm", name, "--yes"]);
        assert_eq!(removed.code, 0, "{removed:?}");
        assert!(!folder.exists());
        let saved = state.path().join("replays").join(name);
        assert_eq!(fs::read_dir(saved).unwrap().count(), 5);
    }
    // An interrupted removal may have left these files.
    for (name, left) in [
        ("manifest-left", &["manifest.json", "lock"][..]),
        ("lock-left", &["lock"]),
        ("nothing-left", &[]),
    ] {
        let search = state.search(&["--width", "20", "--name", name]);
        let folder = Path::new(search.summary["folder"].as_str().unwrap());
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_name().to_str().unwrap() {
                name if left.contains(&name) => {}
                _ if entry.path().is_dir() => fs::remove_dir_all(entry.path()).unwrap(),
                _ => fs::remove_file(entry.path()).unwrap(),
            }
        }
        state.run(&["runs", "rm", name, "--yes"]).results();
        assert!(!folder.exists());
    }
    let other = state.path().join("runs/other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("file"), "mine").unwrap();
    let error = state.run(&["runs", "rm", "other", "--yes"]).error(1);
    assert!(error.contains("contains no run"), "{error}");
    assert!(other.join("file").exists());
}
