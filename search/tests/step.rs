//! Compares a [`Step`] of the beam search with a brute-force version that keeps every child. Also checks
//! that the result does not depend on the number of threads, shards or machines, the SIMD level, or the
//! size of the tables.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{Children, Emulator, Geometry, Piece, Rules, SimdLevel, Well};
use hatebeam_search::{
    Cancelled, Candidates, ChangedPiece, ChildSink, Cut, CutSearch, DEFAULT_SIGMAS, Digest,
    DigitCounts, Edges, Evaluator, EvaluatorKind, EvaluatorSpec, Exchange, Frontier, Loops,
    Network, Node, NodeWell, Origin, Owner, Past, Quiescence, RecentCuts, RescoreProgress,
    ShardLayout, SortBuffer, Step, Targets, Ties, gathered_layout, shard_starts,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const GEOMETRY: Geometry = Geometry::STANDARD;

fn root() -> Node {
    root_of(GEOMETRY)
}

fn root_of(geometry: Geometry) -> Node {
    Node::first(geometry, &Well::EMPTY, 0)
}

fn step(step: &Step, frontier: &Frontier) -> Frontier {
    step.run(frontier, &AtomicBool::new(false), &AtomicU64::new(0))
        .unwrap()
        .0
}

/// Returns the `width` best children of `from`, selected by merging and sorting all children.
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
    best_of(width, best.into_values().collect())
}

/// Returns the `width` best nodes, in the order of their wells.
fn best_of(width: usize, mut all: Vec<Node>) -> Vec<Node> {
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
fn step_matches_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for kind in EvaluatorKind::ALL {
        for quiescence in [Quiescence::Off, Quiescence::Forced] {
            for width in [1, 37, 5000] {
                let spec = EvaluatorSpec::new(kind, quiescence);
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

/// Digests of the frontiers at depth 40 with 60 wells: network, quiescence, digest.
const NETWORK_DIGESTS: [&str; 14] = [
    "network off 4e8a809e7a50a86758d63334ed4dc0b5",
    "network first-of-best fffe30cd411230a784f5fd400755d861",
    "taught off 2e74c535552a1bba57b939d44a582441",
    "taught first-of-best b46a8268e6bd88243aaf8dfa37577fff",
    "chains off 4645dcae833eaa238754c6932be1f072",
    "chains first-of-best 590644076620314a49310668fcf6786f",
    "selftaught off a763c13e6819fe75b19aff391f511a80",
    "selftaught first-of-best e6bbfac96de6f1cf6039cbd8572f25b3",
    "relay off 536232690144c3aa44a590e3358d6d29",
    "relay first-of-best 7d15052332ed515c721816c0ed8a76bc",
    "foresight off 6d472ebaf4f28898ba1bd85047fd1d38",
    "foresight first-of-best 8369971ca1c8eda2a8defa6b503e3a8e",
    "outlook off 0f75d5f4f5ae0750c9329306efd21b41",
    "outlook first-of-best 466b1aefa3c537544ae3d75fa78497da",
];

/// The networks have no part in the fingerprint of the search, so only this test finds an unintended change of their scores.
#[test]
fn frontiers_of_networks_do_not_change() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let mut digests = Vec::new();
    for name in Network::SHIPPED {
        let kind = EvaluatorKind::Network(Network::shipped(name).unwrap().digest());
        for quiescence in [Quiescence::Off, Quiescence::FirstOfBest] {
            let (spec, layout) = (
                EvaluatorSpec::new(kind, quiescence),
                ShardLayout::new(60, 4),
            );
            let search = Step::new(&emulator, spec, layout, 2).unwrap();
            let mut frontier = Frontier::new(0, [root()], layout);
            (0..40).for_each(|_| frontier = step(&search, &frontier));
            let digest = frontier.digest();
            digests.push(format!("{name} {} {digest}", quiescence.name()));
        }
    }
    assert_eq!(digests, NETWORK_DIGESTS);
}

#[test]
fn step_with_two_cuts_matches_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for kind in [EvaluatorKind::Knewjade, EvaluatorKind::Patterns] {
        for (width, sigmas) in [(1, 8.0), (37, 8.0), (700, 8.0), (700, -3.0)] {
            let spec = EvaluatorSpec::new(kind, Quiescence::FirstOfBest);
            let layout = ShardLayout::new(width, 4);
            let fast = Step::new(&emulator, spec, layout, 2).unwrap();
            let fast = fast.with_sigmas(sigmas);
            let own = EvaluatorSpec::new(kind, Quiescence::Off);
            let mut first =
                Evaluator::new(&emulator, &EvaluatorSpec::new(kind, Quiescence::First)).unwrap();
            let mut frontier = Frontier::new(0, [root()], layout);
            let mut changed = 0;
            for _ in 0..16 {
                let mut expected = brute_force(&emulator, &own, &sorted(&frontier), 3 * width);
                let by_own_scores = best_of(width, expected.clone());
                let mut scores = Vec::new();
                for node in &mut expected {
                    let well = node.well.unpack(GEOMETRY).unwrap();
                    first.score(&[well], &[node.lines], &mut scores);
                    node.score = scores[0];
                }
                let expected = best_of(width, expected);
                frontier = step(&fast, &frontier);
                assert_eq!(
                    sorted(&frontier),
                    expected,
                    "{kind:?} {width} depth {}",
                    frontier.depth
                );
                let wells = |nodes: &[Node]| nodes.iter().map(|node| node.well).collect::<Vec<_>>();
                changed += u32::from(wells(&expected) != wells(&by_own_scores));
            }
            assert!(changed > 0 || width == 1, "the second cut changed nothing");
        }
    }
}

#[test]
fn step_with_any_width_matches_brute_force() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off);
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
fn digest_does_not_depend_on_threads_simd_level_or_room() {
    let repeats = check_digest_independence(Quiescence::Forced, 6000);
    assert!(repeats > 0, "no depth was repeated");
    // `Quiescence::First` scores ten times as many wells, so the width is smaller. With this width,
    // there is a single table with room for the whole frontier, so no depth is repeated.
    check_digest_independence(Quiescence::First, 300);
    check_digest_independence(Quiescence::FirstOfBest, 2500);
}

/// Checks that the digests do not depend on threads, SIMD levels or the room in the tables. Returns
/// the number of repeats with little room in the tables.
fn check_digest_independence(quiescence: Quiescence, width: usize) -> u32 {
    let spec = EvaluatorSpec::new(EvaluatorKind::Knewjade, quiescence);
    let digests = |level: SimdLevel, threads: usize, sigmas: f64| {
        let emulator = Emulator::with_level(GEOMETRY, Rules::default(), level).unwrap();
        let fast = Step::new(&emulator, spec, ShardLayout::local(width), threads)
            .unwrap()
            .with_sigmas(sigmas);
        let mut frontier = Frontier::new(0, [root()], ShardLayout::local(width));
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
    assert_eq!(tight, expected);
    repeats
}

#[test]
fn floor_does_not_change_the_frontier() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let cancel = AtomicBool::new(false);
    for (kind, quiescence, width) in [
        (EvaluatorKind::Patterns, Quiescence::Off, 200),
        (EvaluatorKind::Patterns, Quiescence::First, 20),
        (EvaluatorKind::Knewjade, Quiescence::Off, 4200),
    ] {
        let layout = ShardLayout::local(width);
        let fast = Step::new(&emulator, EvaluatorSpec::new(kind, quiescence), layout, 2).unwrap();
        let mut frontier = Frontier::new(0, [root()], layout);
        let mut cuts = RecentCuts::default();
        let (mut estimates, mut repeats) = (0, 0);
        for _ in 0..24 {
            let (next, _) = fast.run(&frontier, &cancel, &AtomicU64::new(0)).unwrap();
            let lowest = next.nodes().map(|node| node.score).min().unwrap();
            let at_cut = u64::from(lowest as u32 ^ 1 << 31) << 32;
            // A floor is the lowest rank that the step accepts. Only a floor above the rank of the cut
            // forces the step to repeat the depth.
            let floors = [at_cut, at_cut + (1 << 31), u64::MAX];
            for floor in floors.into_iter().map(Some).chain([cuts.floor()]) {
                let parents = Arc::new(frontier.clone());
                let progress = AtomicU64::new(0);
                let (found, stats) = fast.advance(parents, floor, &cancel, &progress).unwrap();
                assert_eq!(found.digest(), next.digest());
                assert_eq!(progress.into_inner(), frontier.len() as u64);
                assert_eq!(
                    stats.repeats > 0,
                    floor.is_some_and(|floor| floor > rank_of_cut(&next, width))
                );
            }
            if let Some(floor) = cuts.floor() {
                estimates += 1;
                repeats += u32::from(floor > rank_of_cut(&next, width));
            }
            cuts.add(next.len() as u64, lowest, width as u64);
            frontier = next;
        }
        assert!(
            estimates > 10 && repeats * 5 < estimates,
            "{repeats} of {estimates}"
        );
    }
}

/// Returns the lowest rank in a frontier, or 0 if the frontier has fewer wells than `width`.
fn rank_of_cut(frontier: &Frontier, width: usize) -> u64 {
    if frontier.len() < width {
        return 0;
    }
    let rank = |node: &Node| {
        u64::from(node.score as u32 ^ 1 << 31) << 32 | (node.well.hash() & 0xffff_ffff)
    };
    frontier.nodes().map(rank).min().unwrap()
}

#[test]
fn cancelled_step_returns_error() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    let spec = EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off);
    let fast = Step::new(&emulator, spec, ShardLayout::local(10), 1).unwrap();
    let frontier = Frontier::new(0, [root()], ShardLayout::local(10));
    let stopped = fast.run(&frontier, &AtomicBool::new(true), &AtomicU64::new(0));
    assert!(stopped.is_err());
}

#[test]
fn weight_out_of_range_is_rejected() {
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for bad in [f64::NAN, f64::INFINITY, -1e9] {
        let mut spec = EvaluatorSpec::new(EvaluatorKind::Knewjade, Quiescence::Off);
        spec.weights.enclosed = bad;
        let error = Evaluator::new(&emulator, &spec).err().unwrap();
        assert!(error.to_string().contains("enclosed"), "{error}");
    }
}

/// The candidates and edges on one machine of a [`Cluster`].
struct Machine {
    candidates: Candidates,
    edges: Edges,
}

/// The connections from one machine to the other machines.
struct Mesh<'a> {
    all: &'a [Machine],
    /// Index of the sending machine.
    from: usize,
    /// The games that lead to the frontier, if the search applies the loop rule.
    past: Option<&'a Past>,
    emulator: &'a Emulator,
}

impl Mesh<'_> {
    /// Checks the origins of some of the children, and that altered ones are found.
    fn check_origins(&self, children: &[Node], origins: &[Origin]) {
        let past = self.past.unwrap();
        assert_eq!(origins.len(), children.len());
        for (&child, &origin) in children.iter().zip(origins).step_by(100) {
            let is_origin = |child, origin| past.is_origin(self.emulator, &child, origin);
            assert!(is_origin(child, origin));
            let hint = child.hint ^ 4;
            assert!(!is_origin(Node { hint, ..child }, origin));
            for piece in Piece::ALL {
                let is_same = piece == origin.piece;
                assert_eq!(is_origin(child, Origin { piece, ..origin }), is_same);
            }
            let parent = past.newest().len() as u32;
            assert!(!is_origin(child, Origin { parent, ..origin }));
        }
    }
}

impl ChildSink for Mesh<'_> {
    fn send(&self, peer: u16, children: &[Node], origins: &[Origin]) -> Result<(), Cancelled> {
        let Machine {
            candidates: to,
            edges,
        } = &self.all[usize::from(peer)];
        if !origins.is_empty() {
            self.check_origins(children, origins);
            edges.add(to, children, origins);
        }
        to.offer_nodes(children, &mut SortBuffer::default());
        let from = &self.all[self.from].candidates;
        for shard in 0..to.layout().shards() {
            if shard % self.all.len() == usize::from(peer) {
                from.raise_floor(shard, to.floor(shard));
            }
        }
        Ok(())
    }
}

/// Simulated machines in one process. Each machine owns some of the shards.
struct Cluster {
    step: Step,
    layout: ShardLayout,
    quiescence: Quiescence,
    /// The part of the frontier on each machine.
    frontiers: Vec<Frontier>,
    /// The games that lead to the frontier, if the search applies the loop rule.
    past: Option<Past>,
    emulator: Emulator,
}

impl Cluster {
    fn new(emulator: &Emulator, spec: EvaluatorSpec, layout: ShardLayout, machines: usize) -> Self {
        let root = root_of(emulator.geometry());
        let first_owner = layout.shard_of(&root.well) % machines;
        let frontier = |machine| Frontier::new(0, (machine == first_owner).then_some(root), layout);
        Cluster {
            step: Step::new(emulator, spec, layout, 2).unwrap(),
            layout,
            quiescence: spec.quiescence,
            frontiers: (0..machines).map(frontier).collect(),
            past: None,
            emulator: emulator.clone(),
        }
    }

    /// Produces the next frontier on all machines. Returns its digest and the pieces that the loop rule changes.
    fn advance(&mut self) -> (Digest, Vec<ChangedPiece>) {
        let machines = self.frontiers.len();
        let gathered = gathered_layout(self.layout, self.quiescence);
        let machine = |_| Machine {
            candidates: Candidates::new(gathered, DEFAULT_SIGMAS),
            edges: Edges::new(gathered.shards()),
        };
        let all: Vec<Machine> = (0..machines).map(machine).collect();
        for machine in 0..machines {
            self.expand(machine, &all);
        }
        let mut cut = Cluster::cut(gathered.width(), &all);
        if self.quiescence == Quiescence::FirstOfBest {
            for Machine { candidates, .. } in &all {
                self.rescore(candidates, &cut);
            }
            cut = Cluster::cut(self.layout.width(), &all);
        }
        let (mut digest, mut changed) = (Digest::default(), Vec::new());
        // The wells of each shard with their parents.
        let mut shards: Vec<(Vec<NodeWell>, Vec<u32>)> =
            vec![Default::default(); gathered.shards()];
        for (machine, frontier) in all.iter().zip(&mut self.frontiers) {
            let depth = frontier.depth + 1;
            let selected = machine.candidates.select(&cut, 2);
            if let Some(past) = &self.past {
                changed.extend(machine.edges.changed(past));
                let parents = machine.edges.parents(past, &selected, 2).unwrap();
                let nodes = selected.iter().enumerate();
                let nodes =
                    nodes.flat_map(|(shard, nodes)| nodes.iter().map(move |node| (shard, node)));
                for ((shard, node), parent) in nodes.zip(parents) {
                    shards[shard].0.push(node.well);
                    shards[shard].1.push(parent);
                }
            }
            *frontier = Frontier {
                depth,
                shards: selected,
            };
            digest.join(frontier.digest());
        }
        if let Some(past) = &mut self.past {
            let (wells, parents): (Vec<_>, Vec<_>) = shards.into_iter().unzip();
            past.push(wells.concat(), parents.concat());
        }
        changed.sort_unstable();
        (digest, changed)
    }

    /// Gives the survivors of the first cut on one machine their scores with quiescence.
    fn rescore(&self, candidates: &Candidates, cut: &Cut) {
        let (children, rescored) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let progress = RescoreProgress { children, rescored };
        let done = self
            .step
            .rescore(candidates, cut, &AtomicBool::new(false), progress);
        done.unwrap();
        let survivors = candidates.len() as u64;
        for counter in [children, rescored] {
            assert_eq!(counter.load(Ordering::Relaxed), survivors);
        }
    }

    fn expand(&self, machine: usize, all: &[Machine]) {
        let machines = self.frontiers.len();
        let owner = |shard: usize| match shard % machines {
            owner if owner == machine => Owner::Here,
            peer => Owner::Peer(peer as u16),
        };
        let shards = 0..self.layout.shards();
        let owners: Vec<Owner> = shards.clone().map(owner).collect();
        let wells = shards.map(|shard| self.frontiers[shard % machines].shards[shard].len());
        let starts = shard_starts(wells);
        let sink = Mesh {
            all,
            from: machine,
            past: self.past.as_ref(),
            emulator: &self.emulator,
        };
        let targets = Targets {
            candidates: &all[machine].candidates,
            exchange: Some(Exchange {
                owners: &owners,
                sink: &sink,
                peers: machines as u16,
            }),
            loops: self.past.as_ref().map(|past| Loops {
                past,
                edges: &all[machine].edges,
                starts: &starts,
            }),
        };
        let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let frontier = &self.frontiers[machine];
        self.step
            .expand(frontier, targets, &cancel, &progress)
            .unwrap();
    }

    /// Finds the cut with which `width` candidates of all machines survive.
    fn cut(width: usize, all: &[Machine]) -> Cut {
        let all: Vec<&Candidates> = all.iter().map(|machine| &machine.candidates).collect();
        let mut search = CutSearch::new(width);
        while let Some(query) = search.query() {
            let mut counts = DigitCounts::default();
            for candidates in &all {
                counts.merge(&candidates.count(query, 2));
            }
            search.answer(&counts);
        }
        let mut cut = search.cut();
        assert!(!all.iter().any(|some| some.dropped_above(cut.rank)));
        if let Ties::First(count) = cut.ties {
            let mut tied: Vec<NodeWell> = all.iter().flat_map(|some| some.tied(cut.rank)).collect();
            tied.sort_unstable();
            tied.truncate(count as usize);
            cut.ties = Ties::Listed(tied);
        }
        cut
    }
}

#[test]
fn digest_does_not_depend_on_shards_or_machines() {
    const WIDTH: usize = 6000;
    let emulator = Emulator::new(GEOMETRY, Rules::default());
    for (kind, quiescence) in [
        (EvaluatorKind::Patterns, Quiescence::Off),
        (EvaluatorKind::PlainHoles, Quiescence::Off),
        (EvaluatorKind::PlainHoles, Quiescence::FirstOfBest),
    ] {
        let spec = EvaluatorSpec::new(kind, quiescence);
        let local = ShardLayout::local(WIDTH);
        let single = Step::new(&emulator, spec, local, 1).unwrap();
        let mut frontier = Frontier::new(0, [root()], local);
        let mut next = |_| {
            frontier = step(&single, &frontier);
            frontier.digest()
        };
        let expected: Vec<Digest> = (0..15).map(&mut next).collect();
        for (machines, shards) in [(1, 1), (2, 7), (3, 64), (5, 5), (2, 1)] {
            let layout = ShardLayout::new(WIDTH, shards);
            let mut cluster = Cluster::new(&emulator, spec, layout, machines);
            for (depth, expected) in expected.iter().enumerate() {
                let (digest, _) = cluster.advance();
                assert_eq!(digest, *expected, "{machines} {shards} depth {depth}");
            }
        }
    }
}

#[test]
fn loop_rule_does_not_depend_on_shards_or_machines() {
    // Wells repeat within a few pieces in four columns.
    let geometry = Geometry::new(4, 16).unwrap();
    let emulator = Emulator::new(geometry, Rules::default());
    for quiescence in [Quiescence::Off, Quiescence::FirstOfBest] {
        let spec = EvaluatorSpec::new(EvaluatorKind::Plain, quiescence);
        for (width, depths) in [(20, 30), (120, 20)] {
            let local = ShardLayout::local(width);
            let single = Step::new(&emulator, spec, local, 1).unwrap();
            let mut frontier = Frontier::new(0, [root_of(geometry)], local);
            let mut past = Past::new(geometry, &[Well::EMPTY]);
            let mut next = |_| {
                let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
                let next = single.advance_exact(&frontier, &mut past, None, &cancel, &progress);
                let next = next.unwrap();
                frontier = next.frontier;
                (frontier.digest(), next.changed)
            };
            let expected: Vec<_> = (0..depths).map(&mut next).collect();
            let changed: usize = expected.iter().map(|(_, changed)| changed.len()).sum();
            assert!(changed > 10, "{changed}");
            for (machines, shards) in [(2, 7), (3, 16)] {
                let layout = ShardLayout::new(width, shards);
                let mut cluster = Cluster::new(&emulator, spec, layout, machines);
                cluster.past = Some(Past::new(geometry, &[Well::EMPTY]));
                for (depth, expected) in expected.iter().enumerate() {
                    assert_eq!(cluster.advance(), *expected, "{machines} {shards} {depth}");
                }
            }
        }
    }
}
