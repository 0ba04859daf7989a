//! What runs cost: real processes, prices that are told or found out, budgets that are kept.

use crate::rig::{PATIENCE, Rig, Watched, hatebeam};
use crate::{WIDTH, alone, wait_for_depth};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// A metadata service as AWS has it, version 2: who does not open a session is turned away.
pub(crate) struct Service {
    pub(crate) endpoint: String,
    is_to_go: Arc<AtomicBool>,
    /// Questions without a session.
    turned_away: Arc<AtomicUsize>,
}

impl Service {
    pub(crate) fn start() -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let service = Service {
            endpoint,
            is_to_go: Arc::default(),
            turned_away: Arc::default(),
        };
        let (is_to_go, turned_away) = (
            Arc::clone(&service.is_to_go),
            Arc::clone(&service.turned_away),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (is_to_go, turned_away) = (Arc::clone(&is_to_go), Arc::clone(&turned_away));
                std::thread::spawn(move || answer_all(&stream, &is_to_go, &turned_away));
            }
        });
        service
    }
}

const SESSION: &str = "a-session";

fn answer_all(stream: &TcpStream, is_to_go: &AtomicBool, turned_away: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => lines.push(line.trim().to_owned()),
            }
        }
        let header = |name: &str| {
            let fields = lines.iter().filter_map(|line| line.split_once(':'));
            let mut values = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
            values.next().map(|(_, value)| value.trim().to_owned())
        };
        let request: Vec<&str> = lines[0].split(' ').collect();
        let has_session = header("x-aws-ec2-metadata-token").as_deref() == Some(SESSION);
        let ttl = header("x-aws-ec2-metadata-token-ttl-seconds");
        let (code, text) = match (request[0], request[1]) {
            ("PUT", "/latest/api/token") if ttl.is_some() => ("200 OK", SESSION),
            ("GET", _) if !has_session => {
                turned_away.fetch_add(1, Ordering::Relaxed);
                ("401 Unauthorized", "")
            }
            ("GET", "/latest/meta-data/instance-type") => ("200 OK", "c5d.18xlarge"),
            ("GET", "/latest/meta-data/instance-life-cycle") => ("200 OK", "spot"),
            ("GET", "/latest/meta-data/instance-id") => ("200 OK", "i-0123456789"),
            ("GET", "/latest/meta-data/placement/region") => ("200 OK", "us-east-1"),
            ("GET", "/latest/meta-data/placement/availability-zone") => ("200 OK", "us-east-1b"),
            ("GET", "/latest/meta-data/spot/instance-action")
                if is_to_go.load(Ordering::Relaxed) =>
            {
                (
                    "200 OK",
                    r#"{"action": "terminate", "time": "2030-01-01T00:00:00Z"}"#,
                )
            }
            _ => ("404 Not Found", ""),
        };
        let answer = format!(
            "HTTP/1.1 {code}\r\ncontent-type: text/plain\r\nx-aws-ec2-metadata-token-ttl-seconds: {}\r\n\
             content-length: {}\r\n\r\n{text}",
            ttl.unwrap_or_default(),
            text.len()
        );
        let mut writer = stream;
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn workers(rig: &Rig) -> Vec<Value> {
    let output = rig.client(&["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["workers"].as_array().unwrap().clone()
}

#[test]
fn a_machine_tells_what_it_is_and_a_worker_goes_before_it_is_taken_away() {
    let expected = alone(&WIDTH);
    let service = Service::start();
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.place.env = vec![(
        "AWS_EC2_METADATA_SERVICE_ENDPOINT".to_owned(),
        service.endpoint.clone(),
    )];
    rig.start_worker("w0", &["--threads", "1"]);
    rig.place.env.clear();
    rig.start_worker("w1", &["--threads", "1", "--price-per-hour", "7.2"]);
    rig.submit(&WIDTH);
    wait_for_depth(&rig, 3);
    let seen = workers(&rig);
    assert_eq!(seen[0]["machine"]["kind"], "c5d.18xlarge", "{seen:?}");
    assert_eq!(seen[0]["machine"]["market"], "spot");
    assert_eq!(seen[0]["machine"]["region"], "us-east-1");
    assert_eq!(seen[0]["machine"]["dollars_per_hour"], 1.38);
    assert_eq!(seen[1]["machine"]["dollars_per_hour"], 7.2);
    assert_eq!(service.turned_away.load(Ordering::Relaxed), 0);
    service.is_to_go.store(true, Ordering::Relaxed);
    let mut leaving = rig.workers.remove("w0").unwrap();
    assert_eq!(leaving.ends(), Some(0), "{}", leaving.log());
    assert!(leaving.log().contains("taken away"), "{}", leaving.log());
    let watched = rig.watch();
    watched.assert_same(&expected);
    let cost = &watched.end["cost"];
    let machines = cost["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 2, "{cost}");
    // Each at its own price, for the time that it was there.
    for machine in machines {
        let dollars = machine["machine"]["dollars_per_hour"].as_f64().unwrap() / 3600.0
            * machine["seconds"].as_f64().unwrap();
        let depths = watched.depths.values();
        let each: f64 = depths.map(|depth| depth["dollars"].as_f64().unwrap()).sum();
        assert!(each > 0.0 && each <= cost["dollars"].as_f64().unwrap() + 1e-9);
        let charged = machine["dollars"].as_f64().unwrap();
        assert!((charged - dollars).abs() < 2e-6, "{machine}");
        assert_eq!(machine["attends"], false, "the run is over");
    }
    assert!(cost["dollars"].as_f64().unwrap() > 0.0);
    assert_eq!(cost["unpriced"], 0);
}

#[test]
fn a_budget_ends_a_run_within_a_depth_and_a_greater_one_has_it_go_on() {
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    // A dollar a second, so that there is something to see.
    rig.coordinator_flags = vec!["--price-per-hour".to_owned(), "1800".to_owned()];
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "2", "--price-per-hour", "1800"]);
    rig.submit(&[&WIDTH[..], &["--max-cost", "3"]].concat());
    // Limits of a run that goes on are not changed in silence; and who names none only looks.
    let other = rig.client(&[&["submit"], &WIDTH[..], &["--max-cost", "4"]].concat());
    assert_eq!(other.status.code(), Some(1));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(said.contains("hatebeam limit"), "{said}");
    assert_eq!(rig.submit(&WIDTH)["max_dollars"], 3.0);
    let watched = rig.watch();
    assert_eq!(watched.end["state"], "finished");
    assert_eq!(watched.end["stopped_by"], "max-cost");
    assert_eq!(watched.end["max_dollars"], 3.0);
    let last = watched.depths.keys().last().unwrap();
    assert!(*last > 3 && watched.depths.len() < expected.depths.len());
    for (depth, line) in watched.depths.range(1..) {
        assert_eq!(line["digest"], expected.depths[depth]["digest"], "{depth}");
    }
    // Stopped before it was spent, and not long before; what is read back at the end costs a little, too.
    let dollars = watched.end["cost"]["dollars"].as_f64().unwrap();
    assert!((2.0..4.5).contains(&dollars), "{}", watched.end);
    let replay = watched.end["replay"].as_str().unwrap();
    let score = watched.end["best_lines"].to_string();
    let mut verify = hatebeam();
    verify.args(["replay", "verify", "--expect-score", &score, replay]);
    assert!(verify.output().unwrap().status.success(), "{replay}");
    let text = rig.client(&["status"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("stopped by --max-cost"), "{text}");
    // With the same budget nothing happens; with more it goes on, and what was spent is still on the bill.
    let same = rig.submit(&[&WIDTH[..], &["--max-cost", "3"]].concat());
    assert_eq!(same["state"], "finished");
    let more = rig.submit(&WIDTH);
    assert_eq!(more["state"], "queued");
    let watched = rig.watch();
    watched.assert_same(&expected);
    assert_eq!(watched.end["stopped_by"], "");
    assert!(watched.end["cost"]["dollars"].as_f64().unwrap() > dollars);
}

fn limit(rig: &Rig, args: &[&str]) -> Result<Value, String> {
    let output = rig.client(&[&["limit", "--json"], args].concat());
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// Waits for a depth of one of several runs.
#[track_caller]
fn wait_for(rig: &Rig, run: &str, depth: u64) {
    let begun = Instant::now();
    loop {
        let output = rig.client(&["status", run, "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if status["runs"][0]["depth"].as_u64() >= Some(depth) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{status}: {}", rig.logs());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_run_that_goes_on_is_given_another_budget() {
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.start_coordinator();
    let priced = ["--threads", "2", "--price-per-hour", "3600"];
    let submitted = rig.submit(&[&WIDTH[..], &["--max-cost", "500", "--max-depth", "9"]].concat());
    let run = submitted["run"].as_str().unwrap();
    // Before there is a worker, and another run, which waits behind it.
    let limited = limit(&rig, &[run, "--max-depth", "none"]).unwrap();
    assert_eq!(
        (&limited["max_depth"], &limited["max_dollars"]),
        (&Value::Null, &Value::from(500.0))
    );
    let behind = rig.submit(&["--width", "90", "--max-hours", "1"]);
    let behind = behind["run"].as_str().unwrap();
    let limited = limit(&rig, &[behind, "--max-hours", "none", "--max-depth", "5"]).unwrap();
    assert_eq!(
        (&limited["max_depth"], &limited["max_hours"]),
        (&Value::from(5), &Value::Null)
    );
    rig.start_worker("w0", &priced);
    wait_for(&rig, run, 1);
    limit(&rig, &[run, "--max-cost", "1000"]).unwrap();
    // What was said holds, whatever becomes of the coordinator.
    rig.coordinator.as_mut().unwrap().kill();
    rig.start_coordinator();
    let output = rig.client(&["watch", run, "--json", "--quiet"]);
    let watched = Watched::of(&output);
    watched.assert_same(&expected);
    assert_eq!(watched.end["max_dollars"], 1000.0);
    let late = limit(&rig, &[run, "--max-cost", "1"]).unwrap_err();
    assert!(late.contains("has ended"), "{late}");
    let output = rig.client(&["wait", behind, "--json"]);
    let waited: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&waited["depth"], &waited["stopped_by"]),
        (&Value::from(5), &Value::from("max-depth"))
    );
    // In the middle of a depth: it ends with that.
    let wide = rig.submit(&["--width", "300k"])["run"].clone();
    let wide = wide.as_str().unwrap();
    wait_for(&rig, wide, 6);
    let limited = limit(&rig, &[wide, "--max-depth", "7"]).unwrap();
    assert_eq!(limited["max_depth"], 7);
    let output = rig.client(&["wait", wide, "--json"]);
    let waited: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(waited["stopped_by"], "max-depth");
    assert!(waited["depth"].as_u64().unwrap() < 20, "{waited}");
    for wrong in [
        &[run][..],
        &[run, "--max-cost", "much"],
        &[run, "--max-depth", "0"],
    ] {
        let output = rig.client(&[&["limit"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn what_was_spent_is_known_after_a_restart_and_hours_are_a_budget_too() {
    let mut rig = Rig::new();
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1", "--price-per-hour", "3600"]);
    let begun = Instant::now();
    // Twelve seconds.
    rig.submit(&["--width", "20000", "--max-hours", "0.00333"]);
    wait_for_depth(&rig, 3);
    rig.coordinator.as_mut().unwrap().kill();
    rig.start_coordinator();
    let watched = rig.watch();
    let elapsed = begun.elapsed().as_secs_f64();
    assert_eq!(watched.end["stopped_by"], "max-hours", "{}", watched.end);
    // A dollar a second, while there was no coordinator as well: at most a look's time is missing.
    let dollars = watched.end["cost"]["dollars"].as_f64().unwrap();
    assert!(
        (8.0..elapsed).contains(&dollars),
        "{dollars} in {elapsed} s"
    );
    let machines = watched.end["cost"]["machines"].as_array().unwrap();
    assert_eq!(machines.len(), 1, "{machines:?}");
}

#[test]
fn a_coordinator_without_work_ends_by_itself() {
    let mut rig = Rig::new();
    // 1.2 seconds.
    rig.coordinator_flags = vec!["--idle-stop".to_owned(), "0.02".to_owned()];
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.submit(&["--width", "500", "--max-depth", "20"]);
    let mut coordinator = rig.coordinator.take().unwrap();
    let begun = Instant::now();
    assert_eq!(coordinator.ends(), Some(0), "{}", coordinator.log());
    assert!(begun.elapsed() < PATIENCE);
    let finished = std::fs::read_dir(rig.dir.path().join("store/runs"));
    let run = finished.unwrap().next().unwrap().unwrap().path();
    let manifest = std::fs::read(run.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["state"], "finished");
    assert_eq!(manifest["stopped_by"], "max-depth");
}
