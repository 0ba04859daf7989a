//! Tests of the conversions between the generated types and the plain messages. Every message survives encoding and
//! decoding, and damaged messages cause no panic.

#![allow(clippy::unwrap_used)]

use hatebeam_cost::Machine;
use hatebeam_game::{Geometry, Piece, Rules, Well};
use hatebeam_proto::convert::MessageError;
use hatebeam_proto::messages::*;
use hatebeam_proto::v1;
use hatebeam_runs::{FoundNode, FrontierSummary, LoopRule, RunSpec, Start, Table, WellSpec};
use hatebeam_search::{
    CountQuery, Digest, EvaluatorKind, EvaluatorSpec, Fingerprint, Node, NodeWell, Origin,
    Quiescence, WELL_BYTES, Weights,
};
use proptest::prelude::*;
use prost::Message;
use std::time::Duration;

fn text() -> impl Strategy<Value = String> {
    "[a-z0-9:/.é-]{0,12}"
}

fn machine() -> impl Strategy<Value = Machine> {
    let price = prop::option::of(0..=hatebeam_cost::MAX_PRICE.0);
    (text(), text(), text(), text(), price).prop_map(|(kind, zone, id, price_from, price)| {
        Machine {
            kind,
            market: "spot".to_owned(),
            region: String::new(),
            zone,
            id,
            price_per_hour: price.map(hatebeam_cost::Micros),
            price_from,
        }
    })
}

fn hello() -> impl Strategy<Value = Hello> {
    (text(), text(), any::<[u64; 4]>(), any::<u32>(), machine()).prop_map(
        |(name, address, numbers, threads, machine)| Hello {
            name,
            address,
            threads,
            memory_bytes: numbers[0],
            disk_free_bytes: numbers[1],
            disk_bytes: numbers[2],
            version: "0.1.0".to_owned(),
            machine,
            started_ms: numbers[3],
            search: "1-a-b".to_owned(),
            lease: "0123456789abcdef".to_owned(),
        },
    )
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    (any::<[u64; 8]>(), any::<u32>()).prop_map(|(numbers, depth)| Heartbeat {
        epoch: numbers[0],
        depth,
        expanded: numbers[1],
        parents: numbers[2],
        rss_bytes: numbers[3],
        disk_free_bytes: numbers[4],
        store_writes: numbers[5],
        store_reads: numbers[6],
        uploading_bytes: numbers[7],
    })
}

fn spec() -> impl Strategy<Value = RunSpec> {
    let start = prop_oneof![
        Just(Start::Empty),
        text().prop_map(|hex| Start::Well { hex }),
        (text(), any::<u32>()).prop_map(|(base2048, piece)| Start::Replay { base2048, piece }),
    ];
    let kind = prop::sample::select(vec![EvaluatorKind::Knewjade, EvaluatorKind::Patterns]);
    (any::<u64>(), start, kind, -1e6..1e6).prop_map(|(width, start, kind, holes)| RunSpec {
        loops: LoopRule::Ignore,
        width,
        well: WellSpec::new(Geometry::STANDARD, Rules::default()),
        start,
        evaluator: EvaluatorSpec {
            kind,
            weights: Weights {
                holes,
                ..Weights::default()
            },
            quiescence: Quiescence::Off,
        },
        search: Fingerprint::from_text("1-a-b"),
    })
}

fn table() -> impl Strategy<Value = Table> {
    (any::<u32>(), text(), any::<[u64; 3]>(), text()).prop_map(|(shard, key, numbers, digest)| {
        Table {
            shard,
            key,
            offset: numbers[0],
            bytes: numbers[1],
            checksum: "0123456789abcdef".to_owned(),
            count: numbers[2],
            digest,
        }
    })
}

fn well() -> impl Strategy<Value = NodeWell> {
    any::<[u8; 20]>().prop_map(NodeWell)
}

fn wells() -> impl Strategy<Value = Vec<NodeWell>> {
    prop::collection::vec(well(), 0..4)
}

fn prepare() -> impl Strategy<Value = Prepare> {
    let member = (text(), text(), any::<([u8; 16], [u8; 16])>()).prop_map(
        |(name, address, (send_secret, receive_secret))| Peer {
            name,
            address,
            send_secret: Secret(send_secret),
            receive_secret: Secret(receive_secret),
        },
    );
    (
        text(),
        spec(),
        any::<u32>(),
        prop::collection::vec(any::<u32>(), 0..5),
        prop::collection::vec(member, 0..3),
        (prop::collection::vec(table(), 0..3), any::<u32>()),
    )
        .prop_map(
            |(run, spec, depth, owners, members, (tables, table_shards))| Prepare {
                run,
                spec,
                depth,
                owners,
                members,
                tables,
                table_shards,
            },
        )
}

fn query() -> impl Strategy<Value = CountQuery> {
    (0u32..4, any::<u64>()).prop_map(|(known, prefix)| CountQuery {
        known,
        prefix: prefix & ((1 << (16 * known)) - 1),
    })
}

fn order() -> impl Strategy<Value = OrderKind> {
    prop_oneof![
        prepare().prop_map(|prepare| OrderKind::Prepare(Box::new(prepare))),
        (any::<[u32; 2]>(), 0.0..1e6, any::<[u64; 2]>()).prop_map(
            |([depth, attempt], sigmas, [floor, wells])| OrderKind::Expand(Expand {
                depth,
                attempt,
                sigmas,
                floor,
                wells,
            })
        ),
        (any::<u32>(), prop::collection::vec(query(), 1..3))
            .prop_map(|(depth, queries)| OrderKind::Count(Count { depth, queries })),
        any::<(u32, u64, bool)>().prop_map(|(depth, cut, tied)| OrderKind::ValidateCut(
            ValidateCut { depth, cut, tied }
        )),
        select().prop_map(OrderKind::Rescore),
        select().prop_map(OrderKind::Select),
        any::<u32>().prop_map(|depth| OrderKind::WaitCommit(WaitCommit { depth })),
        Just(OrderKind::Halt),
        text().prop_map(|run| OrderKind::ReadBack(ReadBack { run })),
    ]
}

fn histogram() -> impl Strategy<Value = Histogram> {
    prop::collection::btree_map(any::<u16>(), any::<u64>(), 0..5).prop_map(|counts| Histogram {
        counts: counts
            .into_iter()
            .map(|(digit, count)| DigitCount { digit, count })
            .collect(),
    })
}

fn summary() -> impl Strategy<Value = FrontierSummary> {
    let node = any::<(i32, [u8; 20], u16, u8)>().prop_map(|(score, well, lines, hint)| Node {
        score,
        well: NodeWell(well),
        lines,
        hint,
    });
    (any::<(u64, u128, i32, i32)>(), prop::option::of(node)).prop_map(
        |((count, digest, best_eval, worst_eval), best)| FrontierSummary {
            count,
            digest: Digest(digest),
            best_eval,
            worst_eval,
            best,
        },
    )
}

fn failed() -> impl Strategy<Value = Failed> {
    let kind = prop_oneof![
        Just(FailureKind::BadOrder),
        any::<Option<u32>>().prop_map(|depth| FailureKind::Damaged { depth }),
        (any::<u32>(), text()).prop_map(|(depth, well)| FailureKind::Contradiction { depth, well }),
        Just(FailureKind::Unavailable),
        prop::collection::vec(text(), 0..3)
            .prop_map(|peers| FailureKind::PeersUnreachable { peers }),
        prop::collection::vec(text(), 0..3).prop_map(|peers| FailureKind::WrongChildren { peers }),
        Just(FailureKind::Superseded),
        Just(FailureKind::Worker),
    ];
    (text(), kind).prop_map(|(reason, kind)| Failed { reason, kind })
}

fn game_nodes() -> impl Strategy<Value = GameNodes> {
    let node = (any::<(u32, [u8; 20], u16, u8)>(), prop::option::of(piece()));
    let node = node.prop_map(|((depth, well, lines, hint), changed)| FoundNode {
        depth,
        well: NodeWell(well),
        lines,
        hint,
        changed,
    });
    let nodes = prop::collection::vec(node, 0..4);
    (nodes, any::<(u64, u64)>()).prop_map(|(nodes, (tables, bytes))| GameNodes {
        nodes,
        tables,
        bytes,
    })
}

fn select() -> impl Strategy<Value = Select> {
    let fields = (any::<(u32, u64)>(), prop::option::of(wells()));
    fields.prop_map(|((depth, cut), ties)| Select { depth, cut, ties })
}

fn answer() -> impl Strategy<Value = AnswerKind> {
    prop_oneof![
        any::<(u64, u32)>()
            .prop_map(|(wells, fetched)| AnswerKind::Prepared(Prepared { wells, fetched })),
        (
            any::<[u64; 4]>(),
            prop::collection::vec((well(), piece()), 0..5),
        )
            .prop_map(|([children, sent, sent_bytes, busy_micros], changed)| {
                let changed = changed.into_iter();
                AnswerKind::Expanded(Expanded {
                    children,
                    sent,
                    sent_bytes,
                    busy_micros,
                    changed: changed
                        .map(|(well, piece)| ChangedWell { well, piece })
                        .collect(),
                })
            }),
        prop::collection::vec(histogram(), 0..3).prop_map(AnswerKind::Counted),
        (any::<bool>(), wells())
            .prop_map(|(dropped, tied)| AnswerKind::CutVerdict(CutVerdict { dropped, tied })),
        any::<u64>().prop_map(|busy_micros| AnswerKind::Rescored(Rescored { busy_micros })),
        summary().prop_map(AnswerKind::Selected),
        prop::collection::vec(table(), 0..3).prop_map(AnswerKind::Committed),
        Just(AnswerKind::Halted),
        game_nodes().prop_map(AnswerKind::GameNodes),
        failed().prop_map(AnswerKind::Failed),
    ]
}

fn from_worker() -> impl Strategy<Value = FromWorker> {
    prop_oneof![
        hello().prop_map(|hello| FromWorker::Hello(Box::new(hello))),
        heartbeat().prop_map(FromWorker::Heartbeat),
        (any::<(u64, u64)>(), answer())
            .prop_map(|((epoch, id), kind)| FromWorker::Answer(Answer { epoch, id, kind })),
        text().prop_map(|reason| FromWorker::Leaving(Leaving { reason })),
    ]
}

fn to_worker() -> impl Strategy<Value = ToWorker> {
    prop_oneof![
        any::<[u64; 2]>().prop_map(|[heartbeat, lost_after]| ToWorker::Welcome(Welcome {
            heartbeat: Duration::from_millis(heartbeat),
            lost_after: Duration::from_millis(lost_after),
        })),
        (any::<(u64, u64)>(), order()).prop_map(|((epoch, id), kind)| ToWorker::Order(Order {
            epoch,
            id,
            kind
        })),
        Just(ToWorker::Released),
    ]
}

fn peer_request() -> impl Strategy<Value = PeerRequest> {
    prop_oneof![
        (text(), any::<(u64, u32, u32, [u8; 16])>(), text()).prop_map(
            |(run, (epoch, depth, attempt, secret), from)| PeerRequest::Header(StreamHeader {
                run,
                epoch,
                depth,
                attempt,
                from,
                secret: Secret(secret),
            })
        ),
        (
            prop::collection::vec(any::<u8>(), 0..50),
            prop::collection::vec((any::<u32>(), piece()), 0..5),
        )
            .prop_map(|(children, origins)| {
                let origins = origins.into_iter();
                PeerRequest::Batch(Batch {
                    children: children.into(),
                    origins: origins
                        .map(|(parent, piece)| Origin { parent, piece })
                        .collect(),
                })
            }),
        (
            any::<(u32, bool)>(),
            prop::collection::vec((any::<[u8; WELL_BYTES]>(), any::<u32>()), 0..5),
        )
            .prop_map(|((shard, last), nodes)| {
                let nodes = nodes.into_iter();
                let (wells, parents) = nodes.map(|(well, parent)| (NodeWell(well), parent)).unzip();
                PeerRequest::Frontier(FrontierPart {
                    shard,
                    wells,
                    parents,
                    last,
                })
            }),
    ]
}

fn piece() -> impl Strategy<Value = Piece> {
    prop::sample::select(&Piece::ALL[..])
}

fn peer_response() -> impl Strategy<Value = PeerResponse> {
    let floor = any::<(u32, u64)>().prop_map(|(shard, floor)| ShardFloor { shard, floor });
    (prop::collection::vec(floor, 0..4), any::<Option<u64>>())
        .prop_map(|(floors, received)| PeerResponse { floors, received })
}

fn over_the_wire<T, W>(message: T) -> Result<T, MessageError>
where
    T: TryFrom<W, Error = MessageError>,
    W: From<T> + Message + Default,
{
    let bytes = W::from(message).encode_to_vec();
    T::try_from(W::decode(&*bytes).unwrap())
}

/// Decodes a message with changed bytes. If the changed message is accepted, it must survive encoding and decoding.
fn read_damaged<T, W>(
    message: T,
    changes: &[(prop::sample::Index, u8)],
) -> Result<(), TestCaseError>
where
    T: TryFrom<W, Error = MessageError> + Clone + std::fmt::Debug + PartialEq,
    W: From<T> + Message + Default,
{
    let mut bytes = W::from(message).encode_to_vec();
    for (at, byte) in changes {
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
    }
    if let Ok(Ok(message)) = W::decode(&*bytes).map(T::try_from) {
        prop_assert_eq!(over_the_wire::<T, W>(message.clone()), Ok(message));
    }
    Ok(())
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn messages_survive_encoding_and_decoding(
        from_worker in from_worker(),
        to_worker in to_worker(),
        request in peer_request(),
        response in peer_response(),
    ) {
        prop_assert_eq!(
            over_the_wire::<_, v1::FromWorker>(from_worker.clone()),
            Ok(from_worker)
        );
        prop_assert_eq!(over_the_wire::<_, v1::ToWorker>(to_worker.clone()), Ok(to_worker));
        prop_assert_eq!(over_the_wire::<_, v1::SendRequest>(request.clone()), Ok(request));
        prop_assert_eq!(over_the_wire::<_, v1::SendResponse>(response.clone()), Ok(response));
    }

    #[test]
    fn damaged_messages_are_refused_or_survive_encoding_and_decoding(
        from_worker in from_worker(),
        to_worker in to_worker(),
        request in peer_request(),
        response in peer_response(),
        changes in changes(),
    ) {
        read_damaged::<_, v1::FromWorker>(from_worker, &changes)?;
        read_damaged::<_, v1::ToWorker>(to_worker, &changes)?;
        read_damaged::<_, v1::SendRequest>(request, &changes)?;
        read_damaged::<_, v1::SendResponse>(response, &changes)?;
    }
}

fn refused_order(kind: v1::order::Kind) -> &'static str {
    let kind = Some(kind);
    let order = v1::Order {
        epoch: 1,
        id: 2,
        kind,
    };
    Order::try_from(order).unwrap_err().field
}

fn refused_answer(kind: v1::answer::Kind) -> &'static str {
    let answer = v1::Answer {
        epoch: 1,
        id: 2,
        kind: Some(kind),
    };
    Answer::try_from(answer).unwrap_err().field
}

#[test]
fn error_names_invalid_field_of_order() {
    use v1::order::Kind;
    assert_eq!(
        Order::try_from(v1::Order::default()).unwrap_err().field,
        "order.kind"
    );
    let prepare = v1::Prepare {
        spec: "{}".to_owned(),
        ..v1::Prepare::default()
    };
    assert_eq!(refused_order(Kind::Prepare(prepare)), "prepare.spec");
    for sigmas in [f64::NAN, -1.0, 1e6, f64::INFINITY] {
        let expand = v1::Expand {
            sigmas,
            ..v1::Expand::default()
        };
        assert_eq!(refused_order(Kind::Expand(expand)), "expand.sigmas");
    }
    let prefix = |known, prefix| v1::Prefix { known, prefix };
    for prefixes in [
        vec![],
        vec![prefix(0, 0); 3],
        vec![prefix(4, 0)],
        vec![prefix(1, 1 << 16)],
    ] {
        let count = v1::Count { depth: 1, prefixes };
        assert_eq!(refused_order(Kind::Count(count)), "count.prefixes");
    }
    for (ties, all_ties) in [(vec![1, 2, 3], false), (vec![0; 20], true)] {
        let select = v1::Select {
            ties,
            all_ties,
            ..v1::Select::default()
        };
        assert_eq!(refused_order(Kind::Select(select)), "select.ties");
    }
}

#[test]
fn error_names_invalid_field_of_answer() {
    use v1::answer::Kind;
    let histogram = |digits: &[u32], counts: &[u64]| {
        let (digits, counts) = (digits.to_vec(), counts.to_vec());
        let histograms = vec![v1::Histogram { digits, counts }];
        refused_answer(Kind::Counted(v1::Counted { histograms }))
    };
    assert_eq!(histogram(&[1], &[]), "histogram.digits");
    assert_eq!(histogram(&[1, 1], &[1, 1]), "histogram.digits");
    assert_eq!(histogram(&[1 << 16], &[1]), "histogram.digits");
    let selected = |digest: &str, best_well: usize, best_lines| {
        refused_answer(Kind::Selected(v1::Selected {
            digest: digest.to_owned(),
            best_well: vec![0; best_well],
            best_lines,
            ..v1::Selected::default()
        }))
    };
    assert_eq!(selected("xyz", 0, 0), "selected.digest");
    assert_eq!(selected("1", 19, 0), "selected.best_well");
    assert_eq!(selected("1", 20, 1 << 16), "selected.best_lines");
    let failed = v1::Failed::default();
    assert_eq!(refused_answer(Kind::Failed(failed)), "failed.kind");
}

#[test]
fn invalid_answer_fails_its_order() {
    let answer = v1::Answer {
        epoch: 3,
        id: 4,
        kind: None,
    };
    let message = Some(v1::from_worker::Message::Answer(answer));
    let read = FromWorker::try_from(v1::FromWorker { message }).unwrap();
    let FromWorker::Answer(answer) = read else {
        panic!("{read:?}");
    };
    assert_eq!((answer.epoch, answer.id), (3, 4));
    assert!(
        matches!(&answer.kind, AnswerKind::Failed(failed) if failed.kind == FailureKind::Worker),
        "{answer:?}"
    );
}

#[test]
fn long_texts_are_truncated_and_impossible_prices_are_dropped() {
    let long = "é".repeat(5000);
    let machine = v1::Machine {
        kind: long.clone(),
        micros_per_hour: Some(u64::MAX),
        ..v1::Machine::default()
    };
    let hello = Hello::from(v1::Hello {
        machine: Some(machine),
        ..v1::Hello::default()
    });
    assert_eq!(hello.machine.kind.chars().count(), hatebeam_cost::MAX_TEXT);
    assert_eq!(hello.machine.price_per_hour, None);
    let leaving = Leaving::from(v1::Leaving {
        reason: long.clone(),
    });
    let failed = v1::Failed {
        reason: long,
        kind: v1::FailureKind::Worker.into(),
        ..v1::Failed::default()
    };
    assert_eq!(leaving.reason.chars().count(), 200);
    assert_eq!(
        Failed::try_from(failed).unwrap().reason.chars().count(),
        1000
    );
}

#[test]
fn changed_pieces_of_a_hundred_thousand_wells_need_21_bytes_each() {
    let geometry = Geometry::STANDARD;
    let changed = |number: u32| {
        let mut rows = [0; 16];
        (rows[0], rows[1]) = (number as u16 & 0x1ff, 1 + (number >> 9) as u16);
        ChangedWell {
            well: NodeWell::pack(geometry, &Well::from_rows(rows)),
            piece: Piece::ALL[number as usize % 7],
        }
    };
    let expanded = Expanded {
        children: 1,
        sent: 0,
        sent_bytes: 0,
        busy_micros: 0,
        changed: (0..100_000).map(changed).collect(),
    };
    for changed in &expanded.changed[..1000] {
        let text = changed.to_text(geometry).unwrap();
        assert_eq!(ChangedWell::from_text(geometry, &text), Some(*changed));
    }
    let encoded = v1::Expanded::from(expanded.clone()).encode_to_vec();
    assert!(encoded.len() < 2_100_100, "{}", encoded.len());
    let decoded = v1::Expanded::decode(&encoded[..]).unwrap();
    assert_eq!(Expanded::try_from(decoded.clone()), Ok(expanded));
    for (wells, pieces) in [(20, vec![]), (19, vec![0]), (20, vec![7])] {
        let wrong = v1::Expanded {
            changed_wells: decoded.changed_wells[..wells].to_vec(),
            changed_pieces: pieces,
            ..v1::Expanded::default()
        };
        assert!(Expanded::try_from(wrong).is_err());
    }
}
