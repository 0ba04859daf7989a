//! Tests that pin the current formats, which `docs/formats.md` describes, and tests of reading older formats.
//!
//! The program at revision 1085a8a wrote `formats/manifest-2.json` and the files `formats/run-1-*`. It used manifest format
//! 2 and run folder format 1. `manifest-1.json` is `manifest-2.json` without the fields that format 2 added.
//! `run-4-manifest.json` is the manifest of a run without a result in format 4.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Geometry, Rules};
use hatebeam_runs::{
    EndReason, GroupLimits, Limits, LoopRule, Retention, Run, RunSpec, Settings, Start, WellSpec,
    best_game, result_of,
};
use hatebeam_search::{
    ChangedPiece, DepthRecord, EvaluatorKind, EvaluatorSpec, Fingerprint, Quiescence,
};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const RUN_1: &str = include_str!("formats/run-1-manifest.json");
const DEPTHS_1: &str = include_str!("formats/run-1-depths.jsonl");
const RUN_4: &str = include_str!("formats/run-4-manifest.json");

/// Returns the specification of the runs in `formats/`.
fn spec() -> RunSpec {
    RunSpec {
        well: WellSpec::new(Geometry::new(6, 6).unwrap(), Rules::default()),
        ..RunSpec::new(
            20,
            EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off),
        )
    }
}

fn search(dir: &Path, max_depth: u32) -> Run {
    search_and_keep(dir, Retention::All, max_depth)
}

fn search_and_keep(dir: &Path, keep: Retention, max_depth: u32) -> Run {
    let run = Run::open_or_create(dir, &spec(), Some(keep)).unwrap();
    let settings = Settings {
        threads: 1,
        limits: Limits {
            max_depth: Some(max_depth),
            ..Limits::default()
        },
        group: GroupLimits {
            depths: 1,
            ..GroupLimits::default()
        },
    };
    let searched = run.search(&settings, &AtomicBool::new(false), &mut ());
    searched.unwrap().0
}

/// Returns the format number in the manifest of a run folder.
fn format_of(dir: &Path) -> serde_json::Value {
    let text = std::fs::read(dir.join("manifest.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["format"].clone()
}

#[test]
fn run_folder_of_format_4_is_read_and_continued_with_another_retention_rule() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("old");
    drop(search(&dir, 6));
    std::fs::write(dir.join("manifest.json"), RUN_4).unwrap();
    let run = Run::open_read_only(&dir).unwrap();
    assert_eq!((run.spec(), run.keep()), (&spec(), Retention::All));
    drop(run);
    assert_eq!(format_of(&dir), 4);
    drop(search_and_keep(&dir, Retention::Last, 8));
    assert_eq!(format_of(&dir), 5);
    let run = Run::open(&dir, None).unwrap();
    assert_eq!((run.spec(), run.keep()), (&spec(), Retention::Last));
    assert_eq!(run.missing().count(), 0);
}

#[test]
fn run_folder_of_format_1_is_read_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("old");
    let new = search(&dir, 6);
    let game = best_game(&new).unwrap();
    let new_records = new.store().depths().to_vec();
    drop(new);
    // The table format has not changed. With these files of the old program, the folder has format 1.
    std::fs::write(dir.join("manifest.json"), RUN_1).unwrap();
    std::fs::write(dir.join("depths.jsonl"), DEPTHS_1).unwrap();

    let run = Run::open_read_only(&dir).unwrap();
    for (old, new) in run.store().depths().iter().zip(&new_records) {
        let new = DepthRecord {
            seconds: old.seconds,
            bytes: old.bytes,
            ..new.clone()
        };
        assert_eq!(*old, new);
    }
    let result = result_of(run.store()).unwrap();
    assert_eq!((result.end, result.depth), (EndReason::MaxDepth, 6));
    let old_game = result.game.unwrap();
    assert_eq!((old_game.lines, old_game.pieces), (game.score, 7));
    assert_eq!(old_game.files.len(), 5);
    let replay = "replays/00001-lines-0007-pieces-20-wide-2026-11-22.txt";
    assert_eq!(old_game.files[0], replay);
    drop(run);

    // Reading does not change the format, but searching does. A program that only supports format 1 therefore
    // refuses the folder instead of treating the new records as damaged.
    assert_eq!(format_of(&dir), 1);
    let run = search(&dir, 8);
    assert_eq!(format_of(&dir), 5);
    assert_eq!(run.store().depths().len(), 9);
    drop(run);
    let records = std::fs::read_to_string(dir.join("depths.jsonl")).unwrap();
    let (old, new): (Vec<&str>, Vec<&str>) = records
        .lines()
        .partition(|line| line.contains("best_score"));
    assert_eq!((old.len(), new.len()), (7, 2));
    assert!(new.iter().all(|line| line.contains("\"best_lines\"")));
    let run = Run::open(&dir, None).unwrap();
    assert_eq!(run.store().depths().len(), 9);
}

#[cfg(feature = "objects")]
mod manifests {
    use super::*;
    use hatebeam_cost::Micros;
    use hatebeam_runs::{Manifest, ManifestError, RunState};

    const FORMAT_1: &str = include_str!("formats/manifest-1.json");
    const FORMAT_2: &str = include_str!("formats/manifest-2.json");

    fn parse(text: &str) -> Manifest {
        Manifest::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn manifest_of_format_2_is_read() {
        let manifest = parse(FORMAT_2);
        assert_eq!((manifest.format, manifest.spec.width), (6, 20));
        assert_eq!(manifest.spec, spec());
        assert_eq!(manifest.state, RunState::Finished);
        assert_eq!(manifest.end, Some(EndReason::MaxDepth));
        assert!(!manifest.stop_requested);
        let limits = Limits {
            max_depth: Some(6),
            max_cost: Some(Micros(5_000_000)),
            max_time: None,
        };
        assert_eq!(manifest.limits, limits);
        assert_eq!(manifest.ledger.machine_cost(), Micros(766));
        assert_eq!((manifest.depths.len(), manifest.best_lines()), (7, 1));
        assert_eq!(manifest.depths[1].cost, Micros(439));
        assert_eq!(manifest.depths[6].record.best_eval, 171_552);
        let lists = manifest.depths.iter().flat_map(|depth| &depth.tables);
        assert!(lists.map(|list| list.shards).eq([2; 6]));
        let game = manifest.result.as_ref().unwrap();
        assert_eq!((game.lines, game.depth, game.files.len()), (1, 6, 5));
        // The manifest is written in the current format, and parsing it again yields the same manifest.
        let text = serde_json::to_string(&manifest).unwrap();
        for old in [
            "bill",
            "outcome",
            "budget",
            "stopped_by",
            "_score",
            "is_to_stop",
        ] {
            assert!(!text.contains(old), "{old}");
        }
        assert_eq!(parse(&text), manifest);
    }

    #[test]
    fn upgrade_of_open_run_from_format_2_keeps_stop_request() {
        let open = FORMAT_2
            .replace("\"finished\"", "\"running\"")
            .replace("\"stopped_by\":\"max-depth\"", "\"stopped_by\":null")
            .replace("\"is_to_stop\":false", "\"is_to_stop\":true");
        let manifest = parse(&open);
        assert!(manifest.is_open() && manifest.stop_requested);
        assert_eq!(manifest.end, None);
    }

    #[test]
    fn manifest_of_format_1_is_read() {
        let manifest = parse(FORMAT_1);
        assert_eq!(manifest.end, Some(EndReason::MaxDepth));
        assert_eq!(manifest.limits.max_depth, Some(6));
        assert_eq!(manifest.limits.max_cost, None);
        assert_eq!(manifest.ledger.machines, []);
        assert_eq!(manifest.result.as_ref().unwrap().ended_ms, 0);
        let unlimited = parse(&FORMAT_1.replace("\"max_depth\":6", "\"max_depth\":null"));
        assert_eq!(unlimited.end, Some(EndReason::Over));
    }

    #[test]
    fn damaged_and_newer_manifests_are_errors() {
        let current = serde_json::to_string(&parse(FORMAT_2)).unwrap();
        let error = |from: &str, to: &str| {
            assert!(current.contains(from), "{from}");
            Manifest::parse(current.replacen(from, to, 1).as_bytes()).unwrap_err()
        };
        let later = error("\"format\":6", "\"format\":7");
        assert!(
            matches!(later, ManifestError::Newer { found: 7 }),
            "{later}"
        );
        for (from, to) in [
            ("\"format\"", "\"form\""),
            ("\"shards\":2", "\"shards\":0"),
            ("\"depth\":3", "\"depth\":9"),
            ("\"ledger\"", "\"bill\""),
            ("{", ""),
        ] {
            let error = error(from, to);
            assert!(
                matches!(error, ManifestError::Damaged(_)),
                "{from}: {error}"
            );
        }
    }
}

/// Tests that pin the current formats, which `docs/formats.md` describes.
mod current {
    use super::*;
    use hatebeam_runs::{GameResult, SearchResult};
    use serde_json::{Value, json};

    fn game() -> GameResult {
        GameResult {
            lines: 1,
            pieces: 7,
            replay: "x".to_owned(),
            lookups: 8,
            seconds: 0.5,
            depth: 6,
            ended_ms: 1_795_318_865_007,
            files: vec!["replays/a.txt".to_owned()],
            parted_at: Some(5),
        }
    }

    fn game_json() -> Value {
        json!({
            "lines": 1, "pieces": 7, "replay": "x", "lookups": 8, "seconds": 0.5, "depth": 6,
            "ended_ms": 1_795_318_865_007_u64, "files": ["replays/a.txt"], "parted_at": 5,
        })
    }

    #[test]
    fn specification_and_name_have_documented_format() {
        let text = concat!(
            r#"{"width":20,"well":{"columns":6,"rows":6,"clear_above_bar":false},"start":"empty","#,
            r#""evaluator":{"kind":"knewjade","weights":{"holes":11.2106,"enclosed":83.7646,"#,
            r#""enclosed_lines":83.7646,"surface_height":-83.7646,"stack_height":0.0,"bumpiness":0.0,"gaps":0.0,"#,
            r#""steps":0.0,"erasability":-83.7646,"erasability_sz":0.0,"score":-332.2211},"quiescence":"off"}"#,
        );
        let with_search = format!(r#"{text},"search":"1-aff763be108b4610-95d506e08dd9bdcd"}}"#);
        assert_eq!(serde_json::to_string(&spec()).unwrap(), with_search);
        assert_eq!(
            serde_json::from_str::<RunSpec>(&with_search).unwrap(),
            spec()
        );
        // Specifications of version 0.1.0 contain no fingerprint. The run's name contains a hash of their text.
        let text = format!("{text}}}");
        assert_eq!(serde_json::from_str::<RunSpec>(&text).unwrap(), spec());
        assert_eq!(spec().name(), "knewjade-20-9fbc4697");
        let later = RunSpec {
            search: Fingerprint::from_text("2-a-b"),
            ..spec()
        };
        assert_ne!(later.name(), spec().name());
        let exact = RunSpec {
            loops: LoopRule::Exact,
            ..spec()
        };
        let exact_text = with_search.replace(r#","search""#, r#","loops":"exact","search""#);
        assert_eq!(serde_json::to_string(&exact).unwrap(), exact_text);
        assert_eq!(serde_json::from_str::<RunSpec>(&exact_text).unwrap(), exact);
        assert_ne!(exact.name(), spec().name());
        for (start, text) in [
            (
                Start::Well {
                    hex: "00".to_owned(),
                },
                r#"{"well":{"hex":"00"}}"#,
            ),
            (
                Start::Replay {
                    base2048: "x".to_owned(),
                    piece: 3,
                },
                r#"{"replay":{"base2048":"x","piece":3}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&start).unwrap(), text);
        }
    }

    #[test]
    fn manifest_of_run_folder_has_documented_format() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let mut run = search(&dir, 6);
        let result = run
            .summarize("name", EndReason::MaxDepth, Some(game()), Some(1000))
            .unwrap();
        run.set_result(&result).unwrap();
        let SearchResult {
            digest,
            children,
            seconds,
            stored_bytes,
            ..
        } = result;
        let expected = json!({
            "format": 5,
            "geometry": { "width": 6, "height": 6 },
            "spec": { "search": spec(), "keep": "all" },
            "result": {
                "run": "name", "end": "max-depth", "depth": 6, "digest": digest, "game": game_json(),
                "children": children, "seconds": seconds, "peak_rss_bytes": 1000, "stored_bytes": stored_bytes,
            },
        });
        let text = std::fs::read(dir.join("manifest.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn changes_of_the_retention_rule_have_documented_format() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let spec_of = || {
            let text = std::fs::read(dir.join("manifest.json")).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap()["spec"].clone()
        };
        drop(search(&dir, 6));
        assert_eq!(spec_of(), json!({ "search": spec(), "keep": "all" }));
        drop(search_and_keep(&dir, Retention::Every(2), 8));
        let expected = json!({
            "search": spec(), "keep": "all", "keep_changes": [{ "from": 6, "keep": "2" }],
        });
        assert_eq!(spec_of(), expected);
        drop(search_and_keep(&dir, Retention::Last, 9));
        let changes = json!([{ "from": 6, "keep": "2" }, { "from": 8, "keep": "last" }]);
        assert_eq!(spec_of()["keep_changes"], changes);
    }

    #[cfg(feature = "objects")]
    mod manifests {
        use super::*;
        use hatebeam_cost::{Machine, MachineUsage, Micros, UsageLedger};
        use hatebeam_objects::{Memory, Objects, Options};
        use hatebeam_runs::{
            CommittedDepth, DepthTables, Manifest, ManifestError, RunState, Table, TableList,
            VersionedManifest,
        };
        use std::time::Duration;

        const FORMAT_3: &str = include_str!("formats/manifest-3.json");
        const FORMAT_4: &str = include_str!("formats/manifest-4.json");
        const FORMAT_5: &str = include_str!("formats/manifest-5.json");
        const FORMAT_6: &str = include_str!("formats/manifest-6.json");

        fn changed() -> ChangedPiece {
            ChangedPiece {
                well: "000000003c1e".to_owned(),
                piece: 'Z',
            }
        }

        fn record(depth: u32) -> DepthRecord {
            DepthRecord {
                depth,
                count: 2,
                digest: "000102030405060708090a0b0c0d0e0f".to_owned(),
                best_eval: 900,
                median_eval: -20,
                worst_eval: -300,
                best_lines: 1,
                best_well: "000000003c1e".to_owned(),
                children: 31,
                seconds: 0.25,
                bytes: 1234,
                kept: true,
                changed: Vec::new(),
            }
        }

        fn depths() -> Vec<CommittedDepth> {
            let first = CommittedDepth {
                record: record(0),
                sent: 0,
                sent_bytes: 0,
                tables: None,
                cost: Micros(0),
                waiting: Micros(0),
            };
            let second = CommittedDepth {
                record: record(1),
                sent: 10,
                sent_bytes: 270,
                tables: Some(TableList {
                    key: "tables/00001-3.json".to_owned(),
                    shards: 2,
                    bytes: 308,
                    checksum: "fa1267e7a1e2980c".to_owned(),
                }),
                cost: Micros(439),
                waiting: Micros(40),
            };
            vec![first, second]
        }

        fn machine() -> Machine {
            Machine {
                kind: "c5d.18xlarge".to_owned(),
                market: "spot".to_owned(),
                region: "us-east-1".to_owned(),
                zone: "us-east-1b".to_owned(),
                id: "i-0123456789".to_owned(),
                price_per_hour: Some(Micros(1_380_000)),
                price_from: "the price table".to_owned(),
            }
        }

        /// Returns a manifest that has a value in every field.
        fn manifest() -> Manifest {
            Manifest {
                limits: Limits {
                    max_depth: Some(6),
                    max_cost: Some(Micros(5_000_000)),
                    max_time: Some(Duration::from_secs(3600)),
                },
                state: RunState::Finished,
                note: "a note".to_owned(),
                epoch: 3,
                coordinator: "coordinator-1".to_owned(),
                seconds: 0.5,
                depths: depths(),
                result: Some(game()),
                ledger: UsageLedger {
                    machines: vec![MachineUsage {
                        name: "w1".to_owned(),
                        started_ms: 1_795_318_800_000,
                        machine: machine(),
                        milliseconds: 2000,
                        until_ms: Some(1_795_318_802_000),
                    }],
                    milliseconds: 2000,
                    until_ms: None,
                    writes: 7,
                    reads: 8,
                    kib_seconds: 9,
                },
                end: Some(EndReason::MaxDepth),
                stop_requested: true,
                ..Manifest::new(
                    "name".to_owned(),
                    spec(),
                    Retention::All,
                    2,
                    1_795_318_800_000,
                )
            }
        }

        #[test]
        fn manifest_has_documented_format() {
            let text = serde_json::to_string_pretty(&manifest()).unwrap();
            assert_eq!(text.trim(), FORMAT_6.trim());
            let parsed = Manifest::parse(FORMAT_6.as_bytes()).unwrap();
            assert_eq!(parsed, manifest());
        }

        /// Adds the JSON pointers of all objects in a value. `at` is the pointer of the value.
        fn add_objects(value: &Value, at: &str, pointers: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    pointers.push(at.to_owned());
                    for (name, field) in fields {
                        add_objects(field, &format!("{at}/{name}"), pointers);
                    }
                }
                Value::Array(elements) => {
                    for (index, element) in elements.iter().enumerate() {
                        add_objects(element, &format!("{at}/{index}"), pointers);
                    }
                }
                _ => {}
            }
        }

        #[test]
        fn manifest_with_an_unknown_field_is_refused() {
            let mut manifest = manifest();
            manifest.depths[1].record.changed = vec![changed()];
            let value = serde_json::to_value(&manifest).unwrap();
            let mut pointers = Vec::new();
            add_objects(&value, "", &mut pointers);
            for object in ["", "/depths/1/record", "/depths/1/record/changed/0"] {
                assert!(pointers.iter().any(|pointer| pointer == object), "{object}");
            }
            for pointer in pointers {
                let mut value = value.clone();
                let fields = value.pointer_mut(&pointer).unwrap().as_object_mut();
                fields.unwrap().insert("unknown".to_owned(), json!(1));
                let error = Manifest::parse(value.to_string().as_bytes()).unwrap_err();
                assert!(
                    error.to_string().contains("`unknown`"),
                    "{pointer}: {error}"
                );
            }
        }

        #[test]
        fn manifest_of_format_5_is_read() {
            let mut expected = manifest();
            expected.depths[1].record.changed = vec![changed()];
            let parsed = Manifest::parse(FORMAT_5.as_bytes()).unwrap();
            assert_eq!(parsed, expected);
        }

        #[test]
        fn manifest_of_format_4_is_read() {
            let parsed = Manifest::parse(FORMAT_4.as_bytes()).unwrap();
            assert_eq!(parsed, manifest());
        }

        #[test]
        fn manifest_of_format_3_is_read() {
            let mut expected = manifest();
            expected.depths[1].waiting = Micros(0);
            let parsed = Manifest::parse(FORMAT_3.as_bytes()).unwrap();
            assert_eq!(parsed, expected);
        }

        #[tokio::test]
        async fn existing_manifest_is_not_overwritten_without_conditional_writes() {
            let objects = Objects::in_memory(&Memory::new(), &Options::default()).unwrap();
            let created = VersionedManifest::create(&objects, manifest(), false).await;
            created.unwrap();
            let mut other = manifest();
            other.depths.clear();
            let again = VersionedManifest::create(&objects, other, false).await;
            assert!(matches!(again, Err(ManifestError::Superseded { .. })));
            let loaded = VersionedManifest::load(&objects, "name", false).await;
            assert_eq!(loaded.unwrap().manifest, manifest());
        }

        #[tokio::test]
        async fn list_of_tables_has_documented_format_and_keys() {
            let objects = Objects::in_memory(&Memory::new(), &Options::default()).unwrap();
            let versioned = VersionedManifest::create(&objects, manifest(), true);
            let versioned = versioned.await.unwrap();
            let table = Table {
                shard: 1,
                key: "frontier/00001/3-w1".to_owned(),
                offset: 100,
                bytes: 50,
                checksum: "fa1267e7a1e2980c".to_owned(),
                count: 2,
                digest: "000102030405060708090a0b0c0d0e0f".to_owned(),
            };
            let mut tables = DepthTables {
                tables: vec![table],
                changed: vec![changed()],
            };
            let list = versioned.put_tables(1, &tables).await.unwrap();
            assert_eq!(list.key, "tables/00001-3.json");
            let (written, _) = objects.get("runs/name/tables/00001-3.json").await.unwrap();
            let old = concat!(
                r#"[{"shard":1,"key":"frontier/00001/3-w1","offset":100,"bytes":50,"#,
                r#""checksum":"fa1267e7a1e2980c","count":2,"digest":"000102030405060708090a0b0c0d0e0f"}]"#,
            );
            let changed = r#"[{"well":"000000003c1e","piece":"Z"}]"#;
            let expected = format!(r#"{{"tables":{old},"changed":{changed}}}"#);
            assert_eq!(String::from_utf8_lossy(&written), expected);
            assert_eq!(DepthTables::parse(&written).unwrap(), tables);
            tables.changed.clear();
            assert_eq!(DepthTables::parse(old.as_bytes()).unwrap(), tables);
            let (written, _) = objects.get("runs/name/manifest.json").await.unwrap();
            assert_eq!(Manifest::parse(&written).unwrap(), manifest());
        }
    }
}
