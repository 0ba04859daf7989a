//! What is served, to whom, and what is refused.

use crate::made_up::{FINISHED, MadeUp, RECORD, RUNNING, serve, settings};
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

const WORD: &str = "correct-horse-battery";

/// An answer: its status, its headers in small letters, and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
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

/// Somebody who asks.
#[derive(Clone)]
struct Caller {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Caller {
    fn of(address: SocketAddr) -> Caller {
        let host = ("Host".to_owned(), address.to_string());
        Caller {
            address,
            headers: vec![host],
        }
    }

    /// With a header more, or another.
    fn with(&self, name: &str, value: impl Into<String>) -> Caller {
        let mut caller = self.clone();
        caller.headers.retain(|(other, _)| other != name);
        caller.headers.push((name.to_owned(), value.into()));
        caller
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

    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        asked(stream, &self.request(method, path, body)).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, b"").await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        let caller = self.with("Content-Type", "application/json");
        caller.ask("POST", path, body.to_string().as_bytes()).await
    }
}

async fn asked(mut stream: impl AsyncRead + AsyncWrite + Unpin, words: &[u8]) -> Answer {
    // It may answer, and hang up, before it has heard all.
    let _ = stream.write_all(words).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
    let fields = fields
        .split("\r\n")
        .map(|field| match field.split_once(':') {
            Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
            None => field.to_owned(),
        });
    let head = std::iter::once(line.to_owned()).chain(fields);
    let is_chunked = answer
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    Answer {
        status: status.unwrap_or(0),
        head: head.collect::<Vec<_>>().join("\n"),
        body: if is_chunked {
            unchunked(body)
        } else {
            body.to_owned()
        },
    }
}

fn unchunked(mut body: &str) -> String {
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

/// The events of a stream, until there are so many of them.
async fn events(caller: &Caller, path: &str, most: usize) -> Vec<(String, Value)> {
    let mut stream = TcpStream::connect(caller.address).await.unwrap();
    stream
        .write_all(&caller.request("GET", path, b""))
        .await
        .unwrap();
    let mut text = String::new();
    let mut buffer = vec![0; 1 << 16];
    let read = async {
        loop {
            let found = parsed(&text);
            if found.len() >= most {
                return found;
            }
            match stream.read(&mut buffer).await.unwrap() {
                0 => return found,
                size => text.push_str(&String::from_utf8_lossy(&buffer[..size])),
            }
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    read.expect("the events come")
}

/// Events that are whole. The chunks they come in are taken out first.
fn parsed(text: &str) -> Vec<(String, Value)> {
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let whole = unchunked(body);
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
async fn pages_are_complete_and_strict() {
    let (address, serving) = serve(&MadeUp::empty(), settings()).await;
    let caller = Caller::of(address);
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
        let answer = caller.get(path).await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some(kind))
        );
        assert!(answer.body.contains(part), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
    }
    let page = caller.get("/").await;
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
    let runs = caller.get("/api/v1/runs").await;
    assert_eq!((runs.status, runs.json()), (200, json!({ "runs": [] })));
    assert_eq!(runs.header("cache-control"), Some("no-store"));
    let nothing = caller.get("/api/v1/nothing").await;
    assert_eq!(nothing.status, 404);
    assert!(nothing.header("content-security-policy").is_some());
    assert_eq!(caller.get("/../Cargo.toml").await.status, 404);
    assert_eq!(caller.ask("DELETE", "/api/v1/runs", b"").await.status, 405);
    serving.abort();
}

#[tokio::test]
async fn runs_workers_and_depths_are_told() {
    let made_up = MadeUp::busy(2500);
    let (address, serving) = serve(&made_up, settings()).await;
    let caller = Caller::of(address);
    let runs = caller.get("/api/v1/runs").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4);
    assert_eq!(runs["runs"][0]["run"], RUNNING);
    assert_eq!(runs["runs"][0]["state"], "running");
    assert_eq!(runs["runs"][2]["points"], 148);
    // What is long is told of one run only.
    assert!(runs["runs"][0].get("spec").is_none());
    let run = caller.get(&format!("/api/v1/runs/{RUNNING}")).await.json();
    assert_eq!(
        (&run["depth"], &run["max_dollars"]),
        (&json!(2500), &json!(2.0))
    );
    assert_eq!(run["spec"]["well"]["columns"], 10);
    let cost = run["cost"]["dollars"].as_f64().unwrap();
    let of_depths: u64 = made_up
        .world()
        .depths
        .iter()
        .map(|d| d.cost_micros + 48)
        .sum();
    assert!((cost - of_depths as f64 / 1e6).abs() < 1e-9, "{cost}");
    assert_eq!(run["projection"]["depths"], json!([2560, 2610]));
    let missing = caller.get("/api/v1/runs/no%20such%20run").await;
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
        let page = caller.get(&path).await.json();
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
        let refused = caller.get(&path).await;
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.error().contains(part), "{}", refused.body);
    }

    let workers = caller.get("/api/v1/workers").await.json();
    let workers = workers["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 3);
    assert_eq!(workers[0]["machine"]["dollars_per_hour"], 3.456);
    assert_eq!(workers[2]["machine"], Value::Null);
    serving.abort();
}

#[tokio::test]
async fn a_run_is_estimated_submitted_and_cancelled_and_a_worker_drained() {
    let made_up = MadeUp::busy(3);
    let (address, serving) = serve(&made_up, settings()).await;
    let caller = Caller::of(address);
    let told = caller.post("/api/v1/estimate", &form(5000)).await.json();
    assert_eq!(
        (&told["workers"], &told["dollars"]),
        (&json!(3), &json!([0.08, 0.2]))
    );
    let unknown = caller.post("/api/v1/estimate", &form(1_000_000)).await;
    assert_eq!(
        (unknown.status, unknown.error().as_str()),
        (400, "nobody knows")
    );

    let submitted = caller.post("/api/v1/runs", &form(5000)).await;
    assert_eq!(
        (submitted.status, &submitted.json()["state"]),
        (200, &json!("queued"))
    );
    let request = made_up.world().submitted.pop().unwrap();
    assert_eq!(request.spec, "{\"width\":5000}");
    assert_eq!((request.keep.as_str(), request.shards), ("4", 0));
    assert_eq!(
        (request.max_cost_micros, request.max_seconds),
        (12_500_000, 7200)
    );
    // What the service refuses is refused in its words.
    let refused = caller.post("/api/v1/runs", &form(0)).await;
    assert_eq!(
        (refused.status, refused.error().as_str()),
        (400, "the width is 0")
    );

    let path = format!("/api/v1/runs/{RUNNING}/cancel");
    let cancelled = caller.post(&path, &json!({})).await;
    assert_eq!(cancelled.json()["state"], "cancelled");
    let nobody = caller.post("/api/v1/runs/x/cancel", &json!({})).await;
    assert_eq!(nobody.status, 404);

    let drained = caller.post("/api/v1/workers/c5d-1/drain", &json!({})).await;
    assert_eq!(drained.status, 200);
    assert_eq!(made_up.world().drained, ["c5d-1"]);
    assert_eq!(
        caller
            .post("/api/v1/workers/x/drain", &json!({}))
            .await
            .status,
        404
    );
    serving.abort();
}

#[tokio::test]
async fn bad_bodies_are_refused_and_bounded() {
    let made_up = MadeUp::busy(1);
    let (address, serving) = serve(&made_up, settings()).await;
    let caller = Caller::of(address);
    let json_caller = caller.with("Content-Type", "application/json");
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
        let answer = json_caller.ask("POST", "/api/v1/runs", body).await;
        assert_eq!(answer.status, status, "{} {}", body.len(), answer.body);
        assert!(!answer.error().is_empty());
    }
    // What a form on another page could send.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let form_caller = caller.with("Content-Type", kind);
        for path in [
            "/api/v1/runs",
            "/api/v1/workers/c5d-1/drain",
            "/api/v1/logout",
        ] {
            let answer = form_caller.ask("POST", path, b"{}").await;
            assert_eq!(answer.status, 415, "{kind} {path}");
        }
    }
    assert!(made_up.world().submitted.is_empty() && made_up.world().drained.is_empty());
    serving.abort();
}

#[tokio::test]
async fn films_are_of_the_result_or_read_back() {
    let made_up = MadeUp::busy(3);
    let (address, serving) = serve(&made_up, settings()).await;
    let caller = Caller::of(address);
    let film = |run: &str, query: &str| {
        let (caller, path) = (caller.clone(), format!("/api/v1/runs/{run}/game{query}"));
        async move { caller.get(&path).await }
    };
    let told = film(FINISHED, "").await.json();
    assert_eq!((&told["score"], &told["over"]), (&json!(148), &json!(true)));
    assert_eq!(told["base2048"], RECORD.trim());
    assert_eq!(told["turns"].as_array().unwrap().len(), told["pieces"]);
    assert_eq!(film(RUNNING, "?depth=2").await.json()["score"], 148);
    assert_eq!(film("nobody", "").await.status, 404);
    assert_eq!(film(RUNNING, "?depth=-2").await.status, 400);
    // A coordinator that cannot read back says so, and still has what was.
    made_up.world().has_games = false;
    let cannot = film(RUNNING, "").await;
    assert_eq!(cannot.status, 501);
    assert!(
        cannot.error().contains("when a run has ended"),
        "{}",
        cannot.body
    );
    assert_eq!(film(FINISHED, "").await.status, 200);
    serving.abort();
}

#[tokio::test]
async fn changes_are_told_as_they_come() {
    let made_up = MadeUp::busy(1500);
    let (address, serving) = serve(&made_up, settings()).await;
    let caller = Caller::of(address);
    let path = format!("/api/v1/runs/{RUNNING}/events?from=1001");
    let growing = made_up.clone();
    let grower = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        growing.grow();
    });
    let told = events(&caller, &path, 6).await;
    grower.await.unwrap();
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    // Workers and alerts are the same as before, and not told again.
    assert_eq!(
        names,
        ["run", "depths", "workers", "alerts", "run", "depths"]
    );
    let depths = told[1].1.as_array().unwrap();
    assert_eq!((depths.len(), &depths[0]["depth"]), (500, &json!(1001)));
    assert_eq!(told[3].1[0]["worker"], "c5d-2");
    assert_eq!(told[5].1[0]["depth"], 1501);

    // A run that is over is told whole, and then that this was all.
    let told = events(&caller, &format!("/api/v1/runs/{FINISHED}/events"), 9).await;
    assert_eq!(told.last().unwrap().0, "end");
    assert_eq!(told[0].1["stopped_by"], "max-cost");

    let told = events(&caller, "/api/v1/events", 2).await;
    assert_eq!(
        (told[0].0.as_str(), told[1].0.as_str()),
        ("runs", "workers")
    );
    assert_eq!(caller.get("/api/v1/runs/x/events").await.status, 404);
    serving.abort();
}

#[tokio::test]
async fn streams_are_bounded_and_make_room_again() {
    let (address, serving) = serve(&MadeUp::busy(1), settings()).await;
    let caller = Caller::of(address);
    let mut streams = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = caller.request("GET", "/api/v1/events", b"");
        stream.write_all(&request).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        streams.push(stream);
    }
    let refused = caller.get("/api/v1/events").await;
    assert_eq!(refused.status, 503);
    assert!(refused.error().contains("64 browsers"), "{}", refused.body);
    assert_eq!(caller.get("/api/v1/runs").await.status, 200);
    drop(streams);
    let begun = std::time::Instant::now();
    while events(&caller, "/api/v1/events", 1).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no room again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    serving.abort();
}

#[tokio::test]
async fn other_sites_and_other_names_are_refused() {
    let made_up = MadeUp::busy(1);
    let (address, serving) = serve(&made_up, settings()).await;
    let caller = Caller::of(address);
    for host in [
        "evil.example",
        "localhost.evil.example",
        "192.168.1.1:7880",
        "",
    ] {
        for path in ["/", "/api/v1/runs"] {
            let answer = caller.with("Host", host).get(path).await;
            assert!(matches!(answer.status, 400 | 421), "{host} {path}");
            assert!(!answer.body.contains("patterns"), "{}", answer.body);
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
        let stranger = caller.with("Origin", origin);
        assert_eq!(stranger.get("/api/v1/runs").await.status, 403, "{origin}");
        let drain = stranger.post("/api/v1/workers/c5d-1/drain", &body).await;
        assert_eq!(drain.status, 403, "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        let stranger = caller.with("Sec-Fetch-Site", site);
        assert_eq!(stranger.get("/api/v1/runs").await.status, 403);
        // But a link to the page is fine.
        assert_eq!(stranger.get("/").await.status, 200);
    }
    assert!(made_up.world().drained.is_empty());
    let own = caller
        .with("Origin", own)
        .with("Sec-Fetch-Site", "same-origin");
    assert_eq!(
        own.post("/api/v1/workers/c5d-1/drain", &body).await.status,
        200
    );
    serving.abort();
}

#[tokio::test]
async fn a_token_is_asked_for_everywhere_but_at_the_door() {
    let made_up = MadeUp::busy(1);
    let with_token = Settings {
        token: Some(WORD.parse().unwrap()),
        ..settings()
    };
    let (address, serving) = serve(&made_up, with_token).await;
    let caller = Caller::of(address);
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
        assert_eq!(caller.get(path).await.status, 401, "{path}");
    }
    for path in [
        "/api/v1/runs",
        "/api/v1/estimate",
        "/api/v1/runs/x/cancel",
        "/api/v1/workers/c5d-1/drain",
    ] {
        assert_eq!(caller.post(path, &body).await.status, 401, "{path}");
    }
    assert_eq!(caller.get("/").await.status, 200);
    let session = caller.get("/api/v1/session").await.json();
    assert_eq!(
        (&session["token_wanted"], &session["signed_in"]),
        (&json!(true), &json!(false))
    );

    let bearer = caller.with("Authorization", format!("Bearer {WORD}"));
    assert_eq!(bearer.get("/api/v1/runs").await.status, 200);
    let wrong = caller.with("Authorization", "Bearer correct-horse-batterz");
    assert_eq!(wrong.get("/api/v1/runs").await.status, 401);

    let guess = caller
        .post(
            "/api/v1/login",
            &json!({ "token": "correct-horse-batterz" }),
        )
        .await;
    assert_eq!((guess.status, guess.header("set-cookie")), (401, None));
    assert!(!guess.body.contains("horse"), "{}", guess.body);
    let signed_in = caller
        .post("/api/v1/login", &json!({ "token": WORD }))
        .await;
    assert_eq!((signed_in.status, signed_in.body.as_str()), (204, ""));
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap().to_owned();
    let member = caller.with("Cookie", pair.clone());
    assert_eq!(member.get("/api/v1/runs").await.status, 200);
    assert_eq!(
        member.get("/api/v1/session").await.json()["signed_in"],
        true
    );
    // The cookie helps no other site.
    let stranger = member.with("Origin", "http://evil.example");
    assert_eq!(
        stranger
            .post("/api/v1/workers/c5d-1/drain", &body)
            .await
            .status,
        403
    );
    let forged = caller.with("Cookie", format!("{pair}0"));
    assert_eq!(forged.get("/api/v1/runs").await.status, 401);
    let out = member.post("/api/v1/logout", &body).await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(member.get("/api/v1/runs").await.status, 401);
    assert!(made_up.world().drained.is_empty());
    serving.abort();
}

#[tokio::test]
async fn it_is_not_open_to_the_network_unless_that_is_meant() {
    let open = |tls: Option<Tls>, token: Option<&str>, insecure_bind| Settings {
        listen: "0.0.0.0:0".parse().unwrap(),
        tls,
        token: token.map(|token| token.parse().unwrap()),
        insecure_bind,
    };
    let error = bind(open(None, Some(WORD), false))
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
        error.contains("no token") && error.contains("--token-file"),
        "{error}"
    );
    bind(open(tls(), Some(WORD), false)).await.unwrap();
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
async fn with_certificates_it_is_https_and_asks_browsers_for_none() {
    let dir = tempfile::tempdir().unwrap();
    make_certificates(dir.path());
    let with_tls = Settings {
        tls: Some(Tls::in_dir(dir.path(), "coordinator")),
        token: Some(WORD.parse().unwrap()),
        ..settings()
    };
    let server = bind(with_tls.clone()).await.unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    let (address, serving) = serve(&MadeUp::busy(1), with_tls).await;
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
    let caller = Caller::of(address).with("Authorization", format!("Bearer {WORD}"));
    let call = |name: &'static str, caller: Caller, path: &'static str| {
        let connector = connector.clone();
        async move {
            let stream = TcpStream::connect(caller.address).await.unwrap();
            let name = ServerName::try_from(name).unwrap();
            let stream = connector.connect(name, stream).await.unwrap();
            asked(stream, &caller.request("GET", path, b"")).await
        }
    };
    // Its certificate is good for the address of a browser that comes through a tunnel, too.
    for name in ["hatebeam", "localhost", "127.0.0.1", "::1"] {
        let answer = call(name, caller.clone(), "/api/v1/runs").await;
        assert_eq!(answer.status, 200, "{name}");
    }
    let ask = |caller, path| call("localhost", caller, path);
    let origin = caller.with("Origin", format!("https://{address}"));
    assert_eq!(ask(origin, "/api/v1/runs").await.status, 200);
    let plain = caller.with("Origin", format!("http://{address}"));
    assert_eq!(ask(plain, "/api/v1/runs").await.status, 403);
    // Without TLS there is no answer.
    assert_eq!(caller.get("/api/v1/runs").await.status, 0);
    serving.abort();
}

/// Log lines, gathered.
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
fn nobody_reads_the_token_in_the_log() {
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
                token: Some(WORD.parse().unwrap()),
                ..settings()
            };
            let (address, serving) = serve(&MadeUp::busy(1), with_token).await;
            let caller = Caller::of(address);
            let signed_in = caller
                .post("/api/v1/login", &json!({ "token": WORD }))
                .await;
            let cookie = signed_in.header("set-cookie").unwrap().to_owned();
            let wrong = json!({ "token": format!("{WORD}-and-more") });
            assert_eq!(caller.post("/api/v1/login", &wrong).await.status, 401);
            let bearer = caller.with("Authorization", format!("Bearer {WORD}"));
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
