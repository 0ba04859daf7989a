//! Tests of access control: origins, host names, tokens, cookies and TLS.

use crate::client::{Client, exchange};
use crate::fake::{FakeCoordinator, serve, settings};
use hatebeam_dashboard::{Settings, bind};
use hatebeam_net::{Tls, Tokens, certs};
use hatebeam_search::Network;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpStream;

const TOKEN: &str = "correct-horse-battery";

fn with_token() -> Settings {
    Settings {
        tokens: Some(TOKEN.parse().unwrap()).into(),
        ..settings()
    }
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
        // Links from other sites to the pages are allowed.
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
async fn calls_about_runs_and_workers_require_the_token() {
    let fake = FakeCoordinator::busy(1);
    let (address, serving) = serve(&fake, with_token()).await;
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
    assert_eq!(session.as_object().unwrap().len(), 3, "{session}");

    let bearer = client.with("Authorization", format!("Bearer {TOKEN}"));
    assert_eq!(bearer.get("/api/v1/runs").await.status, 200);
    let session = bearer.get("/api/v1/session").await.json();
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    for name in Network::SHIPPED {
        let digest = Network::shipped(name).unwrap().digest().to_string();
        assert_eq!(session["networks"][name], digest);
    }
    let wrong = client.with("Authorization", "Bearer correct-horse-batterz");
    let asked = Instant::now();
    assert_eq!(wrong.get("/api/v1/runs").await.status, 401);
    assert!(asked.elapsed() >= Duration::from_millis(500));
    assert!(fake.world().drained.is_empty());
    serving.abort();
}

#[tokio::test]
async fn view_token_permits_no_changes() {
    let fake = FakeCoordinator::busy(1);
    const VIEW: &str = "correct-horse-binoculars";
    let with_tokens = Settings {
        tokens: Tokens {
            full: Some(TOKEN.parse().unwrap()),
            view: Some(VIEW.parse().unwrap()),
        },
        ..settings()
    };
    let (address, serving) = serve(&fake, with_tokens).await;
    let client = Client::of(address);
    let signed_in = client
        .post("/api/v1/login", &json!({ "token": VIEW }))
        .await;
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    for viewer in [
        client.with("Authorization", format!("Bearer {VIEW}")),
        client.with("Cookie", cookie),
    ] {
        assert_eq!(viewer.get("/api/v1/runs").await.status, 200);
        let session = viewer.get("/api/v1/session").await.json();
        assert_eq!(session["may_change"], false);
        for path in [
            "/api/v1/runs",
            "/api/v1/runs/x/cancel",
            "/api/v1/runs/x/limits",
            "/api/v1/workers/c5d-1/drain",
        ] {
            let refused = viewer.post(path, &json!({})).await;
            assert_eq!(refused.status, 403, "{path}");
            assert!(refused.body.contains("`token`"), "{}", refused.body);
        }
        // An estimate is a POST request, but it changes nothing.
        assert_ne!(
            viewer.post("/api/v1/estimate", &json!({})).await.status,
            403
        );
    }
    assert!(fake.world().drained.is_empty());
    serving.abort();
}

#[tokio::test]
async fn login_exchanges_token_for_cookie() {
    let fake = FakeCoordinator::busy(1);
    let (address, serving) = serve(&fake, with_token()).await;
    let client = Client::of(address);
    let body = json!({});
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
    // A request from another site is rejected even with the cookie.
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
async fn network_address_requires_tls_and_token_unless_insecure_bind_is_set() {
    let open = |tls: Option<Tls>, token: Option<&str>, insecure_bind| Settings {
        listen: "0.0.0.0:0".parse().unwrap(),
        tls,
        tokens: token.map(|token| token.parse().unwrap()).into(),
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
        ..with_token()
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
    // The certificate must also be valid for loopback names, which users of an SSH tunnel need.
    for name in ["coordinator.hatebeam", "localhost", "127.0.0.1", "::1"] {
        let response = call(name, client.clone(), "/api/v1/runs").await;
        assert_eq!(response.status, 200, "{name}");
    }
    let get = |client, path| call("localhost", client, path);
    let origin = client.with("Origin", format!("https://{address}"));
    assert_eq!(get(origin, "/api/v1/runs").await.status, 200);
    let plain = client.with("Origin", format!("http://{address}"));
    assert_eq!(get(plain, "/api/v1/runs").await.status, 403);
    // The server does not answer plain HTTP.
    assert_eq!(client.get("/api/v1/runs").await.status, 0);
    serving.abort();
}

/// A writer that collects log lines.
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
            let (address, serving) = serve(&FakeCoordinator::busy(1), with_token()).await;
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
