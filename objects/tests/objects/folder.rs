//! Tests of stores in folders.

use crate::suite::{CONDITIONAL, conforms, measure, names_in};
use bytes::Bytes;
use hatebeam_objects::{Condition, ObjectError, Objects, Options};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::task::JoinSet;

async fn open(dir: &Path) -> Objects {
    Objects::open(dir.to_str().unwrap(), &Options::default())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_passes_the_store_suite() {
    let dir = tempfile::tempdir().unwrap();
    let objects = open(&dir.path().join("made/when/opened")).await;
    conforms(&objects, 1500, CONDITIONAL).await;
    let root = dir.path().join("made/when/opened");
    assert_eq!(names_in(&root), [".lock", ".tmp"]);
    assert!(names_in(&root.join(".tmp")).is_empty());
}

#[tokio::test]
#[ignore = "benchmark: run it with --nocapture"]
async fn folder_throughput() {
    let dir = tempfile::tempdir().unwrap();
    measure("folder", &open(dir.path()).await).await;
}

#[tokio::test]
async fn invalid_location_is_refused() {
    let error = Objects::open("gs://bucket", &Options::default())
        .await
        .unwrap_err();
    assert!(matches!(error, ObjectError::Location { .. }), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Objects::open(file.path().to_str().unwrap(), &Options::default()).await;
    assert!(matches!(error.unwrap_err(), ObjectError::Io { .. }));
    #[cfg(not(feature = "s3"))]
    {
        let error = Objects::open("s3://bucket", &Options::default())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("without S3"), "{error}");
    }
}

#[tokio::test]
async fn existing_folder_is_opened_without_being_changed() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default();
    let missing = dir.path().join("missing");
    let error = Objects::open_existing(missing.to_str().unwrap(), &options).await;
    let error = error.unwrap_err();
    assert!(matches!(error, ObjectError::Location { .. }), "{error}");
    assert!(!missing.exists());
    let existing = Objects::open_existing(dir.path().to_str().unwrap(), &options);
    assert!(existing.await.unwrap().list("").await.unwrap().is_empty());
    assert!(names_in(dir.path()).is_empty());
}

/// A deletion can remove a folder that another writer has just created, but the write must still succeed.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_and_deletions_all_succeed() {
    let dir = tempfile::tempdir().unwrap();
    let objects = open(dir.path()).await;
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        let objects = objects.clone();
        tasks.spawn(async move {
            for n in 0..50 {
                let key = format!("deep/er/{task}-{n}");
                objects.put(&key, Bytes::from("x")).await.unwrap();
                match task {
                    0 => objects.delete(&key).await.unwrap(),
                    1 => drop(objects.delete_prefix("deep").await.unwrap()),
                    _ => {}
                }
            }
        });
    }
    tasks.join_all().await;
    objects.delete_prefix("deep").await.unwrap();
    assert_eq!(names_in(dir.path()), [".lock", ".tmp"]);
}

const RACERS: usize = 4;
const ROUNDS: usize = 25;
const RACE_DIR: &str = "HATEBEAM_TEST_RACE_DIR";

/// Runs in each process of `one_process_wins_a_conditional_write`.
#[tokio::test]
#[ignore = "started by one_process_wins_a_conditional_write"]
async fn racer() {
    let Some(dir) = std::env::var_os(RACE_DIR) else {
        return;
    };
    let objects = open(Path::new(&dir)).await;
    for round in 0..ROUNDS {
        // Wait until all processes have reached this round.
        let me = format!("at/{round}/{}", std::process::id());
        objects.put(&me, Bytes::new()).await.unwrap();
        while objects.list(&format!("at/{round}")).await.unwrap().len() < RACERS {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        let race = format!("race/{round}");
        let won = objects.put_if(&race, Bytes::from(me), &Condition::Absent);
        match won.await {
            Ok(_) => objects
                .put(&format!("won/{round}/{}", std::process::id()), Bytes::new())
                .await
                .unwrap(),
            Err(error) => assert!(error.is_changed(), "{error}"),
        }
    }
}

#[tokio::test]
async fn one_process_wins_a_conditional_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut children: Vec<_> = (0..RACERS)
        .map(|_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "folder::racer", "--ignored"]);
            command.env(RACE_DIR, dir.path()).spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let objects = open(dir.path()).await;
    for round in 0..ROUNDS {
        let winners = objects.list(&format!("won/{round}")).await.unwrap();
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
    }
}
