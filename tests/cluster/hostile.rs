//! Tests that invalid messages from peers, workers and clients are refused while the run continues.

use crate::harness::Cluster;
use crate::{WIDTH, one_process};
use hatebeam_game::Geometry;
use hatebeam_net::{self as net, Limits, Role};
use hatebeam_proto::v1::from_worker::Message;
use hatebeam_proto::v1::members_client::MembersClient;
use hatebeam_proto::v1::peers_client::PeersClient;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_proto::{batch, v1};
use tonic::transport::Channel;
use tonic::{Code, Status};

pub(crate) async fn connect(uri: &str) -> Channel {
    net::connect(uri, None, Role::Worker, &Limits::default())
        .await
        .unwrap()
}

/// Sends messages to a worker, asserts that the worker refuses them, and returns the error.
async fn send(uri: &str, messages: Vec<v1::SendRequest>) -> Status {
    let mut client = PeersClient::new(connect(uri).await);
    let answers = client.send(tokio_stream::iter(messages)).await;
    let mut answers = match answers {
        Ok(answers) => answers.into_inner(),
        Err(status) => return status,
    };
    loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the worker accepted the messages"),
            Err(status) => return status,
        }
    }
}

/// The cluster that receives the invalid messages, and its run.
struct Target {
    /// Address of the worker w0.
    worker: String,
    coordinator: String,
    run: String,
    epoch: u64,
}

#[test]
fn invalid_messages_are_refused_and_do_not_change_the_result() {
    let expected = one_process(&WIDTH);
    let mut cluster = Cluster::new();
    cluster.set_coordinator_flags(&["--min-workers", "2"]);
    cluster.start_all(&["w0", "w1"]);
    let run = cluster.submit_name(&WIDTH);
    cluster.wait_for_depth(3);
    let workers = cluster.worker_status();
    assert_eq!(workers[0]["worker"], "w0");
    assert!(
        workers.iter().all(|worker| worker["shards"] == 32),
        "{workers:?}"
    );
    let target = Target {
        worker: workers[0]["address"].as_str().unwrap().to_owned(),
        coordinator: cluster.uri(),
        run,
        epoch: cluster.status().unwrap()["epoch"].as_u64().unwrap(),
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        target.worker_refuses_past_depths_and_epochs().await;
        target.coordinator_refuses_invalid_runs().await;
        target.coordinator_refuses_invalid_workers().await;
        target.worker_refuses_streams_without_valid_secret().await;
    });
    cluster.watch().assert_same(&expected);
}

impl Target {
    fn header(&self, depth: u32, from: &str) -> v1::StreamHeader {
        v1::StreamHeader {
            run: self.run.clone(),
            epoch: self.epoch,
            depth,
            attempt: 1,
            from: from.to_owned(),
            secret: vec![0; 16],
        }
    }

    async fn worker_refuses_past_depths_and_epochs(&self) {
        let past_depth = self.header(1, "w1");
        let mut past_epoch = self.header(500, "w1");
        past_epoch.epoch = 0;
        for header in [past_depth, past_epoch] {
            let status = send(&self.worker, vec![first_message(header)]).await;
            assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        }
        let without_header = v1::SendRequest::default();
        let status = send(&self.worker, vec![without_header]).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }

    async fn coordinator_refuses_invalid_runs(&self) {
        let mut client = RunsClient::new(connect(&self.coordinator).await);
        for spec in ["", "{}", "{\"width\":0}"] {
            let request = v1::SubmitRequest {
                spec: spec.to_owned(),
                ..v1::SubmitRequest::default()
            };
            let status = client.submit(request).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        }
        let watch = v1::WatchRequest {
            run: "no such".to_owned(),
            from_depth: 0,
        };
        let status = client.watch(watch).await.unwrap_err();
        assert_eq!(status.code(), Code::NotFound, "{status}");
    }

    /// Checks that the coordinator refuses a worker with another version, a worker without a name, workers with
    /// addresses to which the other workers cannot connect, and a worker whose first message is not `Hello`.
    async fn coordinator_refuses_invalid_workers(&self) {
        let other_version = v1::Hello {
            name: "x".to_owned(),
            address: "http://127.0.0.1:1".to_owned(),
            threads: 1,
            version: "0.0.0".to_owned(),
            ..v1::Hello::default()
        };
        let nameless = v1::Hello {
            name: String::new(),
            ..other_version.clone()
        };
        let at = |address: &str| v1::Hello {
            address: address.to_owned(),
            ..other_version.clone()
        };
        for (first, expected) in [
            (Message::Hello(at("worker-1:7801")), "--advertise"),
            (Message::Hello(at("https://worker-1:7801")), "--advertise"),
            (Message::Hello(other_version), "version 0.0.0"),
            (Message::Hello(nameless), "worker name"),
            (
                Message::Heartbeat(v1::Heartbeat::default()),
                "hello message",
            ),
        ] {
            let mut members = MembersClient::new(connect(&self.coordinator).await);
            let message = v1::FromWorker {
                message: Some(first),
            };
            let answer = members.join(tokio_stream::iter([message])).await;
            let status = answer.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            assert!(status.message().contains(expected), "{status}");
        }
    }

    /// Checks that a worker refuses streams without a valid secret. A stream for a depth that has ended is refused
    /// with another error. Depths end while this function runs, so it sends each kind of stream until the worker has
    /// refused it once with the expected error.
    async fn worker_refuses_streams_without_valid_secret(&self) {
        let mut client = RunsClient::new(connect(&self.coordinator).await);
        let mut kinds = invalid_streams();
        for _ in 0..400 {
            let now = client
                .list(v1::ListRequest::default())
                .await
                .unwrap()
                .into_inner();
            let depth = now.runs[0].depth + 2;
            for kind in &mut kinds {
                let header = v1::StreamHeader {
                    secret: kind.secret.clone(),
                    ..self.header(depth, kind.from)
                };
                // A valid batch without children.
                let batch = batch::pack(Geometry::STANDARD, &[], false);
                let messages = vec![
                    first_message(header),
                    v1::SendRequest {
                        batch: batch.into(),
                        ..v1::SendRequest::default()
                    },
                ];
                let status = send(&self.worker, messages).await;
                let is_expected = status.code() == kind.code;
                kind.is_refused |= is_expected;
            }
            if kinds.iter().all(|kind| kind.is_refused) {
                return;
            }
        }
        let remaining: Vec<&str> = kinds
            .iter()
            .filter(|kind| !kind.is_refused)
            .map(|kind| kind.name)
            .collect();
        panic!("the worker did not refuse streams with the expected error: {remaining:?}");
    }
}

fn first_message(header: v1::StreamHeader) -> v1::SendRequest {
    v1::SendRequest {
        header: Some(header),
        ..v1::SendRequest::default()
    }
}

/// A kind of stream that a worker must refuse, because its secret is not valid.
struct InvalidStream {
    name: &'static str,
    from: &'static str,
    secret: Vec<u8>,
    code: Code,
    is_refused: bool,
}

fn invalid_streams() -> [InvalidStream; 3] {
    let stream = |name, from, secret: Vec<u8>, code| InvalidStream {
        name,
        from,
        secret,
        code,
        is_refused: false,
    };
    [
        stream(
            "unknown sender",
            "stranger",
            vec![0; 16],
            Code::PermissionDenied,
        ),
        stream("known sender", "w1", vec![0; 16], Code::PermissionDenied),
        stream("short secret", "w1", vec![0; 15], Code::InvalidArgument),
    ]
}
