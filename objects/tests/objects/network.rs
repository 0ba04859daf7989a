//! Tests with a faulty network. Operations must survive transient faults, and must fail within bounded time if a fault
//! is permanent.

use crate::suite::noise;
use crate::support::proxy::{Fault, Proxy};
use crate::support::servers::{Server, free_port};
use bytes::Bytes;
use hatebeam_objects::{Condition, ObjectError, Objects, Options, Stored};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const FILE_BYTES: usize = 12 << 20;
const SLOW_DOWN: Fault = Fault::Answer(503, "SlowDown");
const ALWAYS: usize = usize::MAX;

/// A server behind a faulty proxy, and a file for uploads.
struct FaultyServer {
    name: &'static str,
    server: Server,
    proxy: Proxy,
    objects: Objects,
    dir: TempDir,
    content: Vec<u8>,
}

impl FaultyServer {
    async fn start(name: &'static str, server: Server) -> FaultyServer {
        let proxy = Proxy::start(server.address()).await;
        let options = Options {
            endpoint: Some(proxy.endpoint()),
            part_bytes: 5 << 20,
            parallel_parts: 2,
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(3),
            max_attempts: 4,
            first_wait: Duration::from_millis(20),
            ..server.options()
        };
        let objects = Objects::open(&server.location("faulty"), &options)
            .await
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let content = noise(FILE_BYTES, 5);
        std::fs::write(dir.path().join("from"), &content).unwrap();
        FaultyServer {
            name,
            server,
            proxy,
            objects,
            dir,
            content,
        }
    }

    fn from(&self) -> PathBuf {
        self.dir.path().join("from")
    }

    /// Writes a file and reads it back. The fault occurs at most `times` times during the write, and at most `times`
    /// times during the read.
    async fn survives(&self, fault: Fault, times: usize) {
        println!("{}: {fault:?} {times} times", self.name);
        let stored = Stored::of(&self.content);
        self.proxy.set(fault, times);
        let retries = self.objects.stats().retries;
        assert_eq!(
            self.objects.put_file("file", &self.from()).await.unwrap(),
            stored
        );
        let up = self.proxy.clear();
        self.proxy.set(fault, times);
        let (bytes, _) = self.objects.get("file").await.unwrap();
        assert!(bytes == self.content);
        let down = self.proxy.clear();
        assert!(up + down > 0, "{fault:?} has not occurred");
        if !matches!(fault, Fault::Delay(_)) {
            assert!(self.objects.stats().retries > retries);
        }
        self.objects.delete("file").await.unwrap();
    }

    /// Asserts that an operation that began at `begin` failed within 30 seconds. The error must be transient and contain
    /// `word`.
    fn failed(&self, begin: Instant, error: &ObjectError, word: &str) {
        println!("{}: after {:?}: {error}", self.name, begin.elapsed());
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains(word), "{error} ({word})");
    }

    /// Asserts that an upload fails within 30 seconds and leaves no object behind.
    async fn upload_fails(&self, fault: Fault, word: &str) {
        self.proxy.set(fault, ALWAYS);
        let begin = Instant::now();
        let error = self
            .objects
            .put_file("file", &self.from())
            .await
            .unwrap_err();
        self.failed(begin, &error, word);
        self.proxy.clear();
        assert!(self.objects.get("file").await.unwrap_err().is_not_found());
    }

    /// Asserts that a read fails within 30 seconds.
    async fn read_fails(&self, fault: Fault, word: &str) {
        self.objects.put_file("file", &self.from()).await.unwrap();
        self.proxy.set(fault, ALWAYS);
        let begin = Instant::now();
        let error = self.objects.get("file").await.unwrap_err();
        self.failed(begin, &error, word);
        self.proxy.clear();
        self.objects.delete("file").await.unwrap();
    }

    async fn all_faults(&self) {
        self.survives(Fault::Close, 2).await;
        // Two of the four attempts fail because of the fault. A third attempt may fail because `set` breaks existing
        // connections.
        self.survives(SLOW_DOWN, 2).await;
        self.survives(Fault::Delay(Duration::from_millis(20)), 10)
            .await;
        self.survives(Fault::Silence, 1).await;
        self.survives(Fault::CutAnswer(3 << 20), 2).await;
        self.survives(Fault::CutRequest(3 << 20), 2).await;
        // Every response is cut off, but every attempt makes progress.
        self.survives(Fault::CutAnswer(2 << 20), ALWAYS).await;
        self.upload_fails(Fault::Close, "").await;
        self.upload_fails(SLOW_DOWN, "SlowDown").await;
        self.upload_fails(Fault::CutRequest(3 << 20), "").await;
        self.read_fails(Fault::Silence, "no response in time").await;
        self.read_fails(SLOW_DOWN, "SlowDown").await;
        self.read_fails(Fault::CutAnswer(100_000), "stopped at byte")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn client_of_moto_survives_network_faults() {
    let Some(server) = Server::moto() else { return };
    let faulty = FaultyServer::start("moto", server).await;
    faulty.all_faults().await;
    let uploads = faulty.server.plain_request("GET", "?uploads").unwrap();
    assert!(uploads.starts_with("HTTP/1.1 200"), "{uploads}");
    assert!(!uploads.contains("<UploadId>"), "{uploads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_of_garage_survives_network_faults() {
    let Some(server) = Server::garage() else {
        return;
    };
    FaultyServer::start("garage", server)
        .await
        .all_faults()
        .await;
}

/// The server applies the first attempt, but the response is lost. The second attempt must recognize the object.
#[tokio::test]
async fn conditional_write_succeeds_if_its_response_is_lost() {
    let Some(server) = Server::moto() else { return };
    let faulty = FaultyServer::start("moto", server).await;
    let is_put: fn(&str) -> bool = |line| line.starts_with("PUT ");
    let mut condition = Condition::Absent;
    for text in ["first", "second"] {
        faulty.proxy.set(Fault::LoseAnswer(is_put), 1);
        let version = faulty
            .objects
            .put_if("key", Bytes::from(text), &condition)
            .await
            .unwrap();
        assert_eq!(faulty.proxy.clear(), 1);
        assert_eq!(
            faulty.objects.get("key").await.unwrap(),
            (Bytes::from(text), version.clone())
        );
        condition = Condition::Is(version);
    }
    let other = faulty
        .objects
        .put_if("key", Bytes::from("third"), &Condition::Absent)
        .await;
    assert!(other.unwrap_err().is_changed());
}

/// The response to the request that completes a multipart upload is lost.
#[tokio::test]
async fn multipart_upload_succeeds_if_its_last_response_is_lost() {
    for (name, server) in [("moto", Server::moto()), ("garage", Server::garage())] {
        let Some(server) = server else { continue };
        let faulty = FaultyServer::start(name, server).await;
        let completes: fn(&str) -> bool =
            |line| line.starts_with("POST ") && line.contains("uploadId=");
        faulty.proxy.set(Fault::LoseAnswer(completes), 1);
        let stored = faulty
            .objects
            .put_file("file", &faulty.from())
            .await
            .unwrap();
        assert_eq!(faulty.proxy.clear(), 1);
        let (bytes, _) = faulty.objects.get("file").await.unwrap();
        assert_eq!(Stored::of(&bytes), stored);
    }
}

#[tokio::test]
async fn read_never_mixes_versions_of_a_replaced_object() {
    for (name, server) in [("moto", Server::moto()), ("garage", Server::garage())] {
        let Some(server) = server else { continue };
        let faulty = FaultyServer::start(name, server).await;
        faulty
            .objects
            .put_file("file", &faulty.from())
            .await
            .unwrap();
        faulty.proxy.set(Fault::CutAnswer(1 << 20), 2);
        let objects = faulty.objects.clone();
        let reading = tokio::spawn(async move { objects.get("file").await });
        while faulty.proxy.happened() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let direct =
            Objects::open(&faulty.server.location("faulty"), &faulty.server.options()).await;
        let replaced = noise(FILE_BYTES, 6);
        direct
            .unwrap()
            .put("file", Bytes::from(replaced.clone()))
            .await
            .unwrap();
        match reading.await.unwrap() {
            Ok((bytes, _)) => assert!(bytes == faulty.content || bytes == replaced),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}

/// S3 may refuse a conditional write with a conflict error if another write is in progress. The client must then retry.
#[tokio::test]
async fn conditional_write_is_retried_after_a_conflict() {
    let Some(server) = Server::moto() else { return };
    let faulty = FaultyServer::start("moto", server).await;
    let conflict = Fault::Answer(409, "ConditionalRequestConflict");
    let put = || {
        faulty
            .objects
            .put_if("key", Bytes::from("x"), &Condition::Absent)
    };
    faulty.proxy.set(conflict, 2);
    put().await.unwrap();
    assert_eq!(faulty.proxy.clear(), 2);
    faulty.proxy.set(conflict, ALWAYS);
    assert!(put().await.unwrap_err().is_transient());
    faulty.proxy.clear();
    assert!(put().await.unwrap_err().is_changed());
}

/// A cancelled upload must be aborted, because the parts of an incomplete upload cost money.
#[tokio::test]
async fn cancelled_upload_is_aborted() {
    let Some(server) = Server::moto() else { return };
    let faulty = FaultyServer::start("moto", server).await;
    faulty
        .proxy
        .set(Fault::Delay(Duration::from_millis(200)), ALWAYS);
    let (objects, from) = (faulty.objects.clone(), faulty.from());
    let putting = tokio::spawn(async move { objects.put_file("file", &from).await });
    let uploads = async |some: bool| {
        let begin = Instant::now();
        while faulty
            .server
            .plain_request("GET", "?uploads")
            .unwrap()
            .contains("<UploadId>")
            != some
        {
            assert!(begin.elapsed() < Duration::from_secs(20), "{some}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    uploads(true).await;
    // The client sends a second request only after it has received the upload's ID.
    while faulty.objects.stats().requests < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    putting.abort();
    assert!(putting.await.unwrap_err().is_cancelled());
    uploads(false).await;
}

#[tokio::test]
async fn server_errors_are_classified_and_only_transient_errors_are_retried() {
    let unused = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let proxy = Proxy::start(unused).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    std::fs::write(
        &file,
        "[default]\naws_access_key_id = a\naws_secret_access_key = b\n",
    )
    .unwrap();
    let options = Options {
        endpoint: Some(proxy.endpoint()),
        path_style: true,
        credentials_file: Some(file),
        max_attempts: 3,
        first_wait: Duration::from_millis(1),
        ..Options::default()
    };
    let objects = Objects::open("s3://bucket/a", &options).await.unwrap();
    for (status, code, kind, attempts) in [
        (403, "AccessDenied", "Denied", 1),
        (403, "SignatureDoesNotMatch", "Denied", 1),
        (404, "NoSuchBucket", "NoBucket", 1),
        (404, "NoSuchKey", "NotFound", 1),
        (301, "PermanentRedirect", "WrongRegion", 1),
        (400, "AuthorizationHeaderMalformed", "WrongRegion", 1),
        (400, "InvalidArgument", "Refused", 1),
        (501, "NotImplemented", "Refused", 1),
        (500, "InternalError", "Unavailable", 3),
        (503, "SlowDown", "Unavailable", 3),
    ] {
        proxy.set(Fault::Answer(status, code), ALWAYS);
        let error = objects.get("key").await.unwrap_err();
        assert!(
            format!("{error:?}").starts_with(kind),
            "{error:?} should be {kind}"
        );
        assert_eq!(error.is_transient(), attempts > 1, "{error}");
        assert_eq!(proxy.clear(), attempts, "{code}");
    }
}
