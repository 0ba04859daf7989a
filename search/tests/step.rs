//! The step against a brute force that keeps every child, and against itself with other threads, SIMD
//! levels and room.

#![allow(clippy::unwrap_used)]

use hatebeam_game::{Children, Emulator, Geometry, Rules, SimdLevel, Well};
use hatebeam_search::{
    Cancelled, Candidates, ChildSink, CutSearch, DEFAULT_SIGMAS, DIGIT_VALUES, Digest, Evaluator,
    EvaluatorKind, EvaluatorSpec, Exchange, Frontier, Node, NodeWell, Owner, Quiescence,
    ShardLayout, SortBuffer, Step, Ties, Weights,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

const GEOMETRY: Geometry = Geometry::STANDARD;

fn spec(kind: EvaluatorKind, quiescence: Quiescence) -> EvaluatorSpec {
    EvaluatorSpec {
        kind,
        weights: Weights::default(),
        quiescence,
    }
}

fn root() -> Node {
    Node {
        score: 0,
        well: NodeWell::pack(GEOMETRY, &Well::EMPTY),
        lines: 0,
        hint: 0,
    }
}

fn step(step: &Step, frontier: &Frontier) -> Frontier {
    step.run(frontier, &AtomicBool::new(false), &AtomicU64::new(0))
        .unwrap()
        .0
}

/// All children of all wells, merged and sorted in full.
fn brute_force(
    emulator: &Emulator,
    spec: &EvaluatorSpec,
    from: &[Node],
    width: usize,
) -> Vec<Node> {
    let mut evaluator = Evaluator::new(emulator, spec).unwrap();
    let (mut children, mut scores) = (Children::new(), Vec::new());
    let mut best: HashMap<NodeWell, Node> = HashMap::new();
    for parent in from {
        let well = parent.well.unpack(GEOMETRY).unwrap();
        emulator.expand(&well, &mut children);
        for (child, lines) in children.iter() {
            let lines = parent.lines + u16::from(lines);
            evaluator.score(&[*child], &[lines], &mut scores);
            let node = Node {
                score: scores[0],
                well: NodeWell::pack(GEOMETRY, child),
                lines,
                hint: well.hash() as u8,
            };
            let here = best.entry(node.well).or_insert(node);
            if (node.lines, u8::MAX - node.hint) > (here.lines, u8::MAX - here.hint) {
                *here = node;
            }
        }
    }
    let mut all: Vec<Node> = best.into_values().collect();
    all.sort_by_key(|node| {
        let ties = node.well.hash() as u32;
        (std::cmp::Reverse((node.score, ties)), node.well)
    });
    all.truncate(width);
    all.sort_by_key(|node| node.well);
    all
}

fn sorted(frontier: &Frontier) -> Vec<Node> {
    let mut nodes: Vec<Node> = frontier.nodes().copied().collect();
    nodes.sort_by_key(|node| node.well);
    nodes
}

#[test]
fn a_step_is_the_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for kind in EvaluatorKind::ALL {
        for quiescence in [Quiescence::Off, Quiescence::Forced] {
            for width in [1, 37, 5000] {
                let spec = spec(kind, quiescence);
                let fast = Step::new(&emulator, spec, ShardLayout::local(width), 2).unwrap();
                let mut frontier = Frontier::new(0, [root()], ShardLayout::local(width));
                for _ in 0..14 {
                    let expected = brute_force(&emulator, &spec, &sorted(&frontier), width);
                    frontier = step(&fast, &frontier);
                    assert_eq!(
                        sorted(&frontier),
                        expected,
                        "{kind:?} {quiescence:?} {width} depth {}",
                        frontier.depth
                    );
                    for part in &frontier.shards {
                        assert!(part.is_sorted_by_key(|node| node.well));
                    }
                }
            }
        }
    }
}

/// What is left of a full table may be just as many wells as are wanted, or one more, or one less.
#[test]
fn a_step_of_any_width_is_the_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = spec(EvaluatorKind::Knewjade, Quiescence::Off);
    for width in (1..=300).step_by(7) {
        let fast = Step::new(&emulator, spec, ShardLayout::local(width), 2).unwrap();
        let mut frontier = Frontier::new(0, [root()], ShardLayout::local(width));
        for _ in 0..20 {
            let expected = brute_force(&emulator, &spec, &sorted(&frontier), width);
            frontier = step(&fast, &frontier);
            assert_eq!(sorted(&frontier), expected, "{width}, {}", frontier.depth);
        }
    }
}

#[test]
fn threads_instructions_and_room_change_nothing() {
    let spec = spec(EvaluatorKind::Knewjade, Quiescence::Forced);
    let digests = |level: SimdLevel, threads: usize, sigmas: f64| {
        let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
        let fast = Step::new(&emulator, spec, ShardLayout::local(6000), threads)
            .unwrap()
            .with_sigmas(sigmas);
        let mut frontier = Frontier::new(0, [root()], ShardLayout::local(6000));
        let mut digests = Vec::new();
        let mut repeats = 0;
        for _ in 0..25 {
            let (next, stats) = fast
                .run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0))
                .unwrap();
            repeats += stats.repeats;
            frontier = next;
            digests.push(frontier.digest());
        }
        (digests, repeats)
    };
    let best = SimdLevel::available().last().unwrap();
    let (expected, repeats) = digests(best, 1, 8.0);
    assert_eq!(repeats, 0);
    for threads in [2, 8] {
        assert_eq!(digests(best, threads, 8.0).0, expected, "{threads} threads");
    }
    for level in SimdLevel::available() {
        assert_eq!(digests(level, 2, 8.0).0, expected, "{level}");
    }
    let (tight, repeats) = digests(best, 2, -3.0);
    assert!(repeats > 0, "no depth was done twice");
    assert_eq!(tight, expected);
}

#[test]
fn a_step_can_be_stopped() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = spec(EvaluatorKind::Plain, Quiescence::Off);
    let fast = Step::new(&emulator, spec, ShardLayout::local(10), 1).unwrap();
    let frontier = Frontier::new(0, [root()], ShardLayout::local(10));
    let stopped = fast.run(&frontier, &AtomicBool::new(true), &AtomicU64::new(0));
    assert!(stopped.is_err());
}

#[test]
fn weights_out_of_range_are_refused() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for bad in [f64::NAN, f64::INFINITY, -1e9] {
        let mut spec = spec(EvaluatorKind::Knewjade, Quiescence::Off);
        spec.weights.enclosed = bad;
        let error = Evaluator::new(&emulator, &spec).err().unwrap();
        assert_eq!(error.name, "enclosed");
    }
}

/// Machines that own shards and hand each other children, in one process.
struct Mesh<'a> {
    /// What each has.
    all: &'a [Candidates],
    from: usize,
}

impl ChildSink for Mesh<'_> {
    fn send(&self, peer: u16, children: &[Node]) -> Result<(), Cancelled> {
        let to = &self.all[usize::from(peer)];
        to.offer_nodes(children, &mut SortBuffer::default());
        let from = &self.all[self.from];
        for shard in 0..to.layout().shards() {
            if shard % self.all.len() == usize::from(peer) {
                from.raise_floor(shard, to.floor(shard));
            }
        }
        Ok(())
    }
}

#[test]
fn shards_and_machines_change_nothing() {
    const WIDTH: usize = 6000;
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    for kind in [EvaluatorKind::Patterns, EvaluatorKind::PlainHoles] {
        let spec = spec(kind, Quiescence::Off);
        let expected: Vec<_> = {
            let alone = Step::new(&emulator, spec, ShardLayout::local(WIDTH), 1).unwrap();
            let mut frontier = Frontier::new(0, [root()], ShardLayout::local(WIDTH));
            let next = |_| {
                frontier = step(&alone, &frontier);
                frontier.digest()
            };
            (0..15).map(next).collect()
        };
        for (machines, shards) in [(1, 1), (2, 7), (3, 64), (5, 5), (2, 1)] {
            let layout = ShardLayout::new(WIDTH, shards);
            let step = Step::new(&emulator, spec, layout, 2).unwrap();
            let owner = |shard: usize| shard % machines;
            let mut frontiers: Vec<Frontier> = (0..machines)
                .map(|at| {
                    let mine = (owner(layout.shard_of(&root().well)) == at).then(root);
                    Frontier::new(0, mine, layout)
                })
                .collect();
            for (depth, expected) in expected.iter().enumerate() {
                let all: Vec<Candidates> = (0..machines)
                    .map(|_| Candidates::new(layout, DEFAULT_SIGMAS))
                    .collect();
                for (at, frontier) in frontiers.iter().enumerate() {
                    let owners: Vec<Owner> = (0..shards)
                        .map(|shard| match owner(shard) {
                            here if here == at => Owner::Here,
                            peer => Owner::Peer(peer as u16),
                        })
                        .collect();
                    let exchange = Exchange {
                        owners: &owners,
                        sink: &Mesh {
                            all: &all,
                            from: at,
                        },
                        peers: machines as u16,
                    };
                    step.expand(frontier, &all[at], Some(exchange), &cancel, &progress)
                        .unwrap();
                }
                let mut search = CutSearch::new(WIDTH);
                while let Some(query) = search.query() {
                    let mut counts = vec![0; DIGIT_VALUES];
                    for candidates in &all {
                        let more = candidates.count(query, 2);
                        counts.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
                    }
                    search.answer(&counts);
                }
                let mut cut = search.cut();
                assert!(!all.iter().any(|here| here.dropped_above(cut.rank)));
                if let Ties::First(count) = cut.ties {
                    let mut tied: Vec<NodeWell> =
                        all.iter().flat_map(|here| here.tied(cut.rank)).collect();
                    tied.sort_unstable();
                    tied.truncate(count as usize);
                    cut.ties = Ties::Listed(tied);
                }
                let mut digest = Digest::default();
                for (candidates, frontier) in all.iter().zip(&mut frontiers) {
                    let depth = frontier.depth + 1;
                    let shards = candidates.select(&cut, 2);
                    *frontier = Frontier { depth, shards };
                    digest.join(frontier.digest());
                }
                assert_eq!(digest, *expected, "{machines} {shards} depth {depth}");
            }
        }
    }
}
