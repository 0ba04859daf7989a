//! Peers and clients that send nonsense: each is refused with a clear error, and the run goes on.

use crate::rig::Rig;
use crate::{WIDTH, alone};
use hatebeam_game::{Geometry, Well};
use hatebeam_net::{self as wire, Limits};
use hatebeam_proto::v1::from_worker::Message;
use hatebeam_proto::v1::members_client::MembersClient;
use hatebeam_proto::v1::peers_client::PeersClient;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_proto::{batch, v1};
use hatebeam_search::{Node, NodeWell};
use tonic::transport::Channel;
use tonic::{Code, Status};

async fn channel(uri: &str) -> Channel {
    wire::connect(uri, None, &Limits::default()).await.unwrap()
}

async fn send(uri: &str, messages: Vec<v1::SendRequest>) -> Status {
    let mut client = PeersClient::new(channel(uri).await);
    let answers = client.send(tokio_stream::iter(messages)).await;
    let mut answers = match answers {
        Ok(answers) => answers.into_inner(),
        Err(status) => return status,
    };
    loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was not refused"),
            Err(status) => return status,
        }
    }
}

fn header(run: &str, epoch: u64, depth: u32, from: &str) -> v1::SendRequest {
    v1::SendRequest {
        header: Some(v1::StreamHeader {
            run: run.to_owned(),
            epoch,
            depth,
            attempt: 1,
            from: from.to_owned(),
        }),
        batch: Vec::new().into(),
    }
}

#[test]
fn nonsense_is_refused_and_the_run_goes_on() {
    let expected = alone(&WIDTH);
    let mut rig = Rig::new();
    rig.coordinator_flags = vec!["--min-workers".to_owned(), "2".to_owned()];
    rig.start_coordinator();
    rig.start_worker("w0", &["--threads", "1"]);
    rig.start_worker("w1", &["--threads", "1"]);
    let run = rig.submit(&WIDTH)["run"].as_str().unwrap().to_owned();
    crate::wait_for_depth(&rig, 3);
    let status = rig.client(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let worker = &status["workers"][0];
    assert_eq!(worker["worker"], "w0");
    let shards: Vec<u64> = [0, 1]
        .map(|at: usize| status["workers"][at]["shards"].as_u64().unwrap())
        .to_vec();
    assert_eq!(shards, [32, 32]);
    let here = Here {
        worker: worker["address"].as_str().unwrap().to_owned(),
        coordinator: rig.uri(),
        epoch: status["runs"][0]["epoch"].as_u64().unwrap(),
        run,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        here.a_worker_refuses_what_is_over().await;
        here.the_coordinator_refuses_what_is_no_run().await;
        here.the_coordinator_refuses_who_is_no_worker().await;
        here.a_worker_refuses_what_is_no_child().await;
    });
    rig.watch().assert_same(&expected);
}

/// Where nonsense is sent.
struct Here {
    worker: String,
    coordinator: String,
    run: String,
    epoch: u64,
}

impl Here {
    async fn a_worker_refuses_what_is_over(&self) {
        for messages in [
            vec![header(&self.run, self.epoch, 1, "w1")],
            vec![header(&self.run, 0, 500, "w1")],
        ] {
            let status = send(&self.worker, messages).await;
            assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        }
        let status = send(&self.worker, vec![v1::SendRequest::default()]).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    }

    /// A run that is no run, and not even a specification.
    async fn the_coordinator_refuses_what_is_no_run(&self) {
        let mut client = RunsClient::new(channel(&self.coordinator).await);
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

    /// A worker without a name, one of another version, one that says something else first.
    async fn the_coordinator_refuses_who_is_no_worker(&self) {
        let hello = v1::Hello {
            name: "x".to_owned(),
            address: "http://127.0.0.1:1".to_owned(),
            threads: 1,
            version: "0.0.0".to_owned(),
            ..v1::Hello::default()
        };
        let nameless = v1::Hello {
            name: String::new(),
            ..hello.clone()
        };
        for say in [
            Message::Hello(hello),
            Message::Hello(nameless),
            Message::Heartbeat(v1::Heartbeat::default()),
        ] {
            let mut members = MembersClient::new(channel(&self.coordinator).await);
            let message = v1::FromWorker { message: Some(say) };
            let status = members
                .join(tokio_stream::iter([message]))
                .await
                .unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        }
    }

    /// Children of the depth that is being expanded: from one who is no worker, and of another run; and from
    /// one who says that he is a worker: of a well that cannot be, cut off, and of a shard that is elsewhere.
    async fn a_worker_refuses_what_is_no_child(&self) {
        let geometry = Geometry::STANDARD;
        let node = |well| Node {
            score: 1,
            well,
            lines: 0,
            hint: 0,
        };
        // Of so many at least one is in the other worker's half.
        let many: Vec<Node> = (1..64u16)
            .map(|row| {
                let mut rows = [0; 16];
                rows[15] = row;
                let well = Well::from_rows(rows);
                node(NodeWell::pack(geometry, &well))
            })
            .collect();
        let whole = batch::pack(geometry, &many[..1], false);
        let batches = [
            batch::pack(geometry, &[node(NodeWell([0xff; 20]))], false),
            whole[..whole.len() - 1].to_vec(),
            batch::pack(geometry, &many, false),
        ];
        let words = ["", "", "is not here"];
        let mut client = RunsClient::new(channel(&self.coordinator).await);
        let mut refused = [false; 5];
        for _ in 0..400 {
            let now = client.list(v1::ListRequest {}).await.unwrap().into_inner();
            let depth = now.runs[0].depth + 2;
            let stranger = header(&self.run, self.epoch, depth, "stranger");
            let status = send(&self.worker, vec![stranger]).await;
            refused[3] |= status.code() == Code::PermissionDenied;
            let status = send(&self.worker, vec![header("other", self.epoch, depth, "w1")]).await;
            refused[4] |= status.message().contains("the run here is");
            for (place, batch) in batches.iter().enumerate() {
                let request = v1::SendRequest {
                    header: None,
                    batch: batch.clone().into(),
                };
                let header = header(&self.run, self.epoch, depth, "w1");
                let status = send(&self.worker, vec![header, request]).await;
                refused[place] |= status.code() == Code::InvalidArgument
                    && status.message().contains(words[place]);
            }
            if refused == [true; 5] {
                break;
            }
        }
        assert_eq!(refused, [true; 5]);
    }
}
