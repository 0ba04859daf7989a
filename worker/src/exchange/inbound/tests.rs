use super::*;
use crate::error::OrderError;
use crate::testing::{SECRET, spec};
use hatebeam_game::{Children, Emulator, Piece, Well};
use hatebeam_metrics::{Registry, WorkerMetrics};
use hatebeam_proto::LinkErrorKind;
use hatebeam_proto::messages::{Failed, FailureKind};
use hatebeam_runs::CellBalance;
use hatebeam_search::{DEFAULT_SIGMAS, Evaluator, NodeWell, Origin, ShardLayout};

const GEOMETRY: Geometry = Geometry::STANDARD;

fn header(epoch: u64, depth: u32, attempt: u32) -> StreamHeader {
    StreamHeader {
        run: "run".to_owned(),
        epoch,
        depth,
        attempt,
        from: "w1".to_owned(),
        secret: SECRET,
    }
}

/// Returns wells with four cells, which are possible at depth 1.
fn nodes(count: usize) -> Vec<Node> {
    let node = |cells: u32| {
        let mut rows = [0; 16];
        rows[14] = (cells >> 10) as u16;
        rows[15] = (cells & 0x3ff) as u16;
        Node {
            score: 0,
            well: NodeWell::pack(GEOMETRY, &Well::from_rows(rows)),
            lines: 0,
            hint: 0,
        }
    };
    let cells = (0..1 << 20).filter(|cells: &u32| cells.count_ones() == 4);
    let mut nodes: Vec<Node> = cells.map(node).take(count).collect();
    let wells: Vec<Well> = nodes
        .iter()
        .map(|node| node.well.unpack(GEOMETRY).unwrap())
        .collect();
    let mut scores = Vec::new();
    let mut evaluator = Evaluator::new(&emulator(), &spec(100).evaluator).unwrap();
    evaluator.score(&wells, &vec![0; wells.len()], &mut scores);
    for (node, score) in nodes.iter_mut().zip(scores) {
        node.score = score;
    }
    nodes
}

fn emulator() -> Emulator {
    spec(100).emulator().unwrap()
}

fn balance() -> CellBalance {
    CellBalance::of(&spec(100)).unwrap()
}

/// Returns an exchange at epoch 3, depth 1, attempt 2, on a worker that owns the first of two shards.
fn exchange() -> (InboundControl, InboundExchange, Arc<Candidates>) {
    let metrics = WorkerMetrics::register(&Registry::default());
    let (control, exchange) = InboundExchange::new(Env::system(), Traffic::new(metrics));
    control.begin_epoch(EpochExchange {
        run: "run".to_owned(),
        epoch: 3,
        depth: 0,
        geometry: GEOMETRY,
        owned: Arc::new(vec![true, false]),
        peers: [("w1".to_owned(), SECRET)].into(),
        spot_check: SpotCheck::new(&emulator(), spec(100).evaluator, balance()),
    });
    let layout = ShardLayout::new(1000, 2);
    let candidates = Arc::new(Candidates::new(layout, DEFAULT_SIGMAS));
    control.open(position(3, 1, 2), &candidates, None);
    (control, exchange, candidates)
}

fn position(epoch: u64, depth: u32, attempt: u32) -> Position {
    Position {
        epoch,
        depth,
        attempt,
    }
}

#[test]
fn tasks_of_an_earlier_epoch_change_nothing() {
    let (control, exchange, candidates) = exchange();
    let current = || exchange.current.borrow().clone().unwrap();
    let layout = ShardLayout::new(1000, 2);
    let others = Arc::new(Candidates::new(layout, DEFAULT_SIGMAS));
    control.open(position(2, 9, 1), &others, None);
    control.release_candidates(2);
    assert_eq!(current().position, position(3, 1, 2));
    assert!(Arc::ptr_eq(&current().candidates.unwrap(), &candidates));
    control.release_candidates(3);
    assert!(current().candidates.is_none());
}

/// Returns a batch of a run that ignores the loop rule.
fn plain(children: Vec<u8>) -> Batch {
    Batch {
        children: children.into(),
        origins: Vec::new(),
    }
}

/// Sends a header and batches of a run that ignores the loop rule, and returns the number of children received.
async fn send(
    exchange: &InboundExchange,
    header: StreamHeader,
    batches: Vec<Vec<u8>>,
) -> Result<u64, LinkError> {
    let batches = batches.into_iter().map(plain).collect();
    send_batches(exchange, header, batches).await
}

async fn send_batches(
    exchange: &InboundExchange,
    header: StreamHeader,
    batches: Vec<Batch>,
) -> Result<u64, LinkError> {
    let batches = batches.into_iter().map(PeerRequest::Batch);
    let requests = std::iter::once(PeerRequest::Header(header)).chain(batches);
    let requests: Vec<_> = requests.map(Ok).collect();
    let mut responses = exchange.serve(Box::pin(tokio_stream::iter(requests)));
    let mut received = None;
    while let Some(response) = responses.next().await {
        received = response?.received;
    }
    Ok(received.unwrap())
}

/// Returns the test nodes that are in the first shard, which the worker owns.
fn here() -> Vec<Node> {
    let layout = ShardLayout::new(1000, 2);
    let mut nodes = nodes(200);
    nodes.retain(|node| layout.shard_of(&node.well) == 0);
    nodes
}

#[tokio::test]
async fn children_of_current_attempt_are_received() {
    let (_control, exchange, candidates) = exchange();
    let nodes = here();
    let batch = batch::pack(GEOMETRY, &nodes, false);
    let received = send(&exchange, header(3, 1, 2), vec![batch]).await.unwrap();
    assert_eq!(received, nodes.len() as u64);
    assert_eq!(candidates.len(), nodes.len());
}

#[tokio::test]
async fn streams_from_other_attempts_runs_and_workers_are_refused() {
    let (_control, exchange, candidates) = exchange();
    let foreign_run = StreamHeader {
        run: "other".to_owned(),
        ..header(3, 1, 2)
    };
    let stranger = StreamHeader {
        from: "stranger".to_owned(),
        ..header(3, 1, 2)
    };
    let without_secret = StreamHeader {
        secret: Secret::default(),
        ..header(3, 1, 2)
    };
    let batch = batch::pack(GEOMETRY, &here(), false);
    for (header, kind) in [
        (header(3, 1, 1), LinkErrorKind::Superseded),
        (header(3, 0, 9), LinkErrorKind::Superseded),
        (header(2, 9, 9), LinkErrorKind::Superseded),
        (foreign_run, LinkErrorKind::Superseded),
        (stranger, LinkErrorKind::Refused),
        (without_secret, LinkErrorKind::Refused),
    ] {
        let refused = send(&exchange, header.clone(), vec![batch.clone()]).await;
        assert_eq!(refused.unwrap_err().kind, kind, "{header:?}");
    }
    assert_eq!(candidates.len(), 0);
}

#[tokio::test]
async fn children_of_a_peer_with_wrong_scores_are_dropped() {
    let (control, exchange, candidates) = exchange();
    let good = batch::pack(GEOMETRY, &here(), false);
    let mut lies = here();
    lies.iter_mut().for_each(|node| node.score = i32::MAX);
    let lies = batch::pack(GEOMETRY, &lies, false);
    let count = here().len() as u64;
    let received = send(&exchange, header(3, 1, 2), vec![lies, good]).await;
    // The peer gets no error, but even the children of its correct batch are dropped.
    assert_eq!(received, Ok(2 * count));
    assert_eq!(candidates.len(), 0);
    let faults = control.faults();
    assert_eq!(faults.len(), 1);
    assert!(faults["w1"].contains("2147483647"), "{faults:?}");
}

#[tokio::test]
async fn single_child_with_too_high_a_score_is_found() {
    let (control, exchange, candidates) = exchange();
    let mut nodes = here();
    let highest = nodes.iter().map(|node| node.score).max().unwrap();
    nodes[3].score = highest + 1;
    let batch = batch::pack(GEOMETRY, &nodes, false);
    let received = send(&exchange, header(3, 1, 2), vec![batch]).await;
    assert_eq!(received, Ok(nodes.len() as u64));
    assert_eq!(candidates.len(), 0);
    assert!(control.faults().contains_key("w1"));
}

/// Returns the children of the empty well that the worker owns, and the piece that produces them.
fn children_of_empty_well() -> (Vec<Node>, Piece) {
    let (emulator, mut children) = (emulator(), Children::new());
    let piece = emulator.expand(&Well::EMPTY, &mut children);
    let mut scores = Vec::new();
    let mut evaluator = Evaluator::new(&emulator, &spec(100).evaluator).unwrap();
    let lines: Vec<u16> = children.lines().iter().copied().map(u16::from).collect();
    evaluator.score(children.wells(), &lines, &mut scores);
    let nodes = children.wells().iter().zip(lines).zip(scores);
    let nodes = nodes.map(|((well, lines), score)| Node {
        score,
        well: NodeWell::pack(GEOMETRY, well),
        lines,
        hint: Well::EMPTY.hash() as u8,
    });
    let layout = ShardLayout::new(1000, 2);
    let here = nodes.filter(|node| layout.shard_of(&node.well) == 0);
    (here.collect(), piece)
}

/// Returns the destinations of a run with the loop rule, whose frontier has `wells` wells, `of_peer` of them on `w1`.
fn loops(wells: u64, of_peer: u64) -> InboundLoops {
    InboundLoops {
        edges: Arc::new(Edges::new(2)),
        gather: None,
        wells_of_peers: Arc::new([("w1".to_owned(), of_peer)].into()),
        quota: Arc::new(ChildQuota::new(GEOMETRY)),
        samples: Arc::default(),
        wells,
    }
}

#[tokio::test]
async fn children_with_wrong_origins_are_found() {
    let (nodes, piece) = children_of_empty_well();
    assert!(nodes.len() > 1);
    let past = Arc::new(Past::new(GEOMETRY, &[Well::EMPTY]));
    let other = Piece::ALL
        .into_iter()
        .find(|other| *other != piece)
        .unwrap();
    let mut other_hint = nodes.clone();
    other_hint.iter_mut().for_each(|node| node.hint ^= 1);
    for (nodes, parent, piece, refused, wrong) in [
        (&nodes, 0, piece, false, false),
        (&nodes, 0, other, false, true),
        (&other_hint, 0, piece, false, true),
        (&nodes, 1, piece, true, false),
    ] {
        let (control, exchange, candidates) = exchange();
        control.open(position(3, 1, 3), &candidates, Some(loops(1, 1)));
        let batch = Batch {
            children: batch::pack(GEOMETRY, nodes, false).into(),
            origins: vec![Origin { parent, piece }; nodes.len()],
        };
        let received = send_batches(&exchange, header(3, 1, 3), vec![batch]).await;
        let kind = received.err().map(|error| error.kind);
        assert_eq!(kind, refused.then_some(LinkErrorKind::BadMessage));
        assert!(control.faults().is_empty());
        control.origin_check(Arc::clone(&past))();
        assert_eq!(
            control.faults().contains_key("w1"),
            wrong,
            "{parent} {piece:?}"
        );
    }
}

#[tokio::test]
async fn peer_cannot_send_more_children_than_its_wells_can_have() {
    let (nodes, piece) = children_of_empty_well();
    // 36 orientations and columns, and ten heights.
    let allowed = 360 / nodes.len();
    for (wells, batches, streams, refused) in [
        (1, allowed, 1, false),
        (1, allowed + 1, 1, true),
        (1, allowed.div_ceil(2) + 1, 2, true),
        (2, allowed + 1, 1, false),
        (0, 1, 1, true),
    ] {
        let (control, exchange, candidates) = exchange();
        control.open(position(3, 1, 3), &candidates, Some(loops(2, wells)));
        let batch = Batch {
            children: batch::pack(GEOMETRY, &nodes, false).into(),
            origins: vec![Origin { parent: 0, piece }; nodes.len()],
        };
        let mut last = Ok(0);
        for _ in 0..streams {
            last = send_batches(&exchange, header(3, 1, 3), vec![batch.clone(); batches]).await;
        }
        let kind = last.err().map(|error| error.kind);
        let expected = refused.then_some(LinkErrorKind::BadMessage);
        assert_eq!(kind, expected, "{wells} wells, {streams} times {batches}");
    }
}

#[test]
fn samples_of_origins_are_bounded_and_keep_the_best_children() {
    let (nodes, piece) = children_of_empty_well();
    let (samples, origins) = (
        OriginSamples::default(),
        vec![Origin { parent: 0, piece }; nodes.len()],
    );
    let past = Past::new(GEOMETRY, &[Well::EMPTY]);
    let check = SpotCheck::new(&emulator(), spec(100).evaluator, balance());
    let best = nodes.iter().max_by_key(|node| node.score).unwrap();
    for batch in 0..30_000_u64 {
        let sample = Sample {
            from: format!("w{}", batch % 7),
            depth: 1,
            random: batch.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        samples.add(&nodes, &origins, &sample);
    }
    assert_eq!(samples.len(), 4096);
    // Half of the checked children are the best ones of their batches.
    assert!(samples.count(best) > 1500, "{}", samples.count(best));
    check.check_origins(&past, &samples);
    assert_eq!((samples.len(), check.faults().len()), (0, 0));
}

#[test]
fn child_whose_lines_do_not_match_its_cells_fails_the_spot_check() {
    let node = here()[0];
    let check = SpotCheck::new(&emulator(), spec(100).evaluator, balance());
    let sample = |from: &str| Sample {
        from: from.to_owned(),
        depth: 1,
        random: 0,
    };
    let mut scorer = None;
    assert!(check.is_good(&mut scorer, &[node], &sample("w1")));
    assert!(check.is_good(&mut scorer, &[], &sample("w1")));
    let lie = Node { lines: 3, ..node };
    assert!(!check.is_good(&mut scorer, &[lie], &sample("w1")));
    assert!(!check.is_good(&mut scorer, &[node], &sample("w1")));
    assert!(check.is_good(&mut scorer, &[node], &sample("w2")));
    assert!(!check.is_good(&mut scorer, &[lie], &sample("w2")));
    let faults = check.faults();
    assert!(faults["w1"].contains("3 lines"), "{faults:?}");
    let error = Failed::from(OrderError::WrongChildren(faults));
    let peers = ["w1".to_owned(), "w2".to_owned()].into();
    assert_eq!(error.kind, FailureKind::WrongChildren { peers });
    assert!(error.reason.contains("; worker w2: "), "{error:?}");
}

#[tokio::test]
async fn invalid_batches_are_refused() {
    let (_control, exchange, candidates) = exchange();
    let whole = batch::pack(GEOMETRY, &here(), false);
    let bad_well = Node {
        well: NodeWell([0xff; 20]),
        ..here()[0]
    };
    for batch in [
        whole[..whole.len() - 1].to_vec(),
        batch::pack(GEOMETRY, &[bad_well], false),
        batch::pack(GEOMETRY, &nodes(200), false),
    ] {
        let refused = send(&exchange, header(3, 1, 2), vec![batch]).await;
        assert_eq!(refused.unwrap_err().kind, LinkErrorKind::BadMessage);
    }
    assert_eq!(candidates.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn stream_waits_for_its_attempt_for_a_limited_time() {
    let (control, exchange, _) = exchange();
    let early = send(&exchange, header(3, 1, 3), Vec::new());
    let begins = async {
        tokio::time::sleep(WAIT / 2).await;
        let layout = ShardLayout::new(1000, 2);
        control.open(
            position(3, 1, 3),
            &Arc::new(Candidates::new(layout, DEFAULT_SIGMAS)),
            None,
        );
    };
    let (early, ()) = tokio::join!(early, begins);
    assert_eq!(early, Ok(0));
    let refused = send(&exchange, header(4, 1, 1), Vec::new()).await;
    assert_eq!(refused.unwrap_err().kind, LinkErrorKind::Transient);
}

#[tokio::test]
async fn silent_stream_ends_with_its_attempt() {
    let (control, exchange, candidates) = exchange();
    let (requests, stream) = mpsc::channel(1);
    let mut responses = exchange.serve(Box::pin(ReceiverStream::new(stream)));
    requests
        .send(Ok(PeerRequest::Header(header(3, 1, 2))))
        .await
        .unwrap();
    assert_eq!(responses.next().await, Some(Ok(PeerResponse::default())));
    control.close();
    while let Some(response) = responses.next().await {
        if let Err(error) = response {
            assert_eq!(error.kind, LinkErrorKind::Superseded);
        }
    }
    assert_eq!(Arc::strong_count(&candidates), 1);
}
