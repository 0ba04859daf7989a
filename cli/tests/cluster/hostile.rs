//! Peers and clients that send nonsense: each is refused with a clear error, and the run goes on.

use crate::rig::Rig;
use crate::{WIDTH, alone};
use hatebeam_game::{Geometry, Well};
use hatebeam_proto::v1::from_worker::Say;
use hatebeam_proto::v1::members_client::MembersClient;
use hatebeam_proto::v1::peers_client::PeersClient;
use hatebeam_proto::v1::runs_client::RunsClient;
use hatebeam_proto::wire::{self, Limits};
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

fn heading(run: &str, epoch: u64, depth: u32, from: &str) -> v1::SendRequest {
    v1::SendRequest {
        heading: Some(v1::Heading {
            run: run.to_owned(),
            epoch,
            depth,
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
    let uri = worker["address"].as_str().unwrap().to_owned();
    let epoch = status["runs"][0]["epoch"].as_u64().unwrap();
    let coordinator = rig.uri();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        // A depth that is over, an epoch that is over.
        let status = send(&uri, vec![heading(&run, epoch, 1, "w1")]).await;
        assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        let status = send(&uri, vec![heading(&run, 0, 500, "w1")]).await;
        assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        // No heading at all.
        let status = send(&uri, vec![v1::SendRequest::default()]).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        // A run that is no run, and not even a specification.
        let mut client = RunsClient::new(channel(&coordinator).await);
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
        // A worker without a name, one of another version, one that says something else first.
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
            Say::Hello(hello),
            Say::Hello(nameless),
            Say::Beat(v1::Beat::default()),
        ] {
            let mut members = MembersClient::new(channel(&coordinator).await);
            let message = v1::FromWorker { say: Some(say) };
            let status = members
                .attend(tokio_stream::iter([message]))
                .await
                .unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        }
        // Children of the depth that is being expanded, from one who is no worker; and from one who says
        // that he is: cut off, of a full row, and of a shard that is elsewhere.
        let geometry = Geometry::STANDARD;
        let good = Node {
            score: 1,
            well: NodeWell::pack(geometry, &Well::EMPTY),
            game_score: 0,
            hint: 0,
        };
        let bad = Node {
            well: NodeWell([0xff; 20]),
            ..good
        };
        let full = batch::pack(geometry, &[bad], false);
        let whole = batch::pack(geometry, &[good], false);
        let cut_off = whole[..whole.len() - 1].to_vec();
        let mut refused = [false; 3];
        for _ in 0..400 {
            let now = client.list(v1::ListRequest {}).await.unwrap().into_inner();
            let depth = now.runs[0].depth + 2;
            let status = send(&uri, vec![heading(&run, epoch, depth, "stranger")]).await;
            refused[0] |= status.code() == Code::PermissionDenied;
            for (place, batch) in [(1, &full), (2, &cut_off)] {
                let request = v1::SendRequest {
                    heading: None,
                    batch: batch.clone().into(),
                };
                let messages = vec![heading(&run, epoch, depth, "w1"), request];
                let status = send(&uri, messages).await;
                refused[place] |= status.code() == Code::InvalidArgument;
            }
            if refused == [true; 3] {
                break;
            }
        }
        assert_eq!(refused, [true; 3]);
    });
    rig.watch().assert_same(&expected);
}
