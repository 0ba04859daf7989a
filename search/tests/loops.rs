//! Compares beams that apply the loop rule with a brute-force version that keeps the whole game of every
//! well, and with the public game in which the loop rule changes the most pieces.

#![allow(clippy::unwrap_used)] // the lint exempts test functions, but not their helpers

use hatebeam_game::{
    Children, Emulator, Enemy, EnemyState, Geometry, Piece, Rules, Well, decode, play,
};
use hatebeam_search::{
    ChangedPiece, Digest, Evaluator, EvaluatorKind, EvaluatorSpec, Frontier, NextDepth, Node,
    NodeWell, Past, Quiescence, RecentCuts, ShardLayout, Step,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// A beam that applies the loop rule.
struct Beam {
    emulator: Emulator,
    step: Step,
    frontier: Frontier,
    past: Past,
    cuts: RecentCuts,
    width: usize,
}

impl Beam {
    /// Creates a beam that begins with the last well of a game.
    fn new(geometry: Geometry, game: &[Well], kind: EvaluatorKind, layout: ShardLayout) -> Beam {
        let emulator = Emulator::new(geometry, Rules::default());
        let spec = EvaluatorSpec::new(kind, Quiescence::Off);
        let first = Node::first(geometry, game.last().unwrap(), 0);
        Beam {
            step: Step::new(&emulator, spec, layout, 2).unwrap(),
            emulator,
            frontier: Frontier::new(game.len() as u32 - 1, [first], layout),
            past: Past::new(geometry, game),
            cuts: RecentCuts::default(),
            width: layout.width(),
        }
    }

    /// Searches one depth and returns the changed pieces.
    fn advance(&mut self) -> Vec<ChangedPiece> {
        let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let floor = self.cuts.floor();
        let next =
            self.step
                .advance_exact(&self.frontier, &mut self.past, floor, &cancel, &progress);
        let NextDepth {
            frontier, changed, ..
        } = next.unwrap();
        let worst = frontier.nodes().map(|node| node.score).min().unwrap_or(0);
        self.cuts
            .add(frontier.len() as u64, worst, self.width as u64);
        self.frontier = frontier;
        changed
    }

    /// Returns the nodes with their paths, from the node's own well back to the first well.
    fn games(&self) -> BTreeMap<NodeWell, (Node, Vec<NodeWell>)> {
        let games = (0..).zip(self.frontier.nodes()).map(|(index, node)| {
            let path: Vec<NodeWell> = self.past.path(index).copied().collect();
            (node.well, (*node, path))
        });
        games.collect()
    }
}

/// A well of a brute-force frontier and its game, which ends with this well.
#[derive(Clone)]
struct Played {
    node: Node,
    game: Vec<Well>,
}

/// An edge to a child in the brute-force search. Of several edges to the same child, the first one in the
/// order of the first four fields defines the child's game.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    hint: u8,
    cleared: u8,
    piece: Piece,
    parent: Well,
    index: usize,
}

/// Returns the `width` best children of a frontier by the exact rules, and the changed pieces.
fn brute_force(
    emulator: &Emulator,
    evaluator: &mut Evaluator,
    frontier: &[Played],
    width: usize,
) -> (Vec<Played>, Vec<ChangedPiece>) {
    let geometry = emulator.geometry();
    let mut children = Children::new();
    let mut edges: BTreeMap<Well, Edge> = BTreeMap::new();
    let mut changed = Vec::new();
    for (index, played) in frontier.iter().enumerate() {
        let mut enemy = EnemyState::new(Enemy::Hatetris);
        let pieces = played.game.iter();
        let pieces = pieces.map(|well| enemy.next_piece(emulator, well, &mut children));
        let piece = pieces.last().unwrap();
        let parent = *played.game.last().unwrap();
        if piece != emulator.piece(&parent) {
            changed.push(ChangedPiece::new(geometry, &parent, piece));
        }
        emulator.children(&parent, piece, &mut children);
        for (child, cleared) in children.iter() {
            let edge = Edge {
                hint: parent.hash() as u8,
                cleared,
                piece,
                parent,
                index,
            };
            let best = edges.entry(*child).or_insert_with(|| edge.clone());
            *best = edge.min(best.clone());
        }
    }
    changed.sort();
    let mut scores = Vec::new();
    let mut next: Vec<Played> = Vec::new();
    for (child, edge) in edges {
        let parent = &frontier[edge.index];
        let lines = parent.node.lines + u16::from(edge.cleared);
        evaluator.score(&[child], &[lines], &mut scores);
        let mut game = parent.game.clone();
        game.push(child);
        let node = Node {
            score: scores[0],
            well: NodeWell::pack(geometry, &child),
            lines,
            hint: edge.hint,
        };
        next.push(Played { node, game });
    }
    next.sort_by_key(|Played { node, .. }| {
        (
            std::cmp::Reverse((node.score, node.well.hash() as u32)),
            node.well,
        )
    });
    next.truncate(width);
    (next, changed)
}

/// Searches up to `depths` depths after a game with a beam and with brute force, compares them, and returns the
/// number of changed pieces.
fn compare(geometry: Geometry, game: &[Well], width: usize, depths: usize) -> usize {
    let kind = EvaluatorKind::Plain;
    let mut beam = Beam::new(geometry, game, kind, ShardLayout::new(width, 8));
    let spec = EvaluatorSpec::new(kind, Quiescence::Off);
    let mut evaluator = Evaluator::new(&beam.emulator, &spec).unwrap();
    let mut frontier = vec![Played {
        node: *beam.frontier.nodes().next().unwrap(),
        game: game.to_vec(),
    }];
    let mut total = 0;
    for depth in 1..=depths {
        let (next, expected) = brute_force(&beam.emulator, &mut evaluator, &frontier, width);
        frontier = next;
        let at = format!("{geometry}, width {width}, depth {depth}");
        assert_eq!(beam.advance(), expected, "{at}");
        total += expected.len();
        let pack = |well: &Well| NodeWell::pack(geometry, well);
        let games = frontier.iter().map(|Played { node, game }| {
            let path = game.iter().rev().map(pack).collect();
            (node.well, (*node, path))
        });
        let games: BTreeMap<NodeWell, (Node, Vec<NodeWell>)> = games.collect();
        assert!(beam.games() == games, "{at}");
    }
    assert!(frontier.is_empty() || geometry == Geometry::STANDARD);
    total
}

#[test]
fn beam_matches_brute_force_where_wells_repeat() {
    // The widths of the first three beams are greater than the number of wells at any depth.
    for (rows, width, least) in [
        (4, 1_000_000, 2),
        (6, 1_000_000, 10),
        (8, 1_000_000, 50),
        (12, 20, 10),
        (12, 300, 100),
        (16, 1, 1),
        (16, 50, 50),
    ] {
        let geometry = Geometry::new(4, rows).unwrap();
        let changed = compare(geometry, &[Well::EMPTY], width, 40);
        assert!(changed >= least, "{rows} rows, width {width}: {changed}");
    }
}

/// Returns the wells and pieces of the public game of 3,711 lines.
fn record_game() -> (Vec<Well>, Vec<Piece>) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/games/david-and-felipe-3711.txt"
    );
    let (keys, _) = decode(&std::fs::read_to_string(path).unwrap()).unwrap();
    let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
    (record.wells().collect(), record.pieces().collect())
}

#[test]
fn past_changes_the_nine_pieces_of_the_public_game() {
    let (wells, pieces) = record_game();
    let geometry = Geometry::STANDARD;
    let emulator = Emulator::new(geometry, Rules::default());
    let (mut children, mut known) = (Children::new(), Vec::new());
    let mut past = Past::new(geometry, &wells[..1]);
    let mut changed = Vec::new();
    for (number, (well, &piece)) in (1..).zip(wells.iter().zip(&pieces)) {
        if number > 1 {
            past.push(vec![NodeWell::pack(geometry, well)], vec![0]);
        }
        let mild = emulator.expand(well, &mut children);
        let by_rule = past.piece_by_rule(&emulator, 0, &mut children, &mut known);
        assert_eq!(by_rule.unwrap_or(mild), piece, "piece {number}");
        if piece != mild {
            changed.push(number);
        }
    }
    assert_eq!((changed.len(), changed[0]), (9, 2148), "{changed:?}");
}

#[test]
fn beam_matches_brute_force_in_the_public_game() {
    let (wells, pieces) = record_game();
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let numbers = 1..=wells.len();
    for number in numbers.filter(|&number| emulator.piece(&wells[number - 1]) != pieces[number - 1])
    {
        let changed = compare(Geometry::STANDARD, &wells[..number], 8, 4);
        assert!(changed >= 1, "piece {number}");
    }
}

#[test]
fn result_does_not_depend_on_threads_or_shards() {
    let geometry = Geometry::new(4, 16).unwrap();
    let results = [(1, 1), (1, 8), (3, 8), (2, 64)].map(|(threads, shards)| {
        let layout = ShardLayout::new(300, shards);
        let mut beam = Beam::new(geometry, &[Well::EMPTY], EvaluatorKind::Plain, layout);
        let spec = EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off);
        beam.step = Step::new(&beam.emulator, spec, layout, threads).unwrap();
        let depths = (0..15).map(|_| {
            let changed = beam.advance();
            (beam.frontier.digest(), changed, beam.games())
        });
        depths.collect::<Vec<_>>()
    });
    assert!(results[0].iter().any(|(_, changed, _)| !changed.is_empty()));
    assert!(results.iter().all(|result| *result == results[0]));
}

#[test]
fn beam_without_repeated_wells_matches_beam_that_ignores_the_rule() {
    let layout = ShardLayout::local(500);
    let mut beam = Beam::new(
        Geometry::STANDARD,
        &[Well::EMPTY],
        EvaluatorKind::Patterns,
        layout,
    );
    let mut frontier = beam.frontier.clone();
    for _ in 0..120 {
        assert_eq!(beam.advance(), []);
        let next = beam
            .step
            .run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0));
        frontier = next.unwrap().0;
        assert_eq!(beam.frontier.digest(), Digest::of(frontier.nodes()));
    }
}
