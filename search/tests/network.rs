//! Tests of networks: their values at every SIMD level, the file format, and quiescence. Quiescence
//! searches beyond a well with pieces that clear lines, and gives the well the best value that it finds.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Clears, Emulator, Follow, Geometry, Piece, Rules, SimdLevel, Well};
use hatebeam_search::{
    CLEARS_FEATURES, Evaluator, EvaluatorError, EvaluatorKind, EvaluatorSpec, FEATURES,
    FeatureLister, Frontier, Network, NetworkError, NetworkWeights, Node, Quiescence, ShardLayout,
    Step,
};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, LazyLock};

#[path = "../../fuzz/src/networks.rs"]
mod networks;

const GEOMETRY: Geometry = Geometry::STANDARD;
const COLUMNS: usize = 10;

/// Returns pseudo-random weights, which are large enough for sums to exceed 16 bits.
fn weights(lanes: usize) -> NetworkWeights {
    let mut state = 1u64;
    let mut list = |count: usize, size: u64| -> Vec<i16> {
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            ((state >> 40) % (2 * size + 1)) as i16 - size as i16
        };
        (0..count).map(|_| next()).collect()
    };
    NetworkWeights {
        lanes,
        bias: list(lanes, 1000),
        output: list(lanes, 2000),
        rows: list(FEATURES * lanes, 900),
    }
}

static NETWORKS: LazyLock<[Arc<Network>; 2]> = LazyLock::new(|| {
    [16, 32].map(|lanes| Arc::new(Network::new("a test", &weights(lanes)).unwrap()))
});

/// Children of wells in the benchmark file.
static WELLS: LazyLock<Vec<Well>> = LazyLock::new(|| {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../game/tests/vectors/bench_beam.txt"
    );
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let mut children = Children::new();
    let mut all = vec![Well::EMPTY];
    for line in std::fs::read_to_string(path).unwrap().lines().step_by(9) {
        emulator.expand(&Well::from_hex(GEOMETRY, line).unwrap(), &mut children);
        all.extend_from_slice(children.wells());
    }
    all
});

fn open_cells(well: &Well) -> Vec<[bool; COLUMNS]> {
    let mut open = vec![[false; COLUMNS]; 16];
    let mut stack: Vec<(usize, usize)> = (0..COLUMNS).map(|x| (x, 15)).collect();
    while let Some((x, y)) = stack.pop() {
        if x >= COLUMNS || y >= 16 || open[y][x] || well.rows()[y] >> x & 1 == 1 {
            continue;
        }
        open[y][x] = true;
        stack.extend([
            (x + 1, y),
            (x, y + 1),
            (x.wrapping_sub(1), y),
            (x, y.wrapping_sub(1)),
        ]);
    }
    open
}

/// Returns the active features of a well, computed cell by cell.
fn features_by_definition(emulator: &Emulator, well: &Well) -> Vec<u32> {
    let stack = well.stack_height();
    let open = open_cells(well);
    let filled = |x: usize, y: usize| well.rows()[y] >> x & 1 == 1;
    let enclosed = |x: usize, y: usize| !filled(x, y) && !open[y][x];
    let cells = || (0..16).flat_map(|y| (0..COLUMNS).map(move |x| (x, y)));
    let mut active = Vec::new();
    for y in 0..stack {
        let row = usize::from(well.rows()[y]);
        active.push((stack - 1 - y) * 1024 + row);
        if (0..COLUMNS).all(|x| !enclosed(x, y)) {
            active.push(16 * 1024 + row);
        }
        for first in 0..7 {
            let mut value = 0;
            for bit in 0..12 {
                let (x, y) = (first + bit / 3, y + bit % 3);
                if y < stack && (filled(x, y) || enclosed(x, y)) {
                    value |= 1 << bit;
                }
            }
            active.push(17 * 1024 + first * 4096 + value);
        }
    }
    let lowest = (0..16).find(|&y| open[y].contains(&true)).unwrap_or(16);
    let covered = cells().filter(|&(x, y)| !filled(x, y) && (y..16).any(|above| filled(x, above)));
    let rows = (0..16).filter(|&y| (0..COLUMNS).any(|x| enclosed(x, y)));
    let clears = emulator.clears(well, 0, None);
    let counts = [
        (17 * 17, stack * 17 + lowest),
        (17, rows.count()),
        (64, cells().filter(|&(x, y)| enclosed(x, y)).count()),
        (64, covered.count()),
        (128, usize::from(clears.pieces)),
        (128, usize::from(clears.several)),
        (81, well.filled() as usize / 2),
    ];
    let mut first = 17 * 1024 + 7 * 4096;
    for (values, value) in counts {
        active.push(first + value.min(values - 1));
        first += values;
    }
    assert_eq!(first, FEATURES);
    active.sort_unstable();
    active.into_iter().map(|feature| feature as u32).collect()
}

/// Returns the value of a well with these active features, computed lane by lane.
fn value_by_definition(weights: &NetworkWeights, features: &[u32]) -> i32 {
    let mut value = 0;
    for lane in 0..weights.lanes {
        let rows = features
            .iter()
            .map(|&at| weights.rows[at as usize * weights.lanes + lane]);
        let sum = rows.fold(weights.bias[lane], i16::wrapping_add);
        let limit = if lane == 0 { i16::MAX } else { 1024 };
        value += i32::from(sum.clamp(-limit, limit)) * i32::from(weights.output[lane]);
    }
    value
}

/// Networks whose values do not depend on the pieces that can clear lines.
static WITHOUT_CLEARS: LazyLock<[Arc<Network>; 2]> = LazyLock::new(|| {
    [16, 32].map(|lanes| {
        let mut weights = weights(lanes);
        weights.rows[CLEARS_FEATURES.start * lanes..CLEARS_FEATURES.end * lanes].fill(0);
        Arc::new(Network::new("a test", &weights).unwrap())
    })
});

#[test]
fn network_sees_clears_if_a_weight_depends_on_them() {
    assert!(NETWORKS.iter().all(|network| network.sees_clears()));
    assert!(WITHOUT_CLEARS.iter().all(|network| !network.sees_clears()));
    for feature in [CLEARS_FEATURES.start, CLEARS_FEATURES.end - 1] {
        let mut weights = WITHOUT_CLEARS[1].weights();
        weights.rows[feature * 32 + 31] = -1;
        assert!(Network::new("a test", &weights).unwrap().sees_clears());
    }
}

#[test]
fn features_match_the_definition() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for sees_clears in [true, false] {
        let mut lister = FeatureLister::new(&emulator, sees_clears);
        let mut wells = WELLS.iter();
        lister.list(&WELLS, |features| {
            let mut features = features.to_vec();
            features.sort_unstable();
            let well = wells.next().unwrap();
            let mut expected = features_by_definition(&emulator, well);
            if !sees_clears {
                expected.retain(|&feature| !CLEARS_FEATURES.contains(&(feature as usize)));
            }
            assert_eq!(features, expected, "{well:?}");
        });
        assert!(wells.next().is_none());
    }
}

#[test]
fn values_match_the_definition_at_every_level() {
    for network in NETWORKS.iter().chain(&*WITHOUT_CLEARS) {
        let weights = network.weights();
        let emulator = Emulator::new(GEOMETRY, Rules::default());
        let expected: Vec<i32> = WELLS
            .iter()
            .map(|well| value_by_definition(&weights, &features_by_definition(&emulator, well)))
            .collect();
        for level in SimdLevel::available() {
            let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
            let mut evaluator =
                Evaluator::with_network(&emulator, Arc::clone(network), Quiescence::Off);
            let mut scores = Vec::new();
            evaluator.score(&WELLS, &vec![0; WELLS.len()], &mut scores);
            assert_eq!(scores, expected, "{level}");
            assert_eq!(evaluator.leaves(), &WELLS[..]);
        }
    }
}

/// Checks the scores of all wells from several floors. Returns the number of scores below their floors that were lower
/// than the exact ones.
fn check_floors(mut evaluator: Evaluator) -> usize {
    let lines = vec![0; WELLS.len()];
    let (mut exact, mut scores) = (Vec::new(), Vec::new());
    evaluator.score(&WELLS, &lines, &mut exact);
    let leaves = evaluator.leaves().to_vec();
    let mut sorted = exact.clone();
    sorted.sort_unstable();
    let mut skipped = 0;
    for tenth in [1, 5, 9] {
        let floor = sorted[sorted.len() * tenth / 10];
        evaluator.score_from(floor, &WELLS, &lines, &mut scores);
        for (index, (&score, &exact)) in scores.iter().zip(&exact).enumerate() {
            let is_lower = score < exact && exact < floor;
            assert!(score == exact || is_lower, "{score} != {exact}");
            assert!(exact < floor || evaluator.leaves()[index] == leaves[index]);
            skipped += usize::from(is_lower);
        }
    }
    skipped
}

#[test]
fn scores_from_a_floor_are_exact_or_below_the_floor() {
    let shipped = Network::shipped("network").unwrap();
    let networks = NETWORKS.iter().chain(&*WITHOUT_CLEARS);
    let networks = networks.map(|network| (network, 0));
    for (network, least_skipped) in networks.chain([(shipped, 100)]) {
        for level in SimdLevel::available() {
            let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
            for quiescence in Quiescence::ALL {
                let evaluator = Evaluator::with_network(&emulator, Arc::clone(network), quiescence);
                let skipped = check_floors(evaluator);
                assert!(
                    skipped >= least_skipped,
                    "{level}, {quiescence:?}: {skipped}"
                );
            }
        }
    }
}

/// Returns the score of a well under [`Quiescence::First`], and the leaf (the well with this score).
/// Does not limit the number of wells.
fn quiescence_by_definition(
    emulator: &Emulator,
    evaluator: &mut Evaluator,
    well: &Well,
) -> (i32, Well) {
    let mut scores = Vec::new();
    evaluator.score(&[*well], &[0], &mut scores);
    let mut best = (scores[0], *well);
    if let Some(piece) = emulator.clears(well, 0, None).first() {
        let mut children = Children::new();
        emulator.children(well, piece, &mut children);
        for (child, _) in children.iter().filter(|(_, lines)| *lines > 0) {
            let reached = quiescence_by_definition(emulator, evaluator, child);
            if reached.0 > best.0 {
                best = reached;
            }
        }
    }
    best
}

#[test]
fn quiescence_gives_the_best_value_and_its_leaf() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for network in [&NETWORKS[0], &WITHOUT_CLEARS[0]] {
        let mut plain = Evaluator::with_network(&emulator, Arc::clone(network), Quiescence::Off);
        let mut first = Evaluator::with_network(&emulator, Arc::clone(network), Quiescence::First);
        let wells: Vec<Well> = WELLS.iter().step_by(11).copied().collect();
        let mut scores = Vec::new();
        first.score(&wells, &vec![0; wells.len()], &mut scores);
        let mut reached = 0;
        for ((well, &score), leaf) in wells.iter().zip(&scores).zip(first.leaves()) {
            let (expected, _) = quiescence_by_definition(&emulator, &mut plain, well);
            assert_eq!(score, expected, "{well:?}");
            let mut of_leaf = Vec::new();
            plain.score(&[*leaf], &[0], &mut of_leaf);
            assert_eq!(of_leaf, [score], "{well:?}");
            reached += usize::from(leaf != well);
        }
        assert!(reached > 40, "only {reached} wells reach another well");
    }
}

type Choose = fn(Clears) -> Option<Piece>;

/// Searches beyond one well like quiescence, with the limit of 256 additional wells. Returns the
/// score, the leaf and the number of additional wells.
fn limited_quiescence(
    emulator: &Emulator,
    plain: &mut Evaluator,
    choose: Choose,
    well: &Well,
) -> (i32, Well, usize) {
    let mut queue = vec![(*well, 0)];
    let (mut best, mut leaf) = (i32::MIN, *well);
    let (mut scores, mut children) = (Vec::new(), Children::new());
    let mut at = 0;
    while let Some(&(well, lines)) = queue.get(at) {
        plain.score(&[well], &[lines], &mut scores);
        if scores[0] > best {
            (best, leaf) = (scores[0], well);
        }
        let children = &mut children;
        if choose(emulator.clears(&well, 0, Some(Follow { choose, children }))).is_some() {
            let room = 257 - queue.len();
            let more = children.iter().take(room);
            queue.extend(more.map(|(well, more)| (*well, lines + u16::from(more))));
        }
        at += 1;
    }
    (best, leaf, queue.len() - 1)
}

/// Returns children of the wells in a beam. The beam uses quiescence, so that many of the children can
/// clear lines with many consecutive pieces.
fn children_with_chains(emulator: &Emulator) -> Vec<Well> {
    let spec = EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::First);
    let layout = ShardLayout::local(60);
    let step = Step::new(emulator, spec, layout, 1).unwrap();
    let root = Node::first(GEOMETRY, &Well::EMPTY, 0);
    let mut frontier = Frontier::new(0, [root], layout);
    let (mut children, mut wells) = (Children::new(), Vec::new());
    for depth in 0..100 {
        let next = step.run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0));
        frontier = next.unwrap().0;
        if depth % 10 == 9 {
            for node in frontier.nodes() {
                emulator.expand(&node.well.unpack(GEOMETRY).unwrap(), &mut children);
                wells.extend_from_slice(children.wells());
            }
        }
    }
    wells
}

#[test]
fn quiescence_of_batch_matches_quiescence_of_each_well() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let wells = children_with_chains(&emulator);
    let shipped = EvaluatorKind::Network(Network::shipped("network").unwrap().digest());
    let settings: [(Quiescence, Choose); 2] = [
        (Quiescence::First, Clears::first),
        (Quiescence::Single, Clears::single),
    ];
    for kind in [EvaluatorKind::Patterns, EvaluatorKind::Knewjade, shipped] {
        let evaluator = |quiescence| {
            let spec = EvaluatorSpec::new(kind, quiescence);
            Evaluator::new(&emulator, &spec).unwrap()
        };
        let mut plain = evaluator(Quiescence::Off);
        for (quiescence, choose) in settings {
            let mut batch = evaluator(quiescence);
            let mut scores = Vec::new();
            batch.score(&wells, &vec![0; wells.len()], &mut scores);
            let (mut full, mut all) = (0, 0);
            for ((well, &score), leaf) in wells.iter().zip(&scores).zip(batch.leaves()) {
                let (expected, of, added) = limited_quiescence(&emulator, &mut plain, choose, well);
                assert_eq!(
                    (score, *leaf),
                    (expected, of),
                    "{kind:?} {quiescence:?} {well:?}"
                );
                full += u32::from(added == 256);
                all += added;
            }
            assert!(full > 0 && all > wells.len(), "{full} of {all}");
        }
    }
}

#[test]
fn cached_sums_do_not_change_scores() {
    let shipped = EvaluatorKind::Network(Network::shipped("network").unwrap().digest());
    for level in SimdLevel::available() {
        let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
        for kind in [EvaluatorKind::Patterns, shipped] {
            let spec = EvaluatorSpec::new(kind, Quiescence::Off);
            let evaluator = || Evaluator::new(&emulator, &spec).unwrap();
            let mut scores = Vec::new();
            let lines = vec![3; WELLS.len()];
            evaluator().score(&WELLS, &lines, &mut scores);
            for (well, score) in WELLS.iter().zip(&scores).step_by(5) {
                let mut alone = Vec::new();
                // The cache of a new evaluator is empty.
                evaluator().score(&[*well], &[3], &mut alone);
                assert_eq!(alone, [*score], "{kind:?} {level} {well:?}");
            }
        }
    }
}

#[test]
fn network_is_default_for_ten_columns() {
    let network = Network::shipped(Network::DEFAULT).unwrap();
    let network = EvaluatorKind::Network(network.digest());
    for (columns, rows, expected) in [
        (10, 16, network),
        (10, 5, network),
        (9, 16, EvaluatorKind::Patterns),
        (12, 13, EvaluatorKind::Patterns),
    ] {
        let geometry = Geometry::new(columns, rows).unwrap();
        let default = EvaluatorKind::default_for(geometry);
        assert_eq!(default, expected, "{columns} x {rows}");
    }
}

#[test]
fn network_file_round_trips() {
    for network in NETWORKS.iter() {
        let bytes = network.encode();
        let again = Network::decode(&bytes).unwrap();
        assert_eq!(again.encode(), bytes);
        assert_eq!(again.digest(), network.digest());
        assert_eq!(again.header(), "a test");
        assert_eq!(again.weights(), weights(network.lanes()));
        assert_eq!(bytes[bytes.len() - 32..], network.digest().0);
    }
}

#[test]
fn network_file_has_documented_format() {
    let network = &NETWORKS[0];
    let bytes = network.encode();
    let begin = b"hatenet\n\x01\0\0\0\x01\0\0\0\x10\0\0\0\x03\xb7\0\0\x06\0\0\0a test";
    assert_eq!(&bytes[..begin.len()], begin);
    let NetworkWeights {
        bias, output, rows, ..
    } = weights(16);
    let all = bias.iter().chain(&output).chain(&rows);
    let all: Vec<u8> = all.flat_map(|weight| weight.to_le_bytes()).collect();
    assert_eq!(bytes[begin.len()..bytes.len() - 32], all);
    let pinned = "ad04634c1adb598fee92cb41299bea5f9be8899b936c38a3f256d0dbb22943c6";
    assert_eq!(network.digest().to_string(), pinned);
}

#[test]
fn network_is_found_by_digest_while_registered() {
    let mut other = weights(16);
    other.bias[0] = 77;
    let network = Network::new("registered", &other).unwrap();
    let spec = EvaluatorSpec::new(EvaluatorKind::Network(network.digest()), Quiescence::Off);
    let json = serde_json::to_value(spec).unwrap();
    assert_eq!(json["kind"]["network"], network.digest().to_string());
    assert_eq!(serde_json::from_value::<EvaluatorSpec>(json).unwrap(), spec);
    for bad in ["", "12", &"g".repeat(64), &"A".repeat(64), &"0".repeat(66)] {
        let json = format!(r#"{{"network":"{bad}"}}"#);
        assert!(
            serde_json::from_str::<EvaluatorKind>(&json).is_err(),
            "{bad}"
        );
    }

    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let error = Evaluator::new(&emulator, &spec).err().unwrap();
    assert_eq!(error, EvaluatorError::UnknownNetwork(network.digest()));
    let mut expected = Vec::new();
    let direct = Arc::new(Network::new("registered", &other).unwrap());
    let mut evaluator = Evaluator::with_network(&emulator, direct, Quiescence::Off);
    evaluator.score(&WELLS[..100], &[0; 100], &mut expected);
    let registered = Network::register(network);
    let mut scores = Vec::new();
    let mut evaluator = Evaluator::new(&emulator, &spec).unwrap();
    evaluator.score(&WELLS[..100], &[0; 100], &mut scores);
    assert_eq!(scores, expected);
    drop((registered, evaluator));
    let error = Evaluator::new(&emulator, &spec).err().unwrap();
    assert!(matches!(error, EvaluatorError::UnknownNetwork(_)));

    for name in Network::SHIPPED {
        let digest = Network::shipped(name).unwrap().digest();
        assert!(digest.is_shipped());
        assert_eq!(Network::find(digest).unwrap().digest(), digest);
    }
}

#[test]
fn weights_with_unsupported_sizes_are_rejected() {
    let with = |change: fn(&mut NetworkWeights)| {
        let mut weights = weights(16);
        change(&mut weights);
        Network::new("", &weights).unwrap_err()
    };
    assert_eq!(with(|weights| weights.lanes = 24), NetworkError::Lanes(24));
    let missing = with(|weights| weights.bias.truncate(15));
    assert_eq!(
        missing,
        NetworkError::Weights {
            expected: 16,
            found: 15
        }
    );
    let long = "x".repeat(hatebeam_search::MAX_HEADER_BYTES + 1);
    assert_eq!(
        Network::new(&long, &weights(16)).unwrap_err(),
        NetworkError::Header
    );
}

#[test]
fn file_with_unsupported_header_is_rejected() {
    let bytes = NETWORKS[0].encode();
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        Network::decode(&bytes).unwrap_err()
    };
    assert_eq!(with(0, b'x'), NetworkError::Magic);
    assert_eq!(with(8, 9), NetworkError::Version { found: 9 });
    assert_eq!(with(12, 9), NetworkError::Architecture { found: 9 });
    assert_eq!(with(16, 17), NetworkError::Lanes(17));
    let features = FEATURES - FEATURES % 256 + 1;
    assert_eq!(with(20, 1), NetworkError::Features(features));
    assert_eq!(with(27, 0x7f), NetworkError::Header);
    assert!(matches!(with(24, 7), NetworkError::Length { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn changed_byte_is_detected(at in any::<prop::sample::Index>(), change in 1u8..) {
        let mut bytes = NETWORKS[0].encode();
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(Network::decode(&bytes).is_err());
    }

    #[test]
    fn truncated_file_is_rejected(at in any::<prop::sample::Index>()) {
        let bytes = NETWORKS[0].encode();
        prop_assert!(Network::decode(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_rejected_or_round_trip(data in prop::collection::vec(any::<u8>(), 0..200)) {
        networks::network(&data);
        // A valid beginning leads the parser further into the file.
        let mut bytes = NETWORKS[0].encode();
        bytes.truncate(24);
        bytes.extend_from_slice(&data);
        networks::network(&bytes);
    }
}
