//! Tests of servers and clients on loopback addresses, with certificates and tokens from [`certs::make`].
#![cfg(feature = "certs")]
#![allow(clippy::unwrap_used)] // test helpers

use hatebeam_net::certs::{self, Options};
use hatebeam_net::{
    Bearer, Guard, Limits, MAX_MESSAGE, Role, Tls, Token, WireError, connect, explain, listen,
    server,
};
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_proto::v1::runs_server::{Runs, RunsServer};
use hatebeam_proto::v1::{
    CancelRequest, CancelResponse, DrainRequest, DrainResponse, GameRequest, GameResponse,
    LimitRequest, LimitResponse, ListRequest, ListResponse, RunStatus, SubmitRequest,
    SubmitResponse, WatchRequest, WatchResponse, WorkersRequest, WorkersResponse,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio_stream::Stream;
use tonic::transport::{
    Certificate, Channel, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig,
};
use tonic::{Code, Request, Response, Status};

/// A mock of the service `Runs` that lists one run.
struct OneRun;

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Runs for OneRun {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

    async fn submit(&self, request: Request<SubmitRequest>) -> Answer<SubmitResponse> {
        // The response is about as large as the request.
        let note = request.into_inner().spec;
        let run = RunStatus {
            note,
            ..RunStatus::default()
        };
        Ok(Response::new(SubmitResponse { run: Some(run) }))
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListResponse> {
        assert!(request.metadata().get("authorization").is_none());
        let run = RunStatus {
            name: "one".to_owned(),
            ..RunStatus::default()
        };
        Ok(Response::new(ListResponse {
            runs: vec![run],
            ..ListResponse::default()
        }))
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Answer<Self::WatchStream> {
        Err(Status::not_found("no such run"))
    }

    async fn limit(&self, _: Request<LimitRequest>) -> Answer<LimitResponse> {
        Err(Status::unimplemented("no limits"))
    }

    async fn cancel(&self, _: Request<CancelRequest>) -> Answer<CancelResponse> {
        Err(Status::not_found(""))
    }

    async fn workers(&self, _: Request<WorkersRequest>) -> Answer<WorkersResponse> {
        Err(Status::unimplemented("no workers"))
    }

    async fn drain(&self, _: Request<DrainRequest>) -> Answer<DrainResponse> {
        Err(Status::unimplemented("no workers"))
    }

    async fn game(&self, _: Request<GameRequest>) -> Answer<GameResponse> {
        Err(Status::unimplemented("no games"))
    }
}

fn certificates() -> TempDir {
    made_at(SystemTime::now())
}

fn made_at(now: SystemTime) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        dir: dir.path(),
        names: &[],
        days: 30,
        renew: false,
    };
    certs::make(&options, now).unwrap();
    dir
}

/// Starts a server that runs until the test ends, and returns its port.
fn serve(tls: Option<&Tls>, token: Option<Token>) -> u16 {
    serve_as(Role::Coordinator, tls, Guard::new(token))
}

fn serve_as(role: Role, tls: Option<&Tls>, guard: Guard) -> u16 {
    let service = RunsServer::new(OneRun)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let service = tonic::service::interceptor::InterceptedService::new(service, guard);
    let incoming = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = incoming.local_addr().unwrap().port();
    let server = server(tls, role).unwrap().add_service(service);
    tokio::spawn(server.serve_with_incoming(incoming));
    port
}

fn quick() -> Limits {
    Limits {
        connect_timeout: Duration::from_secs(5),
        ..Limits::default()
    }
}

/// Connects to a server with the role of a coordinator.
async fn connected(uri: &str, tls: Option<&Tls>) -> Channel {
    let limits = quick();
    let connecting = connect(uri, tls, Role::Coordinator, &limits);
    connecting.await.unwrap()
}

async fn list(channel: Channel, token: Option<&Token>) -> Result<usize, Status> {
    let mut client = RunsClient::with_interceptor(channel, Bearer::new(token));
    let runs = client.list(ListRequest::default()).await?.into_inner().runs;
    Ok(runs.len())
}

/// Connects both immediately and lazily, checks that both report the same error, and returns the error.
async fn refusal(uri: &str, tls: Option<&Tls>) -> String {
    let now = connect(uri, tls, Role::Coordinator, &quick())
        .await
        .unwrap_err();
    assert!(!now.is_transient(), "{now}");
    let WireError::Refused { reason, .. } = &now else {
        panic!("{now}");
    };
    let lazy = Limits {
        lazy: true,
        ..quick()
    };
    let channel = connect(uri, tls, Role::Coordinator, &lazy).await.unwrap();
    let status = list(channel, None).await.unwrap_err();
    assert_eq!(&explain(&status), reason, "{status:?}");
    now.to_string()
}

#[tokio::test]
async fn members_of_a_cluster_connect_to_each_other() {
    let dir = certificates();
    let member = |name| Tls::in_dir(dir.path(), name);
    for (role, at_the_server) in [(Role::Coordinator, "coordinator"), (Role::Worker, "worker")] {
        let tls = member(at_the_server);
        let port = serve_as(role, Some(&tls), Guard::new(None));
        for host in ["127.0.0.1", "localhost"] {
            for at_the_client in ["coordinator", "worker", "client"] {
                let (uri, tls) = (format!("https://{host}:{port}"), member(at_the_client));
                let channel = connect(&uri, Some(&tls), role, &quick()).await.unwrap();
                assert_eq!(list(channel, None).await.unwrap(), 1);
            }
        }
    }
}

#[tokio::test]
async fn worker_cannot_pose_as_the_coordinator() {
    let dir = certificates();
    let member = |name| Tls::in_dir(dir.path(), name);
    let worker = member("worker");
    // This server does not check its own certificate at start.
    let (cert, key) = (
        fs::read_to_string(&worker.cert).unwrap(),
        fs::read_to_string(&worker.key).unwrap(),
    );
    let error = refusal(&serve_unchecked(&cert, &key), Some(&member("client"))).await;
    assert!(error.contains("is for another role"), "{error}");
    let error = server(Some(&worker), Role::Coordinator).unwrap_err();
    assert!(
        error.to_string().contains("not for a coordinator"),
        "{error}"
    );
}

#[tokio::test]
async fn guard_admits_only_its_roles() {
    let dir = certificates();
    let token = Token::from_file(&dir.path().join("token")).unwrap();
    let tls = Tls::in_dir(dir.path(), "coordinator");
    let clients = Guard::new(Some(token.clone())).for_roles(&[Role::Client, Role::Coordinator]);
    let workers = Guard::new(Some(token.clone()))
        .for_roles(&[Role::Worker])
        .or_certificate();
    for (guard, admitted, needs_token) in [
        (clients, &["client", "coordinator"][..], true),
        (workers.clone(), &["worker"], false),
    ] {
        let port = serve_as(Role::Coordinator, Some(&tls), guard);
        for name in ["client", "coordinator", "worker"] {
            let uri = format!("https://127.0.0.1:{port}");
            let own = Tls::in_dir(dir.path(), name);
            let channel = connected(&uri, Some(&own)).await;
            let with = list(channel.clone(), Some(&token)).await;
            let without = list(channel, None).await;
            if admitted.contains(&name) {
                assert_eq!(with.unwrap(), 1);
                assert_eq!(without.is_err(), needs_token, "{name}");
            } else {
                for refused in [with, without] {
                    let refused = refused.unwrap_err();
                    assert_eq!(refused.code(), Code::PermissionDenied, "{name}");
                    assert!(refused.message().contains(name), "{refused:?}");
                }
            }
        }
    }
    // On a connection without TLS, this guard requires the token.
    let uri = format!(
        "http://127.0.0.1:{}",
        serve_as(Role::Coordinator, None, workers)
    );
    let channel = connected(&uri, None).await;
    assert_eq!(list(channel.clone(), Some(&token)).await.unwrap(), 1);
    assert!(list(channel, None).await.is_err());
}

#[tokio::test]
async fn clients_connect_to_servers_without_tls() {
    let uri = format!("http://127.0.0.1:{}", serve(None, None));
    for lazy in [false, true] {
        let limits = Limits { lazy, ..quick() };
        let channel = connect(&uri, None, Role::Coordinator, &limits)
            .await
            .unwrap();
        assert_eq!(list(channel, None).await.unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn certificates_from_another_ca_are_refused() {
    let (ours, theirs) = (certificates(), certificates());
    let server_tls = Tls::in_dir(ours.path(), "coordinator");
    let uri = format!("https://127.0.0.1:{}", serve(Some(&server_tls), None));

    // This client trusts the server, but another CA issued the client's certificate.
    let both = tempfile::tempdir().unwrap();
    let cas =
        [ours.path(), theirs.path()].map(|dir| fs::read_to_string(dir.join("ca.pem")).unwrap());
    fs::write(both.path().join("ca.pem"), cas.concat()).unwrap();
    for name in ["client.pem", "client-key.pem"] {
        fs::copy(theirs.path().join(name), both.path().join(name)).unwrap();
    }
    let stranger = Tls::in_dir(both.path(), "client");
    // The server's alert arrives only sometimes, but the error must always be the same.
    for _ in 0..50 {
        let error = connect(&uri, Some(&stranger), Role::Coordinator, &quick())
            .await
            .unwrap_err();
        assert!(!error.is_transient(), "{error}");
        let expected = "does not accept the client's certificate";
        assert!(error.to_string().contains(expected), "{error}");
    }

    // This client does not trust the server.
    let error = refusal(&uri, Some(&Tls::in_dir(theirs.path(), "client"))).await;
    assert!(
        error.contains("the server's certificate was issued by another CA"),
        "{error}"
    );
    assert!(error.contains(&uri), "{error}");
}

/// Starts a server without checking its certificate, and returns its URI.
fn serve_unchecked(cert: &str, key: &str) -> String {
    let config = ServerTlsConfig::new().identity(Identity::from_pem(cert, key));
    let incoming = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = incoming.local_addr().unwrap().port();
    let mut server = server(None, Role::Coordinator)
        .unwrap()
        .tls_config(config)
        .unwrap();
    let server = server.add_service(RunsServer::new(OneRun));
    tokio::spawn(server.serve_with_incoming(incoming));
    format!("https://127.0.0.1:{port}")
}

/// Returns a channel for a client that trusts `ca` and presents the certificate in `identity`, if there is one. The
/// channel connects at the first call.
fn connect_unchecked(uri: String, ca: &str, identity: Option<(&str, &str)>) -> Channel {
    let mut config = ClientTlsConfig::new()
        .domain_name("coordinator.hatebeam")
        .ca_certificate(Certificate::from_pem(ca));
    if let Some((cert, key)) = identity {
        config = config.identity(Identity::from_pem(cert, key));
    }
    let endpoint = Endpoint::from_shared(uri).unwrap();
    endpoint.tls_config(config).unwrap().connect_lazy()
}

/// Issues a certificate for another host name with the CA in `dir`, and returns the certificate and its key.
fn other_name(dir: &Path) -> (String, String) {
    let mut ca = rcgen::CertificateParams::default();
    ca.distinguished_name = rcgen::DistinguishedName::new();
    ca.distinguished_name
        .push(rcgen::DnType::CommonName, "hatebeam CA");
    let ca_key = fs::read_to_string(dir.join("ca-key.pem")).unwrap();
    let issuer = rcgen::Issuer::new(ca, rcgen::KeyPair::from_pem(&ca_key).unwrap());
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["example.org".to_owned()]).unwrap();
    let cert = params.signed_by(&key, &issuer).unwrap();
    (cert.pem(), key.serialize_pem())
}

#[tokio::test]
async fn clients_and_servers_refuse_bad_certificates() {
    let dir = made_at(SystemTime::now() - Duration::from_secs(100 * 86_400));
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let pair = |name: &str| {
        (
            read(&format!("{name}.pem")),
            read(&format!("{name}-key.pem")),
        )
    };
    let expired = pair("coordinator");
    let renew = Options {
        dir: dir.path(),
        names: &[],
        days: 30,
        renew: true,
    };
    certs::make(&renew, SystemTime::now()).unwrap();

    let tls = Tls::in_dir(dir.path(), "coordinator");
    for ((cert, key), expected) in [
        (&expired, "the server's certificate has expired"),
        (
            &pair("client"),
            "the server's certificate is for clients only",
        ),
        (
            &other_name(dir.path()),
            "is for another role, or does not belong to a hatebeam cluster",
        ),
    ] {
        let error = refusal(&serve_unchecked(cert, key), Some(&tls)).await;
        assert!(error.contains(expected), "{error}");
    }

    let uri = format!("https://127.0.0.1:{}", serve(Some(&tls), None));
    let identity = Some((expired.0.as_str(), expired.1.as_str()));
    for (identity, expected) in [
        (identity, "considers the client's certificate expired"),
        (None, "the server requires a client certificate"),
    ] {
        let channel = connect_unchecked(uri.clone(), &read("ca.pem"), identity);
        let status = list(channel, None).await.unwrap_err();
        let error = explain(&status);
        assert!(error.contains(expected), "{error} {status:?}");
    }
}

#[tokio::test]
async fn error_reports_that_only_one_side_uses_tls() {
    let dir = certificates();
    let tls = Tls::in_dir(dir.path(), "coordinator");
    let (with, without) = (serve(Some(&tls), None), serve(None, None));
    // The HTTP/2 client reports one of two errors at random, but the returned error must always be the same.
    for _ in 0..20 {
        let uri = format!("http://127.0.0.1:{with}");
        let error = connect(&uri, None, Role::Coordinator, &quick())
            .await
            .unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert!(error.to_string().contains("write https://"), "{error}");
    }
    let error = refusal(&format!("https://127.0.0.1:{without}"), Some(&tls)).await;
    assert!(error.contains("the server does not use TLS"), "{error}");
}

#[tokio::test]
async fn connecting_to_unreachable_server_returns_a_transient_error() {
    let dir = certificates();
    let tls = Tls::in_dir(dir.path(), "client");
    // Nothing listens on this port, which was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    for (uri, tls) in [
        (format!("http://127.0.0.1:{port}"), None),
        (format!("https://127.0.0.1:{port}"), Some(&tls)),
    ] {
        let error = connect(&uri, tls, Role::Coordinator, &quick())
            .await
            .unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    }
    // This server accepts connections but never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", silent.local_addr().unwrap());
    let limits = Limits {
        connect_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let error = connect(&uri, None, Role::Coordinator, &limits)
        .await
        .unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(
        error.to_string().contains("no response within 300ms"),
        "{error}"
    );
    // This port is in use.
    let error = listen(silent.local_addr().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("cannot listen on 127.0.0.1"),
        "{error}"
    );
}

#[tokio::test]
async fn calls_without_the_token_are_refused() {
    let dir = certificates();
    let right = Token::from_file(&dir.path().join("token")).unwrap();
    let wrong = Token::random().unwrap();
    let tls = Tls::in_dir(dir.path(), "coordinator");
    let with = serve(Some(&tls), Some(right.clone()));
    let without = serve(None, Some(right.clone()));
    for (uri, tls) in [
        (format!("https://127.0.0.1:{with}"), Some(&tls)),
        (format!("http://127.0.0.1:{without}"), None),
    ] {
        let channel = connected(&uri, tls).await;
        assert_eq!(list(channel.clone(), Some(&right)).await.unwrap(), 1);
        for (token, expected) in [(None, "HATEBEAM_TOKEN"), (Some(&wrong), "wrong token")] {
            let refused = list(channel.clone(), token).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
            assert!(explain(&refused).contains(expected), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn messages_over_the_limit_are_refused() {
    let uri = format!("http://127.0.0.1:{}", serve(None, None));
    let channel = connected(&uri, None).await;
    let mut client = RunsClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(2 * MAX_MESSAGE);
    let mut submit = async |bytes: usize| {
        let spec = "x".repeat(bytes);
        let request = SubmitRequest {
            spec,
            ..SubmitRequest::default()
        };
        client.submit(request).await
    };
    let answer = submit(MAX_MESSAGE - 100).await.unwrap().into_inner();
    assert_eq!(answer.run.unwrap().note.len(), MAX_MESSAGE - 100);
    let refused = submit(MAX_MESSAGE + 1).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    let refused = client.cancel(CancelRequest::default()).await.unwrap_err();
    assert_eq!(explain(&refused), Code::NotFound.description());
}

#[test]
fn errors_name_the_invalid_file() {
    let (ours, theirs) = (certificates(), certificates());
    let at = |dir: &TempDir, name: &str| dir.path().join(name);
    let good = Tls::in_dir(ours.path(), "worker");
    let text = ours.path().join("text");
    fs::write(&text, "not PEM").unwrap();
    let nowhere = ours.path().join("nowhere");
    let cut = ours.path().join("cut.pem");
    let pem = fs::read_to_string(&good.cert).unwrap();
    fs::write(&cut, &pem[..pem.len() / 2]).unwrap();
    let nowhere = (&nowhere, "nowhere", "cannot read");
    let foreign = at(&theirs, "ca.pem");
    let other_key = at(&ours, "client-key.pem");
    let no_certificate = "no certificate in PEM";
    let no_key = "no private key in PEM";
    type Field = fn(&mut Tls) -> &mut PathBuf;
    let (ca, cert, key): (Field, Field, Field) =
        (|tls| &mut tls.ca, |tls| &mut tls.cert, |tls| &mut tls.key);
    for (field, (path, named, expected)) in [
        (ca, nowhere),
        (cert, nowhere),
        (key, nowhere),
        (ca, (&text, "text", no_certificate)),
        (cert, (&text, "text", no_certificate)),
        (cert, (&cut, "cut.pem", no_certificate)),
        (cert, (&good.key, "worker-key.pem", no_certificate)),
        (key, (&text, "text", no_key)),
        (key, (&good.cert, "worker.pem", no_key)),
        (key, (&other_key, "client-key.pem", "not the key of")),
        (ca, (&foreign, "worker.pem", "not issued by the CA in")),
    ] {
        let mut tls = good.clone();
        *field(&mut tls) = path.clone();
        for error in [
            tls.server(Role::Worker).map(|_| ()).unwrap_err(),
            tls.client(Role::Worker).map(|_| ()).unwrap_err(),
            server(Some(&tls), Role::Worker).map(|_| ()).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.contains(named), "{tls:?}: {error}");
            assert!(error.contains(expected), "{tls:?}: {error}");
        }
    }
    let future = made_at(SystemTime::now() + Duration::from_secs(20 * 86_400));
    let error = Tls::in_dir(future.path(), "worker")
        .server(Role::Worker)
        .unwrap_err();
    assert!(error.to_string().contains("not valid yet"), "{error}");
}

/// Returns the log output of `action`.
fn logged(action: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, action);
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[cfg(unix)]
#[test]
fn warning_is_logged_for_secret_files_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = certificates();
    let tls = Tls::in_dir(dir.path(), "worker");
    let token = dir.path().join("token");
    let read = || {
        tls.server(Role::Worker).unwrap();
        Token::from_file(&token).unwrap();
    };
    assert_eq!(logged(read), "");
    let open = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    };
    open(&tls.key);
    open(&token);
    let log = logged(read);
    assert_eq!(log.lines().count(), 2, "{log}");
    for part in ["WARN", "worker-key.pem", "token", "chmod 600"] {
        assert!(log.contains(part), "{log}");
    }
}
