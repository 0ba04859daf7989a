//! A bad way to a server: faults that pass are survived, faults that stay are told in bounded time.

use crate::suite::{names_in, noise};
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

/// A server behind a proxy, and a file.
struct Bad {
    name: &'static str,
    server: Server,
    proxy: Proxy,
    objects: Objects,
    dir: TempDir,
    content: Vec<u8>,
}

impl Bad {
    async fn start(name: &'static str, server: Server) -> Bad {
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
        let objects = Objects::open(&server.location("bad"), &options)
            .await
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let content = noise(FILE_BYTES, 5);
        std::fs::write(dir.path().join("from"), &content).unwrap();
        Bad {
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

    fn to(&self) -> PathBuf {
        self.dir.path().join("to")
    }

    /// A file goes there and comes back while a fault happens some times.
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
        let got = self
            .objects
            .get_to_file("file", &self.to(), Some(&stored))
            .await;
        assert_eq!(got.unwrap(), stored);
        let down = self.proxy.clear();
        assert!(std::fs::read(self.to()).unwrap() == self.content);
        assert!(up + down > 0, "{fault:?} has not happened");
        if !matches!(fault, Fault::Delay(_)) {
            assert!(self.objects.stats().retries > retries);
        }
        self.objects.delete("file").await.unwrap();
        std::fs::remove_file(self.to()).unwrap();
    }

    /// What fails, does in bounded time, with a word on why.
    fn told(&self, begin: Instant, error: &ObjectError, word: &str) {
        println!("{}: after {:?}: {error}", self.name, begin.elapsed());
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains(word), "{error} ({word})");
    }

    /// An upload fails in bounded time and leaves neither an object nor parts.
    async fn upload_fails(&self, fault: Fault, word: &str) {
        self.proxy.set(fault, ALWAYS);
        let begin = Instant::now();
        let error = self
            .objects
            .put_file("file", &self.from())
            .await
            .unwrap_err();
        self.told(begin, &error, word);
        self.proxy.clear();
        assert!(self.objects.get("file").await.unwrap_err().is_not_found());
    }

    /// A download fails in bounded time and leaves what was there before.
    async fn download_fails(&self, fault: Fault, word: &str) {
        self.objects.put_file("file", &self.from()).await.unwrap();
        std::fs::write(self.to(), "before").unwrap();
        self.proxy.set(fault, ALWAYS);
        let begin = Instant::now();
        let error = self
            .objects
            .get_to_file("file", &self.to(), None)
            .await
            .unwrap_err();
        self.told(begin, &error, word);
        self.proxy.clear();
        assert_eq!(std::fs::read(self.to()).unwrap(), b"before");
        assert_eq!(names_in(self.dir.path()), ["from", "to"]);
        self.objects.delete("file").await.unwrap();
    }

    async fn all(&self) {
        self.survives(Fault::Close, 2).await;
        // Of four tries one may be lost to a connection that was kept, and is cut as the fault is set.
        self.survives(SLOW_DOWN, 2).await;
        self.survives(Fault::Delay(Duration::from_millis(20)), 10)
            .await;
        self.survives(Fault::Silence, 1).await;
        self.survives(Fault::CutAnswer(3 << 20), 2).await;
        self.survives(Fault::CutRequest(3 << 20), 2).await;
        // It always is cut, but each time it gets on.
        self.survives(Fault::CutAnswer(2 << 20), ALWAYS).await;
        self.upload_fails(Fault::Close, "").await;
        self.upload_fails(SLOW_DOWN, "SlowDown").await;
        self.upload_fails(Fault::CutRequest(3 << 20), "").await;
        self.download_fails(Fault::Silence, "no answer in time")
            .await;
        self.download_fails(SLOW_DOWN, "SlowDown").await;
        self.download_fails(Fault::CutAnswer(100_000), "stopped at byte")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_on_the_way_to_moto() {
    let Some(server) = Server::moto() else { return };
    let bad = Bad::start("moto", server).await;
    bad.all().await;
    let uploads = bad.server.plain_request("GET", "?uploads").unwrap();
    assert!(uploads.starts_with("HTTP/1.1 200"), "{uploads}");
    assert!(!uploads.contains("<UploadId>"), "{uploads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_on_the_way_to_garage() {
    let Some(server) = Server::garage() else {
        return;
    };
    Bad::start("garage", server).await.all().await;
}

/// The write was done and its answer lost: the second try must not take it for another's.
#[tokio::test]
async fn a_conditional_write_whose_answer_is_lost_is_known_as_ours() {
    let Some(server) = Server::moto() else { return };
    let bad = Bad::start("moto", server).await;
    let is_put: fn(&str) -> bool = |line| line.starts_with("PUT ");
    let mut condition = Condition::Absent;
    for text in ["first", "second"] {
        bad.proxy.set(Fault::LoseAnswer(is_put), 1);
        let version = bad
            .objects
            .put_if("key", Bytes::from(text), &condition)
            .await
            .unwrap();
        assert_eq!(bad.proxy.clear(), 1);
        assert_eq!(
            bad.objects.get("key").await.unwrap(),
            (Bytes::from(text), version.clone())
        );
        condition = Condition::Is(version);
    }
    let other = bad
        .objects
        .put_if("key", Bytes::from("third"), &Condition::Absent)
        .await;
    assert!(other.unwrap_err().is_changed());
}

/// As above, for the request that makes an object of the parts.
#[tokio::test]
async fn an_upload_whose_last_answer_is_lost_is_done() {
    for (name, server) in [("moto", Server::moto()), ("garage", Server::garage())] {
        let Some(server) = server else { continue };
        let bad = Bad::start(name, server).await;
        let completes: fn(&str) -> bool =
            |line| line.starts_with("POST ") && line.contains("uploadId=");
        bad.proxy.set(Fault::LoseAnswer(completes), 1);
        let stored = bad.objects.put_file("file", &bad.from()).await.unwrap();
        assert_eq!(bad.proxy.clear(), 1);
        bad.objects
            .get_to_file("file", &bad.to(), Some(&stored))
            .await
            .unwrap();
    }
}

/// Bytes of two objects are never mixed.
#[tokio::test]
async fn an_object_written_anew_while_it_is_read_is_not_read_on() {
    for (name, server) in [("moto", Server::moto()), ("garage", Server::garage())] {
        let Some(server) = server else { continue };
        let bad = Bad::start(name, server).await;
        bad.objects.put_file("file", &bad.from()).await.unwrap();
        bad.proxy.set(Fault::CutAnswer(1 << 20), 2);
        let (objects, to) = (bad.objects.clone(), bad.to());
        let reading = tokio::spawn(async move { objects.get_to_file("file", &to, None).await });
        while bad.proxy.happened() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let direct = Objects::open(&bad.server.location("bad"), &bad.server.options()).await;
        let anew = noise(FILE_BYTES, 6);
        direct
            .unwrap()
            .put("file", Bytes::from(anew.clone()))
            .await
            .unwrap();
        match reading.await.unwrap() {
            // It came to its end before, or began after.
            Ok(stored) => assert!([Stored::of(&bad.content), Stored::of(&anew)].contains(&stored)),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}

/// Two conditional writes at the same moment: S3 may ask to try again.
#[tokio::test]
async fn a_conditional_write_in_conflict_is_tried_again() {
    let Some(server) = Server::moto() else { return };
    let bad = Bad::start("moto", server).await;
    let conflict = Fault::Answer(409, "ConditionalRequestConflict");
    let put = || {
        bad.objects
            .put_if("key", Bytes::from("x"), &Condition::Absent)
    };
    bad.proxy.set(conflict, 2);
    put().await.unwrap();
    assert_eq!(bad.proxy.clear(), 2);
    bad.proxy.set(conflict, ALWAYS);
    assert!(put().await.unwrap_err().is_transient());
    bad.proxy.clear();
    assert!(put().await.unwrap_err().is_changed());
}

/// Parts that nobody will put together cost money.
#[tokio::test]
async fn an_upload_that_is_given_up_is_aborted() {
    let Some(server) = Server::moto() else { return };
    let bad = Bad::start("moto", server).await;
    bad.proxy
        .set(Fault::Delay(Duration::from_millis(200)), ALWAYS);
    let (objects, from) = (bad.objects.clone(), bad.from());
    let putting = tokio::spawn(async move { objects.put_file("file", &from).await });
    let uploads = async |some: bool| {
        let begin = Instant::now();
        while bad
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
    // The second request is a part: now the client knows of the upload.
    while bad.objects.stats().requests < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    putting.abort();
    assert!(putting.await.unwrap_err().is_cancelled());
    uploads(false).await;
}

/// What a server says is told apart by what to do about it, and only what may pass is tried again.
#[tokio::test]
async fn what_a_server_says_is_told() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let proxy = Proxy::start(nobody).await;
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
    for (status, code, kind, tries) in [
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
        assert_eq!(error.is_transient(), tries > 1, "{error}");
        assert_eq!(proxy.clear(), tries, "{code}");
    }
}
