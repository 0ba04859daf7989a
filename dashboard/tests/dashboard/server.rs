//! Tests what the server serves, and which requests it rejects.

use crate::fake::{FINISHED, FakeCoordinator, RECORD, RUNNING, serve, settings};
use hatebeam_dashboard::{Settings, bind};
use hatebeam_net::Tls;
use hatebeam_net::certs;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

const TOKEN: &str = "correct-horse-battery";

/// A response. The names of its headers are in lower case.
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.body))
    }

    #[track_caller]
    fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A client with an address and headers.
#[derive(Clone)]
struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Client {
    fn of(address: SocketAddr) -> Client {
        let host = ("Host".to_owned(), address.to_string());
        Client {
            address,
            headers: vec![host],
        }
    }

    /// Returns a client with an added or replaced header.
    fn with(&self, name: &str, value: impl Into<String>) -> Client {
        let mut client = self.clone();
        client.headers.retain(|(other, _)| other != name);
        client.headers.push((name.to_owned(), value.into()));
        client
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let headers: String = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }

    async fn send(&self, method: &str, path: &str, body: &[u8]) -> Response {
        let stream = TcpStream::connect(self.address).await.unwrap();
        exchange(stream, &self.request(method, path, body)).await
    }

    async fn get(&self, path: &str) -> Response {
        self.send("GET", path, b"").await
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        let client = self.with("Content-Type", "application/json");
        client.send("POST", path, body.to_string().as_bytes()).await
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> Response {
    // The server may respond and close the connection before it has read the whole request.
    let _ = stream.write_all(request).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let fields = fields
        .split("\r\n")
        .map(|field| match field.split_once(':') {
            Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
            None => field.to_owned(),
        });
    let head = std::iter::once(line.to_owned()).chain(fields);
    let is_chunked = response
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    Response {
        status: status.unwrap_or(0),
        head: head.collect::<Vec<_>>().join("\n"),
        body: if is_chunked {
            decode_chunks(body)
        } else {
            body.to_owned()
        },
    }
}

fn decode_chunks(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|_| size > 0) else {
            break;
        };
        whole.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or("");
    }
    whole
}

/// Reads the first `count` events of a stream.
async fn events(client: &Client, path: &str, count: usize) -> Vec<(String, Value)> {
    let mut stream = TcpStream::connect(client.address).await.unwrap();
    stream
        .write_all(&client.request("GET", path, b""))
        .await
        .unwrap();
    let mut text = String::new();
    let mut buffer = vec![0; 1 << 16];
    let read = async {
        loop {
            let found = parse_events(&text);
            if found.len() >= count {
                return found;
            }
            match stream.read(&mut buffer).await.unwrap() {
                0 => return found,
                size => text.push_str(&String::from_utf8_lossy(&buffer[..size])),
            }
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    read.expect("the events arrive in time")
}

/// Parses the complete events of a chunked response.
fn parse_events(text: &str) -> Vec<(String, Value)> {
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let whole = decode_chunks(body);
    let ends = whole.rfind("\n\n").unwrap_or(0);
    let events = whole[..ends].split("\n\n").filter_map(|event| {
        let name = event
            .lines()
            .find_map(|line| line.strip_prefix("event: "))?;
        let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
        Some((name.to_owned(), serde_json::from_str(data).unwrap()))
    });
    events.collect()
}

fn form(width: u64) -> Value {
    json!({ "spec": { "width": width }, "keep": "4", "max_dollars": 12.5, "max_hours": 2 })
}

#[tokio::test]
async fn pages_are_served_with_security_headers() {
    let (address, serving) = serve(&FakeCoordinator::empty(), settings()).await;
    let client = Client::of(address);
    for (path, kind, part) in [
        ("/", "text/html; charset=utf-8", "<main"),
        ("/app.js", "text/javascript; charset=utf-8", "import"),
        ("/app.css", "text/css; charset=utf-8", "--ink"),
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
async fn api_returns_runs_workers_and_depths() {
    let fake = FakeCoordinator::busy(2500);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    let runs = client.get("/api/v1/runs").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4);
    assert_eq!(runs["runs"][0]["run"], RUNNING);
    assert_eq!(runs["runs"][0]["state"], "running");
    assert_eq!(runs["runs"][2]["best_lines"], 148);
    // The list of runs has no specifications.
    assert!(runs["runs"][0].get("spec").is_none());
    let run = client.get(&format!("/api/v1/runs/{RUNNING}")).await.json();
    assert_eq!(
        (&run["depth"], &run["max_dollars"]),
        (&json!(2500), &json!(2.0))
    );
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
async fn run_is_estimated_submitted_and_cancelled_and_worker_is_drained() {
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
    assert_eq!(request.spec, "{\"width\":5000}");
    assert_eq!((request.keep.as_str(), request.shards), ("4", 0));
    assert_eq!(
        (request.max_cost_micros, request.max_seconds),
        (12_500_000, 7200)
    );
    // Errors of the service keep their text.
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
    for (body, status) in [
        (&b""[..], 400),
        (b"{", 400),
        (b"[]", 422),
        (b"\xff\xfe", 400),
        (b"{\"spec\":{},\"unknown\":1}", 422),
        (b"{\"spec\":{},\"max_dollars\":-1}", 400),
        (b"{\"spec\":{},\"shards\":-1}", 422),
        (&[b' '; 200_000], 413),
    ] {
        let response = json_client.send("POST", "/api/v1/runs", body).await;
        assert_eq!(response.status, status, "{} {}", body.len(), response.body);
        assert!(!response.error().is_empty());
    }
    // Types that a form on another site could send.
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
async fn film_comes_from_result_or_is_read_back() {
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
    // A coordinator that cannot read games back still has the game of an ended run.
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
async fn changes_are_streamed() {
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
    // Unchanged workers and alerts are not sent again.
    assert_eq!(
        names,
        ["run", "depths", "workers", "alerts", "run", "depths"]
    );
    let depths = received[1].1.as_array().unwrap();
    assert_eq!((depths.len(), &depths[0]["depth"]), (500, &json!(1001)));
    assert_eq!(received[3].1[0]["worker"], "c5d-2");
    assert_eq!(received[5].1[0]["depth"], 1501);

    // The stream of an ended run has all its data and then `end`.
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
async fn number_of_streams_is_limited_and_closed_streams_free_their_place() {
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

#[tokio::test]
async fn foreign_origins_and_host_names_are_rejected() {
    let fake = FakeCoordinator::busy(1);
    let (address, serving) = serve(&fake, settings()).await;
    let client = Client::of(address);
    for host in [
        "evil.example",
        "localhost.evil.example",
        "192.168.1.1:7880",
        "",
    ] {
        for path in ["/", "/api/v1/runs"] {
            let response = client.with("Host", host).get(path).await;
            assert!(matches!(response.status, 400 | 421), "{host} {path}");
            assert!(!response.body.contains("patterns"), "{}", response.body);
        }
    }
    let own = format!("http://{address}");
    let body = json!({});
    for origin in [
        "http://evil.example",
        "null",
        "https://evil.example",
        &own.replace("http", "https"),
    ] {
        let foreign = client.with("Origin", origin);
        assert_eq!(foreign.get("/api/v1/runs").await.status, 403, "{origin}");
        let drain = foreign.post("/api/v1/workers/c5d-1/drain", &body).await;
        assert_eq!(drain.status, 403, "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        let foreign = client.with("Sec-Fetch-Site", site);
        assert_eq!(foreign.get("/api/v1/runs").await.status, 403);
        // Other sites may link to the page.
        assert_eq!(foreign.get("/").await.status, 200);
    }
    assert!(fake.world().drained.is_empty());
    let own = client
        .with("Origin", own)
        .with("Sec-Fetch-Site", "same-origin");
    assert_eq!(
        own.post("/api/v1/workers/c5d-1/drain", &body).await.status,
        200
    );
    serving.abort();
}

#[tokio::test]
async fn every_call_except_sign_in_requires_the_token() {
    let fake = FakeCoordinator::busy(1);
    let with_token = Settings {
        token: Some(TOKEN.parse().unwrap()),
        ..settings()
    };
    let (address, serving) = serve(&fake, with_token).await;
    let client = Client::of(address);
    let body = json!({});
    for path in [
        "/api/v1/runs",
        "/api/v1/runs/x",
        "/api/v1/runs/x/depths",
        "/api/v1/runs/x/game",
        "/api/v1/runs/x/events",
        "/api/v1/workers",
        "/api/v1/events",
    ] {
        assert_eq!(client.get(path).await.status, 401, "{path}");
    }
    for path in [
        "/api/v1/runs",
        "/api/v1/estimate",
        "/api/v1/runs/x/cancel",
        "/api/v1/workers/c5d-1/drain",
    ] {
        assert_eq!(client.post(path, &body).await.status, 401, "{path}");
    }
    assert_eq!(client.get("/").await.status, 200);
    let session = client.get("/api/v1/session").await.json();
    assert_eq!(
        (&session["token_required"], &session["signed_in"]),
        (&json!(true), &json!(false))
    );

    let bearer = client.with("Authorization", format!("Bearer {TOKEN}"));
    assert_eq!(bearer.get("/api/v1/runs").await.status, 200);
    let wrong = client.with("Authorization", "Bearer correct-horse-batterz");
    assert_eq!(wrong.get("/api/v1/runs").await.status, 401);

    let guess = client
        .post(
            "/api/v1/login",
            &json!({ "token": "correct-horse-batterz" }),
        )
        .await;
    assert_eq!((guess.status, guess.header("set-cookie")), (401, None));
    assert!(!guess.body.contains("horse"), "{}", guess.body);
    let signed_in = client
        .post("/api/v1/login", &json!({ "token": TOKEN }))
        .await;
    assert_eq!((signed_in.status, signed_in.body.as_str()), (204, ""));
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap().to_owned();
    let signed_in_client = client.with("Cookie", pair.clone());
    assert_eq!(signed_in_client.get("/api/v1/runs").await.status, 200);
    assert_eq!(
        signed_in_client.get("/api/v1/session").await.json()["signed_in"],
        true
    );
    // Another site cannot use the cookie.
    let foreign = signed_in_client.with("Origin", "http://evil.example");
    assert_eq!(
        foreign
            .post("/api/v1/workers/c5d-1/drain", &body)
            .await
            .status,
        403
    );
    let forged = client.with("Cookie", format!("{pair}0"));
    assert_eq!(forged.get("/api/v1/runs").await.status, 401);
    let out = signed_in_client.post("/api/v1/logout", &body).await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(signed_in_client.get("/api/v1/runs").await.status, 401);
    assert!(fake.world().drained.is_empty());
    serving.abort();
}

#[tokio::test]
async fn network_address_requires_tls_and_token_unless_allowed() {
    let open = |tls: Option<Tls>, token: Option<&str>, insecure_bind| Settings {
        listen: "0.0.0.0:0".parse().unwrap(),
        tls,
        token: token.map(|token| token.parse().unwrap()),
        insecure_bind,
    };
    let error = bind(open(None, Some(TOKEN), false))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("--insecure-bind"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    make_certificates(dir.path());
    let tls = || Some(Tls::in_dir(dir.path(), "coordinator"));
    let error = bind(open(tls(), None, false))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("there is no token") && error.contains("--token-file"),
        "{error}"
    );
    bind(open(tls(), Some(TOKEN), false)).await.unwrap();
    bind(open(None, None, true)).await.unwrap();

    let here = bind(settings()).await.unwrap();
    let taken = here
        .url()
        .split("//")
        .nth(1)
        .unwrap()
        .trim_end_matches('/')
        .parse();
    let again = bind(Settings {
        listen: taken.unwrap(),
        ..settings()
    });
    let error = again.await.unwrap_err();
    assert!(error.is_taken(), "{error}");
}

fn make_certificates(dir: &std::path::Path) {
    let options = certs::Options {
        dir,
        names: &[],
        days: 30,
        renew: false,
    };
    certs::make(&options, SystemTime::now()).unwrap();
}

#[tokio::test]
async fn https_server_requires_no_client_certificate() {
    let dir = tempfile::tempdir().unwrap();
    make_certificates(dir.path());
    let with_tls = Settings {
        tls: Some(Tls::in_dir(dir.path(), "coordinator")),
        token: Some(TOKEN.parse().unwrap()),
        ..settings()
    };
    let server = bind(with_tls.clone()).await.unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let (address, serving) = serve(&FakeCoordinator::busy(1), with_tls).await;
    let mut roots = RootCertStore::empty();
    let ca = rustls::pki_types::CertificateDer::from_pem_file(dir.path().join("ca.pem")).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let client = Client::of(address).with("Authorization", format!("Bearer {TOKEN}"));
    let call = |name: &'static str, client: Client, path: &'static str| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(client.address).await.unwrap();
            let name = ServerName::try_from(name).unwrap();
            let stream = connector.connect(name, stream).await.unwrap();
            exchange(stream, &client.request("GET", path, b"")).await
        }
    };
    // The certificate is also valid for the loopback names of an SSH tunnel.
    for name in ["hatebeam", "localhost", "127.0.0.1", "::1"] {
        let response = call(name, client.clone(), "/api/v1/runs").await;
        assert_eq!(response.status, 200, "{name}");
    }
    let get = |client, path| call("localhost", client, path);
    let origin = client.with("Origin", format!("https://{address}"));
    assert_eq!(get(origin, "/api/v1/runs").await.status, 200);
    let plain = client.with("Origin", format!("http://{address}"));
    assert_eq!(get(plain, "/api/v1/runs").await.status, 403);
    // The server does not response plain HTTP.
    assert_eq!(client.get("/api/v1/runs").await.status, 0);
    serving.abort();
}

/// Writer that collects log lines.
#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn log_contains_neither_token_nor_cookie() {
    let lines = Lines::default();
    let to = lines.clone();
    let logging = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || to.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(logging, || {
        runtime.block_on(async {
            let with_token = Settings {
                token: Some(TOKEN.parse().unwrap()),
                ..settings()
            };
            let (address, serving) = serve(&FakeCoordinator::busy(1), with_token).await;
            let client = Client::of(address);
            let signed_in = client
                .post("/api/v1/login", &json!({ "token": TOKEN }))
                .await;
            let cookie = signed_in.header("set-cookie").unwrap().to_owned();
            let wrong = json!({ "token": format!("{TOKEN}-and-more") });
            assert_eq!(client.post("/api/v1/login", &wrong).await.status, 401);
            let bearer = client.with("Authorization", format!("Bearer {TOKEN}"));
            assert_eq!(bearer.get("/api/v1/runs").await.status, 200);
            let logged = String::from_utf8_lossy(&lines.0.lock().unwrap()).into_owned();
            assert!(logged.contains("wrong token"), "{logged}");
            let secret = cookie.split(['=', ';']).nth(1).unwrap();
            assert!(
                !logged.contains("horse") && !logged.contains(secret),
                "{logged}"
            );
            serving.abort();
        });
    });
}
