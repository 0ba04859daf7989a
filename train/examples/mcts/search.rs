//! Monte-Carlo tree search for a single game.
//!
//! HATETRIS is deterministic, so a game is a path in the graph of wells, and equal wells are one node of it, however
//! they were reached. An iteration walks from the current well down the graph. In each well it chooses the child with the
//! highest upper confidence bound (UCT): the mean return of the child, from all iterations that passed through it, plus
//! a bonus for placements that were rarely tried. From the first new well, it plays on with the best-scored children
//! (the rollout), and adds the return to all wells of its path. After a fixed number of iterations, the search places
//! one piece and drops the wells that it cannot reach any more.
//!
//! A well whose continuations are all known up to their ends is solved, and iterations avoid it. If the well at which
//! the search started is solved, the result is the optimum.
//!
//! The search plays against HATETRIS Mild and excludes wells that already occurred in the game.

use crate::graph::{Edge, Graph};
use clap::ValueEnum;
use hatebeam_game::{Children, Emulator, Well};
use hatebeam_search::{Evaluator, NodeWell};
use hatebeam_train::estimated_pieces;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of filled cells in a standard well in which a game of a network ends, approximately. The number of lines
/// follows from it and the number of pieces.
const CELLS_AT_END: f64 = 130.0;

/// The number that a search maximizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Goal {
    /// Number of lines cleared.
    Lines,
    /// Number of pieces placed.
    Pieces,
}

/// The choice of the piece's placement after the iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Follow {
    /// The next placement of the best game found so far.
    Best,
    /// The placement with the most iterations.
    Visits,
}

/// Settings of a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MctsSettings {
    /// Seed of the rollouts' random numbers.
    pub(crate) seed: u64,
    /// Number of iterations before each placement.
    pub(crate) iterations: u64,
    /// The number to maximize.
    pub(crate) goal: Goal,
    /// The choice of a placement.
    pub(crate) follow: Follow,
    /// Maximum number of pieces in a rollout. A rollout ends earlier if the game ends.
    pub(crate) rollout: usize,
    /// Whether the score of a rollout's last well predicts the rest of the game. The evaluator must then be a network.
    pub(crate) estimate: bool,
    /// Probability with which a rollout skips a child and considers the next best one.
    pub(crate) skip: f64,
    /// Factor of the bonus for rarely tried placements, as a share of the greatest return.
    pub(crate) exploration: f64,
    /// Factor of the number of children to try: at most this factor times the square root of the number of visits,
    /// best scores first. 0 means all children.
    pub(crate) widening: f64,
    /// Maximum memory of the graph in bytes.
    pub(crate) memory: u64,
    /// Maximum number of pieces to place.
    pub(crate) pieces: usize,
}

impl Default for MctsSettings {
    fn default() -> MctsSettings {
        MctsSettings {
            seed: 1,
            iterations: 100,
            goal: Goal::Lines,
            follow: Follow::Best,
            rollout: usize::MAX,
            estimate: false,
            skip: 0.05,
            exploration: 0.1,
            widening: 0.5,
            memory: 1 << 30,
            pieces: usize::MAX,
        }
    }
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MctsGame {
    /// The wells of the game, beginning with the first well.
    pub(crate) wells: Vec<Well>,
    /// Number of lines cleared.
    pub(crate) lines: u32,
    /// Whether no other game reaches a greater number.
    pub(crate) proven: bool,
    /// Number of iterations.
    pub(crate) iterations: u64,
    /// Maximum number of wells in the graph.
    pub(crate) nodes: usize,
    /// Memory of the graph in bytes.
    pub(crate) bytes: usize,
}

/// A prefix of a game.
#[derive(Clone, Debug, Default)]
struct Line {
    wells: Vec<Well>,
    lines: u32,
}

impl Line {
    /// Returns whether a child of the last well occurred before. Cells are conserved, so this is possible only after a
    /// multiple of `period` pieces.
    fn contains(&self, child: &Well, period: usize) -> bool {
        let wells = self.wells.iter().rev().skip(period - 1);
        wells.step_by(period).any(|well| well == child)
    }

    fn push(&mut self, well: Well, lines: u8) {
        self.wells.push(well);
        self.lines += u32::from(lines);
    }
}

/// One placement of an iteration.
#[derive(Clone, Copy)]
struct Step {
    node: u32,
    edge: u32,
}

/// Where an iteration leaves the graph.
enum End {
    /// A node without a child that the iteration may visit, with the return from there.
    Node(u32, f64),
    /// A well that is not in the graph because the graph is full, with the return from there.
    Outside(f64),
}

/// A search.
pub(crate) struct Mcts<'a> {
    emulator: &'a Emulator,
    evaluator: &'a mut Evaluator,
    settings: MctsSettings,
    graph: Graph,
    /// Number of pieces after which a well can occur again, as well as after its multiples.
    period: usize,
    /// The game up to the current well.
    game: Line,
    /// The best game found so far.
    record: Line,
    iterations: u64,
    nodes: usize,
    // Scratch space.
    children: Children,
    scores: Vec<i32>,
    order: Vec<u16>,
    edges: Vec<Edge>,
    path: Vec<Step>,
    line: Line,
}

impl<'a> Mcts<'a> {
    /// Creates a search. All wells must fit into a [`NodeWell`].
    pub(crate) fn new(
        emulator: &'a Emulator,
        evaluator: &'a mut Evaluator,
        settings: MctsSettings,
    ) -> Mcts<'a> {
        let width = emulator.geometry().width();
        let common = [4, 2, 1]
            .into_iter()
            .find(|part| width.is_multiple_of(*part));
        Mcts {
            emulator,
            evaluator,
            settings,
            graph: Graph::new(settings.memory),
            period: width / common.expect("every number is a multiple of 1"),
            game: Line::default(),
            record: Line::default(),
            iterations: 0,
            nodes: 0,
            children: Children::new(),
            scores: Vec::new(),
            order: Vec::new(),
            edges: Vec::new(),
            path: Vec::new(),
            line: Line::default(),
        }
    }

    /// Plays a game from `start`. If `cancel` becomes `true`, returns the best game found so far. `watch` is called after
    /// each placement with the number of pieces placed and the number of lines of the best game.
    pub(crate) fn play(
        mut self,
        start: &Well,
        cancel: &AtomicBool,
        mut watch: impl FnMut(usize, u32),
    ) -> MctsGame {
        self.game.wells = vec![*start];
        self.record = self.game.clone();
        let mut root = self.root();
        let mut proven = false;
        while self.game.wells.len() <= self.settings.pieces {
            for _ in 0..self.settings.iterations {
                if self.graph.node(root).solved || cancel.load(Ordering::Relaxed) {
                    break;
                }
                self.iterate(root);
            }
            if self.graph.node(root).solved {
                proven |= self.finish(root) && self.game.wells.len() == 1;
                break;
            }
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let Some((well, lines)) = self.placement(root) else {
                break;
            };
            self.game.push(well, lines);
            let next = self.root();
            root = self.graph.keep_reachable(next);
            watch(self.game.wells.len() - 1, self.record.lines);
        }
        if self.gain(&self.game) > self.gain(&self.record) {
            self.record = self.game.clone();
        }
        MctsGame {
            proven,
            iterations: self.iterations,
            nodes: self.nodes,
            bytes: self.graph.bytes(),
            lines: self.record.lines,
            wells: self.record.wells,
        }
    }

    fn pack(&self, well: &Well) -> NodeWell {
        NodeWell::pack(self.emulator.geometry(), well)
    }

    fn unpack(&self, well: &NodeWell) -> Well {
        well.unpack(self.emulator.geometry())
            .expect("the graph contains live wells")
    }

    /// Returns the node of the game's last well. If the graph is full, empties it first.
    fn root(&mut self) -> u32 {
        let well = self.pack(&self.game.wells[self.game.wells.len() - 1]);
        if let Some(node) = self.graph.node_of(well) {
            return node;
        }
        self.graph.keep_reachable(0);
        self.graph
            .node_of(well)
            .expect("half of the nodes were removed")
    }

    /// Returns the order of lines: first by the goal, then by the other number.
    fn gain(&self, line: &Line) -> (u32, u32) {
        let pieces = line.wells.len() as u32;
        match self.settings.goal {
            Goal::Lines => (line.lines, pieces),
            Goal::Pieces => (pieces, line.lines),
        }
    }

    fn reward(&self, lines: u8) -> f64 {
        match self.settings.goal {
            Goal::Lines => f64::from(lines),
            Goal::Pieces => 1.0,
        }
    }

    /// Runs one iteration from `root`.
    fn iterate(&mut self, root: u32) {
        self.iterations += 1;
        let mut line = std::mem::take(&mut self.line);
        line.clone_from(&self.game);
        let end = self.descend(root, &mut line);
        self.back_up(&end);
        if self.gain(&line) > self.gain(&self.record) {
            self.record.clone_from(&line);
        }
        self.line = line;
        self.nodes = self.nodes.max(self.graph.len());
    }

    /// Walks down the graph and plays a rollout. Appends all wells to `line` and the placements in the graph to `path`.
    fn descend(&mut self, root: u32, line: &mut Line) -> End {
        self.path.clear();
        let mut node = root;
        loop {
            let well = line.wells[line.wells.len() - 1];
            let is_new = self.graph.node(node).visits == 0 && node != root;
            if is_new || !self.expand(node, &well, line.lines) {
                return End::Node(node, self.roll_out(line));
            }
            let Some(edge) = self.select(root, node, line) else {
                return End::Node(node, self.solved_return(node, line));
            };
            self.path.push(Step { node, edge });
            let Edge { place, lines, .. } = *self.graph.edge(edge);
            if let Some(child) = self.graph.edge(edge).child() {
                line.push(self.unpack(&self.graph.node(child).well), lines);
                node = child;
                continue;
            }
            self.emulator.expand(&well, &mut self.children);
            let child = self.children.wells()[usize::from(place)];
            line.push(child, lines);
            match self.graph.node_of(self.pack(&child)) {
                Some(next) => {
                    self.graph.set_child(edge, next);
                    node = next;
                }
                None => return End::Outside(self.roll_out(line)),
            }
        }
    }

    /// Adds the children of a well to the graph, best scores first, unless they are there. Returns `false` if the graph
    /// is full.
    fn expand(&mut self, node: u32, well: &Well, lines: u32) -> bool {
        if self.graph.node(node).expanded {
            return true;
        }
        self.score_children(well, lines);
        if !self.graph.has_room(self.order.len()) {
            return false;
        }
        self.edges.clear();
        let lines = self.children.lines();
        let edges = self.order.iter();
        self.edges
            .extend(edges.map(|&place| Edge::new(place, lines[usize::from(place)])));
        self.graph.expand(node, &self.edges);
        true
    }

    /// Finds the children of a well and their order, best scores first.
    fn score_children(&mut self, well: &Well, lines: u32) {
        self.emulator.expand(well, &mut self.children);
        let cleared = u16::try_from(lines).unwrap_or(u16::MAX);
        let lines = self.children.lines().iter();
        let lines: Vec<u16> = lines
            .map(|&more| cleared.saturating_add(u16::from(more)))
            .collect();
        self.evaluator
            .score(self.children.wells(), &lines, &mut self.scores);
        self.order.clear();
        self.order.extend(0..self.children.len() as u16);
        let scores = &self.scores;
        self.order
            .sort_by_key(|&place| Reverse(scores[usize::from(place)]));
    }

    /// Returns the edge with the highest upper confidence bound. Excludes solved children and wells of the game.
    fn select(&self, root: u32, node: u32, line: &Line) -> Option<u32> {
        let edges = self.graph.edges(node);
        let visits = self.graph.node(node).visits;
        let room = match self.settings.widening {
            0.0 => usize::MAX,
            factor => (factor * f64::from(visits).sqrt()).ceil() as usize,
        };
        let scale = self.graph.node(root).best.max(1.0);
        let log = log2(visits);
        let mut best: Option<(f64, u32)> = None;
        for (rank, edge) in edges.enumerate() {
            // At least one child is considered, however low its score is.
            if rank >= room.max(1) && best.is_some() {
                break;
            }
            let Edge { visits, lines, .. } = *self.graph.edge(edge);
            let Some(child) = self.graph.edge(edge).child() else {
                if self.leads_back(edge, line) {
                    continue;
                }
                return Some(edge);
            };
            let known = self.graph.node(child);
            if known.solved || line.contains(&self.unpack(&known.well), self.period) {
                continue;
            }
            let mean = known.sum / f64::from(known.visits.max(1));
            let value = (self.reward(lines) + mean) / scale;
            let bound = value + self.settings.exploration * (log / f64::from(visits.max(1))).sqrt();
            if best.is_none_or(|(most, _)| bound > most) {
                best = Some((bound, edge));
            }
        }
        best.map(|(_, edge)| edge)
    }

    /// Returns whether the placement of an edge without a child leads to a well of the game.
    fn leads_back(&self, edge: u32, line: &Line) -> bool {
        let mut children = Children::new();
        self.emulator
            .expand(&line.wells[line.wells.len() - 1], &mut children);
        let child = children.wells()[usize::from(self.graph.edge(edge).place)];
        line.contains(&child, self.period)
    }

    /// Plays on from the last well of `line`, appends the wells, and returns the return.
    fn roll_out(&mut self, line: &mut Line) -> f64 {
        let first = line.wells[line.wells.len() - 1];
        let hash = self.pack(&first).hash();
        // A rollout depends only on the seed and its first well.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.settings.seed.to_le_bytes());
        key[8..16].copy_from_slice(&hash.to_le_bytes());
        let mut random = ChaCha8Rng::from_seed(key);
        let mut gained = 0.0;
        let mut well = first;
        for _ in 0..self.settings.rollout {
            self.score_children(&well, line.lines);
            let wells = self.children.wells();
            let period = self.period;
            let free = |&&place: &&u16| !line.contains(&wells[usize::from(place)], period);
            let mut chosen = None;
            for &place in self.order.iter().filter(free) {
                chosen = Some(usize::from(place));
                if self.settings.skip == 0.0 || unit(&mut random) >= self.settings.skip {
                    break;
                }
            }
            let Some(place) = chosen else {
                return gained;
            };
            let lines = self.children.lines()[place];
            well = wells[place];
            line.push(well, lines);
            gained += self.reward(lines);
        }
        gained + self.estimate(&well, line.lines)
    }

    /// Returns the predicted return after a well.
    fn estimate(&mut self, well: &Well, lines: u32) -> f64 {
        if !self.settings.estimate {
            return 0.0;
        }
        let lines = u16::try_from(lines).unwrap_or(u16::MAX);
        self.evaluator.score(&[*well], &[lines], &mut self.scores);
        let pieces = estimated_pieces(self.scores[0]);
        match self.settings.goal {
            Goal::Pieces => pieces,
            Goal::Lines => {
                let cells = 4.0 * pieces + f64::from(well.filled()) - CELLS_AT_END;
                (cells / self.emulator.geometry().width() as f64).max(0.0)
            }
        }
    }

    /// Adds the return of an iteration to the wells of its path.
    fn back_up(&mut self, end: &End) {
        let (mut value, mut child) = match *end {
            End::Node(node, value) => {
                let last = self.graph.node_mut(node);
                last.visits += 1;
                last.sum += value;
                last.best = last.best.max(value);
                (value, Some(node))
            }
            End::Outside(value) => (value, None),
        };
        for step in (0..self.path.len()).rev() {
            let Step { node, edge } = self.path[step];
            self.graph.edge_mut(edge).visits += 1;
            let reward = self.reward(self.graph.edge(edge).lines);
            value += reward;
            let best = child.map_or(value, |child| reward + self.graph.node(child).best);
            let passed = self.graph.node_mut(node);
            passed.visits += 1;
            passed.sum += value;
            passed.best = passed.best.max(best).max(value);
            if child.is_some_and(|child| self.graph.node(child).solved) {
                self.solve(node);
            }
            child = Some(node);
        }
    }

    /// Marks a node as solved if all of its children are, and returns whether it is. A node without children is.
    fn solve(&mut self, node: u32) -> bool {
        let mut best = 0.0f64;
        for edge in self.graph.edges(node) {
            let edge = self.graph.edge(edge);
            match edge.child().map(|child| self.graph.node(child)) {
                Some(child) if child.solved => {
                    best = best.max(self.reward(edge.lines) + child.best);
                }
                _ => return false,
            }
        }
        let node = self.graph.node_mut(node);
        node.solved = true;
        node.best = best;
        true
    }

    /// Returns the next well of the game and the number of lines that the placement clears. Returns `None` if the game
    /// is over.
    fn placement(&mut self, root: u32) -> Option<(Well, u8)> {
        let placed = self.game.wells.len();
        let visited = |edge: &u32| self.graph.edge(*edge).child().is_some();
        let most = match (self.settings.follow, self.record.wells.get(placed)) {
            (Follow::Best, Some(next)) => {
                let next = self.pack(next);
                let mut edges = self.graph.edges(root).filter(visited);
                edges.find(|&edge| {
                    let child = self.graph.edge(edge).child();
                    child.is_some_and(|child| self.graph.node(child).well == next)
                })
            }
            _ => None,
        };
        let most = most.or_else(|| {
            let edges = self.graph.edges(root).filter(visited);
            edges.max_by_key(|&edge| (self.graph.edge(edge).visits, Reverse(edge)))
        })?;
        let edge = self.graph.edge(most);
        let child = self.graph.node(edge.child()?);
        Some((self.unpack(&child.well), edge.lines))
    }

    /// Returns the return from a node that has no child to visit. If it is solved, appends its best continuation to
    /// `line`. Otherwise the game ends there, because a well would occur again.
    fn solved_return(&mut self, node: u32, line: &mut Line) -> f64 {
        if !self.solve(node) {
            return 0.0;
        }
        self.append_best(node, line);
        self.graph.node(node).best
    }

    /// Appends the best continuation of a solved node to `line`.
    fn append_best(&self, mut node: u32, line: &mut Line) {
        loop {
            let edges = self.graph.edges(node).filter_map(|edge| {
                let edge = self.graph.edge(edge);
                let child = edge.child()?;
                let value = self.reward(edge.lines) + self.graph.node(child).best;
                Some((value, edge.lines, child))
            });
            let best = edges.reduce(|best, next| if next.0 > best.0 { next } else { best });
            let Some((_, lines, child)) = best else {
                return;
            };
            line.push(self.unpack(&self.graph.node(child).well), lines);
            node = child;
        }
    }

    /// Completes the game from a solved well. Returns whether the best game found reaches the maximum from this well.
    fn finish(&mut self, root: u32) -> bool {
        let mut line = self.game.clone();
        self.append_best(root, &mut line);
        if self.gain(&line) > self.gain(&self.record) {
            self.record = line;
        }
        let gained = match self.settings.goal {
            Goal::Lines => self.record.lines - self.game.lines,
            Goal::Pieces => (self.record.wells.len() - self.game.wells.len()) as u32,
        };
        f64::from(gained) >= self.graph.node(root).best
    }
}

/// Returns a random number from 0 (inclusive) to 1 (exclusive).
fn unit(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns the binary logarithm, interpolated between the powers of two. Unlike that of the standard library, it is the
/// same on every system.
fn log2(number: u32) -> f64 {
    let number = number.max(1);
    let power = number.ilog2();
    f64::from(power) + f64::from(number) / f64::from(1u32 << power) - 1.0
}
