//! A bounded run of the fuzz targets for messages, with random and damaged input. `fuzz/README.md` describes
//! longer runs.

#[path = "../../fuzz/src/messages.rs"]
mod messages;
#[path = "../../fuzz/src/mutate.rs"]
mod mutate;

use hatebeam_game::{Geometry, Well};
use hatebeam_proto::v1::answer::Kind as Answer;
use hatebeam_proto::v1::from_worker::Message as FromWorker;
use hatebeam_proto::v1::order::Kind as Order;
use hatebeam_proto::v1::to_worker::Message as ToWorker;
use hatebeam_proto::{batch, v1};
use hatebeam_search::{Node, NodeWell};
use prost::Message;

fn nodes() -> Vec<Node> {
    let node = |row: u16| {
        let mut rows = [0; 16];
        rows[15] = row;
        Node {
            score: i32::from(row) - 20,
            well: NodeWell::pack(Geometry::STANDARD, &Well::from_rows(rows)),
            lines: row % 3,
            hint: row as u8,
        }
    };
    (0..40).map(node).collect()
}

/// Returns valid batches, each preceded by a byte that selects a geometry of 16 rows.
fn batches() -> Vec<Vec<u8>> {
    [false, true]
        .map(|compress| mutate::seed(15, batch::pack(Geometry::STANDARD, &nodes(), compress)))
        .to_vec()
}

/// Returns valid messages, each preceded by a byte that selects the message type.
fn valid_messages() -> Vec<Vec<u8>> {
    let wells: Vec<u8> = nodes().iter().flat_map(|node| node.well.0).collect();
    let cut_verdict = v1::CutVerdict {
        dropped: true,
        tied: wells.clone(),
    };
    let answer = v1::FromWorker {
        message: Some(FromWorker::Answer(v1::Answer {
            epoch: 3,
            id: 9,
            kind: Some(Answer::CutVerdict(cut_verdict)),
        })),
    };
    let select = v1::Select {
        depth: 7,
        cut: u64::MAX - 5,
        ties: wells,
        all_ties: false,
    };
    let order = v1::ToWorker {
        message: Some(ToWorker::Order(v1::Order {
            epoch: 3,
            id: 9,
            kind: Some(Order::Select(select)),
        })),
    };
    let request = v1::SendRequest {
        header: Some(v1::StreamHeader {
            run: "run".to_owned(),
            epoch: 3,
            depth: 7,
            attempt: 1,
            from: "w0".to_owned(),
            secret: vec![7; 16],
        }),
        batch: batch::pack(Geometry::STANDARD, &nodes(), false).into(),
        parents: vec![1, u32::MAX],
        pieces: vec![0, 6],
        frontier: Some(v1::FrontierPart {
            shard: 3,
            wells: vec![1; 40],
            parents: vec![0, 5],
            last: true,
        }),
    };
    let response = v1::SendResponse {
        shards: vec![0, 5, 4095],
        floors: vec![1, u64::MAX, 3],
        received: Some(40),
    };
    let encoded = [
        answer.encode_to_vec(),
        order.encode_to_vec(),
        request.encode_to_vec(),
        response.encode_to_vec(),
    ];
    let kinds = encoded.into_iter().zip(0u8..);
    kinds
        .map(|(bytes, kind)| mutate::seed(kind, bytes))
        .collect()
}

#[test]
fn invalid_batches_never_panic() {
    mutate::run(messages::batch, &batches(), 2_000);
}

#[test]
fn invalid_messages_never_panic() {
    mutate::run(messages::message, &valid_messages(), 2_000);
}

#[test]
fn valid_batches_are_accepted() {
    for valid in batches() {
        let mut back = Vec::new();
        batch::unpack(Geometry::STANDARD, &valid[1..], &mut back).unwrap();
        assert_eq!(back, nodes());
    }
}
