//! Tests of stores on S3 servers.

use crate::suite::{CONDITIONAL, conforms, measure};
use crate::support::servers::{Server, free_port};
use bytes::Bytes;
use hatebeam_objects::{ObjectError, Objects, Options, Probe};
use std::time::{Duration, Instant};

/// Returns options for uploading files in parts of 5 MiB.
fn in_parts(server: &Server) -> Options {
    Options {
        part_bytes: 5 << 20,
        parallel_parts: 2,
        ..server.options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn moto_passes_the_store_suite() {
    let Some(server) = Server::moto() else { return };
    let options = in_parts(&server);
    for prefix in ["", "some/prefix/"] {
        let objects = Objects::open(&server.location(prefix), &options)
            .await
            .unwrap();
        conforms(&objects, 1100, CONDITIONAL).await;
    }
}

#[tokio::test]
async fn requests_are_billed_by_kind() {
    let Some(server) = Server::moto() else { return };
    let objects = Objects::open(&server.location("a"), &server.options())
        .await
        .unwrap();
    for n in 0..5 {
        let key = format!("depth/{n}");
        objects.put(&key, Bytes::from("x")).await.unwrap();
    }
    objects.delete("depth/0").await.unwrap();
    objects.get("depth/1").await.unwrap();
    assert_eq!(objects.size("depth/1").await.unwrap(), 1);
    assert!(objects.get("depth/9").await.unwrap_err().is_not_found());
    assert_eq!(objects.delete_prefix("depth").await.unwrap(), 4);
    // The requests are five writes, a list, three reads (one of a size and one that failed), and two deletions (of one
    // object and of four objects).
    let stats = objects.stats();
    assert_eq!(stats.charged(), (6, 3));
    assert_eq!((stats.requests, stats.delete_requests), (11, 2));
}

/// Garage accepts conditions but ignores them. If this test fails, a newer version may honor them.
#[tokio::test(flavor = "multi_thread")]
async fn garage_passes_the_store_suite_except_for_conditions() {
    let Some(server) = Server::garage() else {
        return;
    };
    let options = in_parts(&server);
    let probe = Probe {
        if_absent: false,
        if_is: false,
    };
    for prefix in ["", "some/prefix/"] {
        let objects = Objects::open(&server.location(prefix), &options)
            .await
            .unwrap();
        conforms(&objects, 1100, probe).await;
        assert_eq!(objects.stats().retries, 0);
        assert_eq!(objects.stats().errors, 4);
    }
}

#[tokio::test]
#[ignore = "benchmark: run it with --nocapture"]
async fn server_throughput() {
    for (name, server) in [("garage", Server::garage()), ("moto", Server::moto())] {
        if let Some(server) = server {
            let objects = Objects::open(&server.location("a"), &server.options()).await;
            measure(name, &objects.unwrap()).await;
        }
    }
}

#[tokio::test]
async fn prefixes_of_one_bucket_are_separate() {
    let Some(server) = Server::moto() else { return };
    let open = |prefix| {
        let location = server.location(prefix);
        let options = server.options();
        async move { Objects::open(&location, &options).await.unwrap() }
    };
    let (one, other, all) = (open("a").await, open("ab").await, open("").await);
    one.put("key", Bytes::from("1")).await.unwrap();
    other.put("key", Bytes::from("2")).await.unwrap();
    assert_eq!(one.list("").await.unwrap().len(), 1);
    assert_eq!(one.get("key").await.unwrap().0, "1");
    assert_eq!(all.list_dirs("").await.unwrap(), ["a", "ab"]);
}

#[tokio::test]
async fn wrong_credentials_are_refused_and_not_printed() {
    let Some(server) = Server::garage() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    let secret = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100";
    for id in ["GK0123456789abcdef01234567", "GKffffffffffffffffffffffff"] {
        let text =
            format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n");
        std::fs::write(&file, text).unwrap();
        let options = Options {
            credentials_file: Some(file.clone()),
            ..server.options()
        };
        let objects = Objects::open(&server.location("a"), &options)
            .await
            .unwrap();
        let error = objects.put("key", Bytes::from("x")).await.unwrap_err();
        assert!(matches!(error, ObjectError::Denied { .. }), "{error}");
        assert!(!error.is_transient());
        assert!(!error.to_string().contains(secret));
        assert!(!format!("{objects:?}").contains(secret));
    }
}

#[tokio::test]
async fn error_reports_missing_credentials() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    std::fs::write(&file, "").unwrap();
    let options = Options {
        endpoint: Some("http://127.0.0.1:9".to_owned()),
        credentials_file: Some(file),
        ..Options::default()
    };
    let objects = Objects::open("s3://bucket/a", &options).await.unwrap();
    let error = objects.get("key").await.unwrap_err();
    assert!(matches!(error, ObjectError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("credentials"), "{error}");
}

#[tokio::test]
async fn missing_bucket_causes_a_missing_bucket_or_access_error() {
    for server in [Server::garage(), Server::moto()].into_iter().flatten() {
        let objects = Objects::open("s3://no-such-bucket/a", &server.options())
            .await
            .unwrap();
        let put = objects.put("key", Bytes::from("x")).await.unwrap_err();
        assert!(
            matches!(
                put,
                ObjectError::NoBucket { .. } | ObjectError::Denied { .. }
            ),
            "{put}"
        );
        let list = objects.list("").await.unwrap_err();
        assert!(
            matches!(
                list,
                ObjectError::NoBucket { .. } | ObjectError::Denied { .. }
            ),
            "{list}"
        );
    }
}

#[tokio::test]
async fn request_to_closed_port_fails_within_bounded_time() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    std::fs::write(
        &file,
        "[default]\naws_access_key_id = a\naws_secret_access_key = b\n",
    )
    .unwrap();
    let options = Options {
        endpoint: Some(format!("http://127.0.0.1:{}", free_port())),
        credentials_file: Some(file),
        max_attempts: 3,
        first_wait: Duration::from_millis(20),
        ..Options::default()
    };
    let objects = Objects::open("s3://bucket/a", &options).await.unwrap();
    let begin = Instant::now();
    let error = objects.get("key").await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(error.is_transient(), "{error}");
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert_eq!((objects.stats().requests, objects.stats().retries), (3, 2));
}
