//! Tests the pages, the JSON API and the event streams.

use crate::client::{Client, events};
use crate::fake::{FINISHED, FakeCoordinator, RECORD, RUNNING, serve, settings};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn form(width: u64) -> Value {
    let spec = json!({
        "width": width,
        "well": { "columns": 10, "rows": 16, "clear_above_bar": false },
        "start": "empty",
        "evaluator": { "kind": "patterns", "quiescence": "off" },
    });
    json!({ "spec": spec, "keep": "4", "max_dollars": 12.5, "max_hours": 2 })
}

#[tokio::test]
async fn pages_are_served_with_security_headers() {
    let (address, serving) = serve(&FakeCoordinator::empty(), settings()).await;
    let client = Client::of(address);
    for (path, kind, part) in [
        ("/", "text/html; charset=utf-8", "<main"),
        ("/app.js", "text/javascript; charset=utf-8", "import"),
        ("/app.css", "text/css; charset=utf-8", "--ink"),
        ("/play/", "text/html; charset=utf-8", "page.js"),
        ("/play/app.css", "text/css; charset=utf-8", "--ink"),
        ("/icon.svg", "image/svg+xml", "<svg"),
        (
            "/vendor/uPlot.js",
            "text/javascript; charset=utf-8",
            "uPlot",
        ),
        (
            "/vendor/uPlot-LICENSE.txt",
            "text/plain; charset=utf-8",
            "MIT",
        ),
    ] {
        let response = client.get(path).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, Some(kind))
        );
        assert!(response.body.contains(part), "{path}");
        assert_eq!(response.header("cache-control"), Some("no-cache"));
    }
    let page = client.get("/").await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe"), "{policy}");
    let games = client.get("/play/").await;
    let policy = games.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("'wasm-unsafe-eval'"));
    assert!(!policy.contains("'unsafe"), "{policy}");
    assert_eq!(client.get("/play").await.status, 308);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    let runs = client.get("/api/v1/runs").await;
    assert_eq!((runs.status, runs.json()), (200, json!({ "runs": [] })));
    assert_eq!(runs.header("cache-control"), Some("no-store"));
    let nothing = client.get("/api/v1/nothing").await;
    assert_eq!(nothing.status, 404);
    assert!(nothing.header("content-security-policy").is_some());
    assert_eq!(client.get("/../Cargo.toml").await.status, 404);
    assert_eq!(client.send("DELETE", "/api/v1/runs", b"").await.status, 405);
    serving.abort();
}

#[tokio::test]
async fn api_lists_runs_workers_and_depths() {
    let fake = FakeCoordinator::busy(2500);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    let runs = client.get("/api/v1/runs").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4);
    assert_eq!(runs["runs"][0]["run"], RUNNING);
    assert_eq!(runs["runs"][0]["state"], "running");
    assert_eq!(runs["runs"][2]["best_lines"], 148);
    // The entries in the list of runs contain no specification.
    assert!(runs["runs"][0].get("spec").is_none());
    let run = client.get(&format!("/api/v1/runs/{RUNNING}")).await.json();
    assert_eq!(
        (&run["depth"], &run["max_dollars"]),
        (&json!(2500), &json!(2.0))
    );
    assert_eq!(run["used_seconds"], 6480.0);
    assert_eq!(run["spec"]["well"]["columns"], 10);
    let cost = run["cost"]["dollars"].as_f64().unwrap();
    let of_depths: u64 = fake.world().depths.iter().map(|d| d.cost_micros + 48).sum();
    assert!((cost - of_depths as f64 / 1e6).abs() < 1e-9, "{cost}");
    assert_eq!(run["projection"]["depths"], json!([2560, 2610]));
    let missing = client.get("/api/v1/runs/no%20such%20run").await;
    assert_eq!(missing.status, 404);
    assert!(
        missing.error().contains("\"no such run\""),
        "{}",
        missing.body
    );

    let mut from = 0;
    let mut pages = Vec::new();
    loop {
        let path = format!("/api/v1/runs/{RUNNING}/depths?from={from}");
        let page = client.get(&path).await.json();
        let depths = page["depths"].as_array().unwrap().clone();
        pages.push(depths.len());
        for (depth, at) in depths.iter().zip(from.max(1)..) {
            assert_eq!(depth["depth"], at);
            assert_eq!(depth["best_well"].as_str().unwrap().len(), 48);
        }
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(pages, [1000, 1000, 500]);
    // The last page is full.
    let path = format!("/api/v1/runs/{RUNNING}/depths?from=2001&limit=500");
    let page = client.get(&path).await.json();
    assert_eq!(page["depths"].as_array().unwrap().len(), 500);
    assert_eq!(page["next"], Value::Null);
    for (query, part) in [
        ("from=-1", "invalid digit"),
        ("from=x", "invalid digit"),
        ("limit=0", "1 to 1000"),
        ("limit=1001", "1 to 1000"),
        ("form=1", "unknown field"),
    ] {
        let path = format!("/api/v1/runs/{RUNNING}/depths?{query}");
        let refused = client.get(&path).await;
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.error().contains(part), "{}", refused.body);
    }

    let workers = client.get("/api/v1/workers").await.json();
    let workers = workers["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 3);
    assert_eq!(workers[0]["machine"]["dollars_per_hour"], 3.456);
    assert_eq!(workers[2]["machine"], Value::Null);
    serving.abort();
}

#[tokio::test]
async fn api_estimates_submits_and_cancels_runs_and_drains_workers() {
    let fake = FakeCoordinator::busy(3);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    let estimate = client.post("/api/v1/estimate", &form(5000)).await.json();
    assert_eq!(
        (&estimate["workers"], &estimate["dollars"]),
        (&json!(3), &json!([0.08, 0.2]))
    );
    let unknown = client.post("/api/v1/estimate", &form(1_000_000)).await;
    assert_eq!(
        (unknown.status, unknown.error().as_str()),
        (400, "no speed is known")
    );

    let submitted = client.post("/api/v1/runs", &form(5000)).await;
    assert_eq!(
        (submitted.status, &submitted.json()["state"]),
        (200, &json!("queued"))
    );
    let request = fake.world().submitted.pop().unwrap();
    let spec: Value = serde_json::from_str(&request.spec).unwrap();
    assert_eq!(spec["width"], 5000);
    assert_eq!((request.keep.as_str(), request.shards), ("4", 0));
    assert_eq!(
        (request.max_cost_micros, request.max_seconds),
        (12_500_000, 7200)
    );
    // The response contains the message of the service's error.
    let refused = client.post("/api/v1/runs", &form(0)).await;
    assert_eq!(
        (refused.status, refused.error().as_str()),
        (400, "the width is 0")
    );

    let path = format!("/api/v1/runs/{RUNNING}/cancel");
    let cancelled = client.post(&path, &json!({})).await;
    assert_eq!(cancelled.json()["state"], "cancelled");
    let unknown = client.post("/api/v1/runs/x/cancel", &json!({})).await;
    assert_eq!(unknown.status, 404);

    let drained = client.post("/api/v1/workers/c5d-1/drain", &json!({})).await;
    assert_eq!(drained.status, 200);
    assert_eq!(fake.world().drained, ["c5d-1"]);
    assert_eq!(
        client
            .post("/api/v1/workers/x/drain", &json!({}))
            .await
            .status,
        404
    );
    serving.abort();
}

#[tokio::test]
async fn invalid_and_oversized_bodies_are_rejected() {
    let fake = FakeCoordinator::busy(1);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    let json_client = client.with("Content-Type", "application/json");
    let mut negative = form(10);
    negative["max_dollars"] = json!(-1);
    let negative = negative.to_string().into_bytes();
    for (body, status) in [
        (&b""[..], 400),
        (b"{", 400),
        (b"[]", 422),
        (b"\xff\xfe", 400),
        (b"{\"spec\":{},\"unknown\":1}", 422),
        (&negative, 400),
        (b"{\"spec\":{},\"shards\":-1}", 422),
        (&[b' '; 200_000], 413),
    ] {
        let response = json_client.send("POST", "/api/v1/runs", body).await;
        assert_eq!(response.status, status, "{} {}", body.len(), response.body);
        assert!(!response.error().is_empty());
    }
    // A form on another site can send these content types, so the API must refuse them.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let form_client = client.with("Content-Type", kind);
        for path in [
            "/api/v1/runs",
            "/api/v1/workers/c5d-1/drain",
            "/api/v1/logout",
        ] {
            let response = form_client.send("POST", path, b"{}").await;
            assert_eq!(response.status, 415, "{kind} {path}");
        }
    }
    assert!(fake.world().submitted.is_empty() && fake.world().drained.is_empty());
    serving.abort();
}

#[tokio::test]
async fn game_comes_from_the_result_or_is_read_back() {
    let fake = FakeCoordinator::busy(3);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    let film = |run: &str, query: &str| {
        let (client, path) = (client.clone(), format!("/api/v1/runs/{run}/game{query}"));
        async move { client.get(&path).await }
    };
    let best = film(FINISHED, "").await.json();
    assert_eq!((&best["score"], &best["over"]), (&json!(148), &json!(true)));
    assert_eq!(best["base2048"], RECORD.trim());
    assert_eq!(best["turns"].as_array().unwrap().len(), best["pieces"]);
    assert_eq!(film(RUNNING, "?depth=2").await.json()["score"], 148);
    assert_eq!(film("unknown", "").await.status, 404);
    assert_eq!(film(RUNNING, "?depth=-2").await.status, 400);
    // A coordinator that cannot read back games still serves the best game of an ended run.
    fake.world().has_games = false;
    let cannot = film(RUNNING, "").await;
    assert_eq!(cannot.status, 501);
    assert!(
        cannot.error().contains("before the run has ended"),
        "{}",
        cannot.body
    );
    assert_eq!(film(FINISHED, "").await.status, 200);
    serving.abort();
}

#[tokio::test]
async fn event_stream_does_not_repeat_unchanged_data() {
    let fake = FakeCoordinator::busy(1500);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    let path = format!("/api/v1/runs/{RUNNING}/events?from=1001");
    let growing = fake.clone();
    let grower = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        growing.grow();
    });
    let received = events(&client, &path, 6).await;
    grower.await.unwrap();
    let names: Vec<&str> = received.iter().map(|(name, _)| name.as_str()).collect();
    // Only the run and the new depth have changed, so the workers and alerts are not sent again.
    assert_eq!(
        names,
        ["run", "depths", "workers", "alerts", "run", "depths"]
    );
    let depths = received[1].1.as_array().unwrap();
    assert_eq!((depths.len(), &depths[0]["depth"]), (500, &json!(1001)));
    assert_eq!(received[3].1[0]["worker"], "c5d-2");
    assert_eq!(received[5].1[0]["depth"], 1501);

    // The stream of an ended run contains all its data, followed by `end`.
    let received = events(&client, &format!("/api/v1/runs/{FINISHED}/events"), 9).await;
    assert_eq!(received.last().unwrap().0, "end");
    assert_eq!(received[0].1["stopped_by"], "max-cost");

    let received = events(&client, "/api/v1/events", 2).await;
    assert_eq!(
        (received[0].0.as_str(), received[1].0.as_str()),
        ("runs", "workers")
    );
    assert_eq!(client.get("/api/v1/runs/x/events").await.status, 404);
    serving.abort();
}

#[tokio::test]
async fn number_of_open_event_streams_is_limited() {
    let (address, serving) = serve(&FakeCoordinator::busy(1), settings()).await;
    let client = Client::of(address);
    let mut streams = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = client.request("GET", "/api/v1/events", b"");
        stream.write_all(&request).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        streams.push(stream);
    }
    let refused = client.get("/api/v1/events").await;
    assert_eq!(refused.status, 503);
    assert!(
        refused.error().contains("64 browser tabs"),
        "{}",
        refused.body
    );
    assert_eq!(client.get("/api/v1/runs").await.status, 200);
    drop(streams);
    let begun = std::time::Instant::now();
    while events(&client, "/api/v1/events", 1).await.is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the closed streams still count"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    serving.abort();
}
