//! Test suite for the behavior that all stores have in common.

use bytes::Bytes;
use hatebeam_objects::{Condition, Entry, ObjectError, Objects, Probe, Stored};
use std::path::Path;
use std::time::Instant;
use tokio::task::JoinSet;

/// The result of probing a store that honors all conditions.
pub(crate) const CONDITIONAL: Probe = Probe {
    if_absent: true,
    if_is: true,
};

pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let words = (0..bytes.div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(bytes).collect()
}

pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Runs the whole suite on an empty store. `many` is the number of objects in the longest list. `expected` contains the
/// conditions that the store honors.
pub(crate) async fn conforms(objects: &Objects, many: usize, expected: Probe) {
    assert_eq!(objects.probe("probes").await.unwrap(), expected);
    assert_eq!(objects.list("").await.unwrap(), []);
    whole_objects(objects).await;
    ranges(objects).await;
    files(objects).await;
    keys_are_checked(objects).await;
    lists(objects).await;
    pages(objects, many).await;
    if expected.conditional() {
        conditions(objects).await;
        one_writer_wins(objects).await;
    }
}

async fn whole_objects(objects: &Objects) {
    let before = objects.stats();
    assert!(objects.get("whole/a").await.unwrap_err().is_not_found());
    assert!(objects.size("whole/a").await.unwrap_err().is_not_found());
    objects.delete("whole/a").await.unwrap();
    for text in ["", "first", "the second"] {
        objects.put("whole/a", Bytes::from(text)).await.unwrap();
        let (bytes, version) = objects.get("whole/a").await.unwrap();
        assert_eq!(bytes, text);
        assert!(!version.as_str().is_empty());
        assert_eq!(objects.size("whole/a").await.unwrap(), text.len() as u64);
    }
    let odd = "whole/ä +%20 &=?#'名";
    objects.put(odd, Bytes::from("odd")).await.unwrap();
    assert_eq!(objects.get(odd).await.unwrap().0, "odd");
    let keys: Vec<_> = objects
        .list("whole")
        .await
        .unwrap()
        .into_iter()
        .map(|e| e.key)
        .collect();
    assert_eq!(keys, ["whole/a", odd]);
    assert_eq!(objects.delete_prefix("whole").await.unwrap(), 2);
    assert_eq!(objects.list("whole").await.unwrap(), []);
    let after = objects.stats();
    assert_eq!(after.puts - before.puts, 4);
    assert_eq!(after.gets - before.gets, 4);
    assert_eq!(after.bytes_out - before.bytes_out, 18);
    assert_eq!(after.bytes_in - before.bytes_in, 18);
    assert_eq!(after.deletes - before.deletes, 3);
    assert_eq!(after.lists - before.lists, 2);
    assert_eq!(after.errors, before.errors);
}

async fn ranges(objects: &Objects) {
    objects
        .put("range", Bytes::from("0123456789"))
        .await
        .unwrap();
    for (range, text) in [(0..3, "012"), (3..10, "3456789"), (9..100, "9"), (4..4, "")] {
        assert_eq!(objects.get_range("range", range).await.unwrap(), text);
    }
    let behind = objects.get_range("range", 10..11).await.unwrap_err();
    assert!(
        matches!(behind, ObjectError::OutOfRange { start: 10, .. }),
        "{behind}"
    );
    assert!(
        objects
            .get_range("none", 0..1)
            .await
            .unwrap_err()
            .is_not_found()
    );
    objects.delete("range").await.unwrap();
}

/// Tests files that are uploaded to S3 with and without parts. The S3 tests use parts of 5 MiB.
async fn files(objects: &Objects) {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    for bytes in [0, 1, 5 << 20, (11 << 20) + 1] {
        let content = noise(bytes, 1 + bytes as u64);
        std::fs::write(&from, &content).unwrap();
        let stored = objects.put_file("files/one", &from).await.unwrap();
        assert_eq!(stored, Stored::of(&content));
        assert_eq!(objects.size("files/one").await.unwrap(), bytes as u64);
        assert!(objects.get("files/one").await.unwrap().0 == content);
    }
    let middle = objects
        .get_range("files/one", 5_242_870..5_242_890)
        .await
        .unwrap();
    assert_eq!(middle, std::fs::read(&from).unwrap()[5_242_870..5_242_890]);
    let no_file = objects
        .put_file("files/two", &dir.path().join("none"))
        .await
        .unwrap_err();
    assert!(matches!(no_file, ObjectError::Io { .. }), "{no_file}");
    assert_eq!(objects.list("files").await.unwrap().len(), 1);
    assert_eq!(names_in(dir.path()), ["from"]);
    objects.delete_prefix("files").await.unwrap();
}

async fn keys_are_checked(objects: &Objects) {
    for key in ["", "../up", "a//b", "/a", "a\\b", ".lock", ".tmp/a"] {
        let error = objects.put(key, Bytes::new()).await.unwrap_err();
        assert!(matches!(error, ObjectError::Key { .. }), "{error}");
        assert!(objects.get(key).await.is_err());
        assert!(objects.delete(key).await.is_err());
    }
    let all = objects.delete_prefix("").await.unwrap_err();
    assert!(matches!(all, ObjectError::Key { .. }), "{all}");
}

async fn lists(objects: &Objects) {
    for key in [
        "lists/b/1",
        "lists/a/x/2",
        "lists/a-b",
        "lists/a/1",
        "listsother/1",
        "lists/c",
    ] {
        objects.put(key, Bytes::from("12")).await.unwrap();
    }
    let entry = |key: &str| Entry {
        key: key.to_owned(),
        bytes: 2,
    };
    let all = [
        "lists/a-b",
        "lists/a/1",
        "lists/a/x/2",
        "lists/b/1",
        "lists/c",
    ]
    .map(entry);
    assert_eq!(objects.list("lists").await.unwrap(), all);
    assert_eq!(objects.list("lists/").await.unwrap(), all);
    assert_eq!(objects.list("lists/a").await.unwrap(), all[1..3]);
    assert_eq!(objects.list("lists/c").await.unwrap(), []);
    assert_eq!(objects.list_dirs("lists").await.unwrap(), ["a", "b"]);
    assert_eq!(
        objects.list_dirs("").await.unwrap(),
        ["lists", "listsother"]
    );
    assert_eq!(objects.list_dirs("lists/b").await.unwrap(), [""; 0]);
    let some = ["lists/b/1", "lists/none", "lists/a-b"].map(str::to_owned);
    objects.delete_all(&some).await.unwrap();
    objects.delete_all(&[]).await.unwrap();
    let rest = objects.list("lists").await.unwrap();
    let keys: Vec<&str> = rest.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["lists/a/1", "lists/a/x/2", "lists/c"]);
    assert_eq!(objects.delete_prefix("lists").await.unwrap(), 3);
    assert_eq!(objects.list("").await.unwrap(), [entry("listsother/1")]);
    objects.delete_prefix("listsother").await.unwrap();
}

/// Tests a long list. S3 needs several pages to list more than 1,000 objects, and several requests to delete them.
async fn pages(objects: &Objects, many: usize) {
    let mut puts = JoinSet::new();
    for first in 0..8 {
        let objects = objects.clone();
        puts.spawn(async move {
            for n in (first..many).step_by(8) {
                let key = format!("pages/{:02}/{n:05}", n % 20);
                objects.put(&key, Bytes::from("x")).await.unwrap();
            }
        });
    }
    puts.join_all().await;
    let entries = objects.list("pages").await.unwrap();
    assert_eq!(entries.len(), many);
    assert!(entries.is_sorted_by(|a, b| a.key < b.key));
    assert_eq!(objects.list_dirs("pages").await.unwrap().len(), 20);
    assert_eq!(objects.delete_prefix("pages").await.unwrap(), many as u64);
    assert_eq!(objects.list("pages").await.unwrap(), []);
}

async fn conditions(objects: &Objects) {
    let put = |text: &'static str, condition: Condition| async move {
        objects
            .put_if("condition", Bytes::from(text), &condition)
            .await
    };
    let first = put("1", Condition::Absent).await.unwrap();
    assert!(put("2", Condition::Absent).await.unwrap_err().is_changed());
    let (bytes, version) = objects.get("condition").await.unwrap();
    assert_eq!((bytes.as_ref(), &version), (b"1".as_ref(), &first));
    let second = put("2", Condition::Is(first.clone())).await.unwrap();
    assert_ne!(first, second);
    assert!(
        put("3", Condition::Is(first))
            .await
            .unwrap_err()
            .is_changed()
    );
    assert_eq!(
        objects.get("condition").await.unwrap(),
        (Bytes::from("2"), second.clone())
    );
    objects.delete("condition").await.unwrap();
    assert!(
        put("4", Condition::Is(second))
            .await
            .unwrap_err()
            .is_changed()
    );
    assert!(objects.get("condition").await.unwrap_err().is_not_found());
    put("5", Condition::Absent).await.unwrap();
    objects.delete("condition").await.unwrap();
}

async fn one_writer_wins(objects: &Objects) {
    let mut condition = Condition::Absent;
    for round in 0..25 {
        let mut tasks = JoinSet::new();
        for task in 0..8 {
            let (objects, condition) = (objects.clone(), condition.clone());
            tasks.spawn(async move {
                let text = Bytes::from(format!("round {round} task {task}"));
                (objects.put_if("race", text.clone(), &condition).await, text)
            });
        }
        let mut winners = Vec::new();
        for (result, text) in tasks.join_all().await {
            match result {
                Ok(version) => winners.push((text, version)),
                Err(error) => assert!(error.is_changed(), "{error}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(objects.get("race").await.unwrap(), winners[0]);
        // In the next round, all writers try to replace the winner's version.
        condition = Condition::Is(winners[0].1.clone());
    }
    objects.delete("race").await.unwrap();
}

pub(crate) async fn measure(name: &str, objects: &Objects) {
    const MEBIBYTES: usize = 256;
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    std::fs::write(&from, noise(MEBIBYTES << 20, 7)).unwrap();
    let begin = Instant::now();
    objects.put_file("measured", &from).await.unwrap();
    let up = MEBIBYTES as f64 / begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    objects.get("measured").await.unwrap();
    let down = MEBIBYTES as f64 / begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    for n in 0..200 {
        objects
            .put(&format!("small/{n}"), Bytes::from("x"))
            .await
            .unwrap();
    }
    let small = 200.0 / begin.elapsed().as_secs_f64();
    println!("{name}: {up:.0} MiB/s up, {down:.0} MiB/s down, {small:.0} small puts a second");
    objects.delete("measured").await.unwrap();
    objects.delete_prefix("small").await.unwrap();
}
