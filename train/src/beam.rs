//! An in-memory beam search that keeps every edge between the wells of consecutive frontiers.
//!
//! The depth of a well is the number of pieces placed since the start of the search. A frontier is the set of wells
//! that the search keeps at one depth; its maximum size is the width.

use hatebeam_game::{Children, Emulator, Geometry, Well};
use hatebeam_search::{Evaluator, NodeWell, Past};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};

/// Assigns scores to wells. A greater score is better.
pub trait Scorer {
    /// Replaces the contents of `out` with the scores of `wells`. For each well, `lines` contains the number of lines
    /// cleared so far.
    fn score(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>);

    /// Returns the number of children for each well of the width that [`score`](Scorer::score) scores, or `None` if it scores
    /// all. The others are dropped by their scores from [`score_own`](Scorer::score_own).
    fn children_per_well(&self) -> Option<usize> {
        None
    }

    /// Like [`score`](Scorer::score), but cheaper and less exact.
    fn score_own(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        self.score(wells, lines, out);
    }
}

impl Scorer for Evaluator {
    fn score(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        Evaluator::score(self, wells, lines, out);
    }

    fn children_per_well(&self) -> Option<usize> {
        self.quiescence().children_per_well()
    }

    fn score_own(&mut self, wells: &[Well], lines: &[u16], out: &mut Vec<i32>) {
        self.score_own_from(i32::MIN, wells, lines, out);
    }
}

/// Number of parents whose children are scored together.
const PARENTS: usize = 32;
/// Number of candidates that are scored together after the first cut.
const RESCORED: usize = 512;
/// Maximum number of candidates, as a multiple of the width. At this number, all but the best `width` candidates are
/// dropped.
const ROOM: usize = 4;
/// Maximum number of games that [`Beam::games_that_return`] returns. It bounds the games that a training checks by the exact
/// rules.
const RETURNS: usize = 8;
/// Factor of the part of the noise that decays, for each depth: exp(-1/30). The result of `exp` differs between systems.
const DECAY: f64 = 0.967_216;
/// Marker for an empty slot or a dropped candidate.
const FREE: u32 = u32::MAX;

/// Pseudorandom noise that is added to the scores of wells. It depends only on the seed, the well's hash and the depth.
/// The standard deviation at a depth is `first × exp(-depth / 30) + rest`, in units of the score.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// Seed of the noise.
    pub seed: u64,
    /// Part of the standard deviation that decays with the depth.
    pub first: f64,
    /// Part of the standard deviation that is the same at all depths.
    pub rest: f64,
}

impl Noise {
    /// Returns the noise of each depth, beginning with depth 1.
    fn of_depths(self) -> impl Iterator<Item = NoiseOfDepth> {
        let decays = iter::successors(Some(DECAY), |decay| Some(decay * DECAY));
        decays.map(move |decay| NoiseOfDepth {
            noise: self,
            deviation: self.first * decay + self.rest,
        })
    }

    /// Returns the noise with standard deviation `deviation` for a well with this hash.
    fn of(self, hash: u64, deviation: f64) -> i32 {
        if deviation == 0.0 {
            return 0;
        }
        let mixed = (hash ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mixed = mixed ^ mixed >> 32;
        // The sum of four random 16-bit numbers has a mean of 131,070 and a standard deviation of 37,837.
        let sum: u64 = (0..4).map(|part| mixed >> (16 * part) & 0xffff).sum();
        ((sum as f64 - 131_070.0) / 37_837.0 * deviation) as i32
    }
}

/// Settings of a beam search.
#[derive(Clone, Debug)]
pub struct BeamSettings {
    /// The well of the first frontier.
    pub start: Well,
    /// Maximum number of wells in a frontier.
    pub width: usize,
    /// Maximum number of pieces to place.
    pub pieces: usize,
    /// Noise that is added to the scores.
    pub noise: Noise,
    /// If this is `Some`, the search applies the loop rule of HATETRIS. These are the wells of the game before the start, which
    /// the rule considers, too.
    pub before: Option<Vec<Well>>,
    /// Returns whether a frontier may contain a well. `None` allows all wells.
    pub allows: Option<fn(&Well) -> bool>,
    /// Whether the beam keeps the wells of all frontiers, and the edges between them. If not, it keeps those of the last
    /// frontier, and of each earlier one only the maximum number of lines.
    pub keeps: bool,
}

impl BeamSettings {
    /// Returns the settings of a beam that starts with the empty well, without noise and without the loop rule, allows all
    /// wells, and keeps only the last frontier.
    pub fn new(width: usize, pieces: usize) -> BeamSettings {
        BeamSettings {
            start: Well::EMPTY,
            width,
            pieces,
            noise: Noise::default(),
            before: None,
            allows: None,
            keeps: false,
        }
    }

    /// Returns the first frontier.
    fn first(&self, geometry: Geometry) -> Depth {
        Depth {
            wells: vec![NodeWell::pack(geometry, &self.start)],
            lines: vec![0],
            edges: Vec::new(),
        }
    }

    /// Returns the past of the first frontier, if the search applies the loop rule.
    fn past(&self, geometry: Geometry) -> Option<Past> {
        let before = self.before.as_ref()?;
        let game = [&before[..], &[self.start]].concat();
        Some(Past::new(geometry, &game))
    }
}

/// The frontier of one depth.
#[derive(Clone, Debug, Default)]
pub struct Depth {
    /// The wells, best first.
    pub wells: Vec<NodeWell>,
    /// For each well, the number of lines cleared so far.
    pub lines: Vec<u16>,
    /// Edges, each as the parent's index in the previous frontier followed by the child's index in this frontier.
    pub edges: Vec<[u32; 2]>,
}

impl Depth {
    /// Drops everything but the maximum number of lines.
    fn forget(&mut self) {
        *self = Depth {
            lines: self.lines.iter().copied().max().into_iter().collect(),
            ..Depth::default()
        };
    }

    /// Returns, for each well, the index of its best parent. The first frontier has no parents.
    fn parents(&self) -> Vec<u32> {
        if self.edges.is_empty() {
            return Vec::new();
        }
        let mut parents = vec![u32::MAX; self.wells.len()];
        for &[parent, child] in &self.edges {
            let best = &mut parents[child as usize];
            *best = parent.min(*best);
        }
        parents
    }
}

/// All frontiers of a beam search.
#[derive(Clone, Debug, Default)]
pub struct Beam {
    /// The frontiers, beginning with that of the start. Each contains at least one well, unless the beam does not
    /// [keep](BeamSettings::keeps) it.
    pub depths: Vec<Depth>,
    /// Whether the search ended because no well in the last frontier had a child.
    pub died: bool,
}

impl Beam {
    /// Returns the number of pieces in the longest game.
    pub fn pieces(&self) -> usize {
        self.depths.len().saturating_sub(1)
    }

    /// Returns the number of lines cleared in the best game.
    pub fn lines(&self) -> u16 {
        let all = self.depths.iter().flat_map(|depth| &depth.lines);
        all.copied().max().unwrap_or(0)
    }

    /// Returns the wells of the longest game, from the start to the best well of the last frontier. If several parents lead
    /// to a well, the game passes through the best of them, so it follows the path of [`Past`].
    ///
    /// # Panics
    /// Panics if the beam does not [keep](BeamSettings::keeps) all frontiers.
    pub fn longest_game(&self, geometry: Geometry) -> Vec<Well> {
        self.game_to(geometry, self.depths.len() - 1, 0)
    }

    /// Returns the wells of games that lead to a later well of the game in which the beam started, with more pieces than
    /// this game, and continue with the wells of this game: at most eight games, the longest first. `rest` contains
    /// the wells of the game after the start. Each game begins with the start. The loop rule can change a piece after the
    /// return.
    ///
    /// # Panics
    /// Panics if the beam does not [keep](BeamSettings::keeps) all frontiers, and returns to the game.
    pub fn games_that_return(&self, geometry: Geometry, rest: &[Well]) -> Vec<Vec<Well>> {
        let pack = |well| NodeWell::pack(geometry, well);
        let places: HashMap<NodeWell, usize> = rest.iter().map(pack).zip(0..).collect();
        let mut returns = Vec::new();
        for (depth, frontier) in self.depths.iter().enumerate() {
            for (well, index) in frontier.wells.iter().zip(0..) {
                if let Some(&place) = places.get(well)
                    && depth > place + 1
                {
                    returns.push((Reverse(depth - place), depth, index, place));
                }
            }
        }
        returns.sort_unstable();
        let game = |&(_, depth, index, place): &(_, usize, u32, usize)| {
            let mut game = self.game_to(geometry, depth, index);
            game.extend_from_slice(&rest[place + 1..]);
            game
        };
        returns.iter().take(RETURNS).map(game).collect()
    }

    /// Returns the wells of a game that ends with a well of a frontier, by the best parent of each well.
    fn game_to(&self, geometry: Geometry, depth: usize, index: u32) -> Vec<Well> {
        let mut index = index;
        let mut wells = Vec::with_capacity(depth + 1);
        for depth in self.depths[..=depth].iter().rev() {
            let well = depth.wells[index as usize].unpack(geometry);
            wells.push(well.expect("all wells in a frontier are valid"));
            let edges = depth.edges.iter().filter(|edge| edge[1] == index);
            index = edges.map(|edge| edge[0]).min().unwrap_or(0);
        }
        wells.reverse();
        wells
    }
}

/// The noise of a depth.
#[derive(Clone, Copy)]
struct NoiseOfDepth {
    noise: Noise,
    deviation: f64,
}

impl NoiseOfDepth {
    /// Returns the rank of a well with this hash: the upper 32 bits are the score with noise, offset to be unsigned, and the
    /// lower 32 bits are those of the hash.
    fn rank(self, score: i32, hash: u64) -> u64 {
        let score = score.saturating_add(self.noise.of(hash, self.deviation));
        u64::from(score as u32 ^ 1 << 31) << 32 | (hash & 0xffff_ffff)
    }
}

#[derive(Clone, Copy)]
struct Candidate {
    rank: u64,
    well: NodeWell,
    lines: u16,
}

/// Children that are scored together.
#[derive(Default)]
struct ScoredChildren {
    /// For each child, the index of its parent.
    parents: Vec<u32>,
    wells: Vec<Well>,
    /// For each child, the number of lines cleared so far.
    lines: Vec<u16>,
    scores: Vec<i32>,
}

impl ScoredChildren {
    fn clear(&mut self) {
        self.parents.clear();
        self.wells.clear();
        self.lines.clear();
    }

    fn push(&mut self, parent: usize, well: Well, lines: u16) {
        self.parents.push(parent as u32);
        self.wells.push(well);
        self.lines.push(lines);
    }

    /// Scores the children for the first cut.
    fn score(&mut self, scorer: &mut impl Scorer) {
        match scorer.children_per_well() {
            Some(_) => scorer.score_own(&self.wells, &self.lines, &mut self.scores),
            None => scorer.score(&self.wells, &self.lines, &mut self.scores),
        }
    }

    /// Adds the children to the candidates.
    fn add_to(&self, candidates: &mut Candidates, geometry: Geometry, noise: NoiseOfDepth) {
        for (index, well) in self.wells.iter().enumerate() {
            let well = NodeWell::pack(geometry, well);
            let child = Candidate {
                rank: noise.rank(self.scores[index], well.hash()),
                well,
                lines: self.lines[index],
            };
            candidates.add(self.parents[index], child);
        }
    }
}

/// The best distinct children of a frontier found so far.
struct Candidates {
    width: usize,
    found: Vec<Candidate>,
    /// Edges, each as the parent's index followed by the candidate's index.
    edges: Vec<[u32; 2]>,
    /// A hash table with open addressing that contains the indexes of candidates.
    slots: Vec<u32>,
    /// Minimum rank of a new candidate. Children with a lower rank cannot be among the best, so they are dropped.
    floor: u64,
    /// Scratch space of [`keep_best`](Candidates::keep_best): for each old index of a candidate, its new index.
    moved: Vec<u32>,
}

impl Candidates {
    fn new(width: usize) -> Candidates {
        Candidates {
            width,
            found: Vec::new(),
            edges: Vec::new(),
            slots: vec![FREE; (2 * ROOM * width).next_power_of_two()],
            floor: 0,
            moved: Vec::new(),
        }
    }

    fn slot(&self, hash: u64, well: &NodeWell) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 32) as usize & mask;
        while self.slots[slot] != FREE && self.found[self.slots[slot] as usize].well != *well {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Adds a child and the edge from its parent, unless the child's rank is below the floor. If the well is already a
    /// candidate, only the edge is added: equal wells at one depth have equal numbers of cleared lines, because each piece adds
    /// four cells and each cleared line removes the cells of one row.
    fn add(&mut self, parent: u32, child: Candidate) {
        if child.rank < self.floor {
            return;
        }
        let slot = self.slot(child.well.hash(), &child.well);
        if self.slots[slot] == FREE {
            self.slots[slot] = self.found.len() as u32;
            self.found.push(child);
        }
        self.edges.push([parent, self.slots[slot]]);
        if self.found.len() == ROOM * self.width {
            self.keep_best();
            let least = self.found.iter().map(|candidate| candidate.rank).min();
            self.floor = least.unwrap_or(0);
        }
    }

    /// Sorts the candidates, best first, drops those beyond the width, and updates the edges and the slots.
    fn keep_best(&mut self) {
        let mut order: Vec<u32> = (0..self.found.len() as u32).collect();
        let found = &self.found;
        let key = |&index: &u32| {
            let candidate = &found[index as usize];
            (Reverse(candidate.rank), candidate.well)
        };
        if order.len() > self.width {
            order.select_nth_unstable_by_key(self.width - 1, key);
            order.truncate(self.width);
        }
        order.sort_unstable_by_key(key);
        self.moved.clear();
        self.moved.resize(self.found.len(), FREE);
        for (new, &old) in order.iter().enumerate() {
            self.moved[old as usize] = new as u32;
        }
        self.found = order.iter().map(|&old| found[old as usize]).collect();
        let moved = &self.moved;
        self.edges.retain_mut(|edge| {
            edge[1] = moved[edge[1] as usize];
            edge[1] != FREE
        });
        self.slots.fill(FREE);
        for index in 0..self.found.len() {
            let well = self.found[index].well;
            let slot = self.slot(well.hash(), &well);
            self.slots[slot] = index as u32;
        }
    }

    /// Drops candidates beyond the width, gives the others the scores of `scorer`, and keeps the best `width` of them. Stops
    /// early if `cancel` becomes `true`.
    fn rescore(
        &mut self,
        geometry: Geometry,
        scorer: &mut impl Scorer,
        noise: NoiseOfDepth,
        width: usize,
        cancel: &AtomicBool,
    ) {
        self.keep_best();
        let (mut wells, mut lines, mut scores) = (Vec::new(), Vec::new(), Vec::new());
        for chunk in self.found.chunks_mut(RESCORED) {
            if cancel.load(Ordering::Relaxed) {
                return;
            }
            wells.clear();
            lines.clear();
            for candidate in &*chunk {
                let well = candidate.well.unpack(geometry);
                wells.push(well.expect("all candidates are valid wells"));
                lines.push(candidate.lines);
            }
            scorer.score(&wells, &lines, &mut scores);
            for (candidate, &score) in chunk.iter_mut().zip(&scores) {
                candidate.rank = noise.rank(score, candidate.well.hash());
            }
        }
        let gathered = std::mem::replace(&mut self.width, width);
        self.keep_best();
        self.width = gathered;
    }

    fn take(&mut self) -> Depth {
        self.keep_best();
        let lines = self.found.iter().map(|candidate| candidate.lines);
        let lines = lines.collect();
        let wells = self.found.drain(..).map(|candidate| candidate.well);
        let wells = wells.collect();
        self.slots.fill(FREE);
        self.floor = 0;
        Depth {
            wells,
            lines,
            edges: std::mem::take(&mut self.edges),
        }
    }
}

/// Runs a beam search until no well has a child, the maximum number of pieces is placed, or `cancel` becomes `true`. Drops the
/// frontier that is not complete then.
pub fn run_beam(
    emulator: &Emulator,
    scorer: &mut impl Scorer,
    settings: &BeamSettings,
    cancel: &AtomicBool,
) -> Beam {
    let geometry = emulator.geometry();
    let mut beam = Beam {
        depths: vec![settings.first(geometry)],
        died: false,
    };
    let mut past = settings.past(geometry);
    let width = settings.width.max(1);
    let per_well = scorer.children_per_well();
    let mut candidates = Candidates::new(width * per_well.unwrap_or(1));
    let (mut children, mut known) = (Children::new(), Vec::new());
    let mut scored = ScoredChildren::default();
    let is_cancelled = || cancel.load(Ordering::Relaxed);
    for (depth, noise) in (1..=settings.pieces).zip(settings.noise.of_depths()) {
        let frontier = &beam.depths[depth - 1];
        for (chunk, packed) in frontier.wells.chunks(PARENTS).enumerate() {
            if is_cancelled() {
                return beam;
            }
            scored.clear();
            for (index, parent) in packed.iter().enumerate() {
                let well = parent
                    .unpack(geometry)
                    .expect("all wells in a frontier are valid");
                emulator.expand(&well, &mut children);
                let parent = chunk * PARENTS + index;
                if let Some(past) = &past
                    && let Some(piece) =
                        past.piece_by_rule(emulator, parent as u32, &mut children, &mut known)
                {
                    emulator.children(&well, piece, &mut children);
                }
                let before = frontier.lines[parent];
                for (child, more) in children.iter() {
                    if settings.allows.is_none_or(|allows| allows(child)) {
                        scored.push(parent, *child, before.saturating_add(u16::from(more)));
                    }
                }
            }
            scored.score(scorer);
            scored.add_to(&mut candidates, geometry, noise);
        }
        if per_well.is_some() {
            candidates.rescore(geometry, scorer, noise, width, cancel);
        }
        if is_cancelled() {
            return beam;
        }
        let next = candidates.take();
        if next.wells.is_empty() {
            beam.died = true;
            break;
        }
        if let Some(past) = &mut past {
            past.push(next.wells.clone(), next.parents());
        }
        if !settings.keeps {
            beam.depths[depth - 1].forget();
        }
        beam.depths.push(next);
    }
    beam
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Rules;
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence};

    fn emulator() -> Emulator {
        Emulator::new(Geometry::STANDARD, Rules::default())
    }

    fn settings(width: usize, pieces: usize) -> BeamSettings {
        BeamSettings {
            keeps: true,
            ..BeamSettings::new(width, pieces)
        }
    }

    #[test]
    fn noise_decays_by_the_same_factor_at_each_depth() {
        let noise = Noise {
            seed: 1,
            first: 123.4,
            rest: 5.6,
        };
        for (depth, found) in (1..2000).zip(noise.of_depths()) {
            let decay = (0..depth).fold(1.0, |decay, _| decay * 0.967_216);
            assert_eq!(
                found.deviation.to_bits(),
                (123.4 * decay + 5.6f64).to_bits()
            );
        }
    }

    #[test]
    fn beam_that_does_not_keep_frontiers_has_the_same_result() {
        let emulator = emulator();
        let spec = EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off);
        for before in [None, Some(Vec::new())] {
            let beam = |keeps| {
                let settings = BeamSettings {
                    before: before.clone(),
                    keeps,
                    ..settings(40, 1000)
                };
                let mut evaluator = Evaluator::new(&emulator, &spec).unwrap();
                run_beam(
                    &emulator,
                    &mut evaluator,
                    &settings,
                    &AtomicBool::new(false),
                )
            };
            let (kept, other) = (beam(true), beam(false));
            assert_eq!(kept.pieces(), other.pieces());
            assert_eq!(kept.lines(), other.lines());
            assert!(kept.died && other.died && kept.lines() > 0);
            let last = kept.pieces();
            assert!(kept.depths[last].wells == other.depths[last].wells);
            assert_eq!(kept.depths[last].lines, other.depths[last].lines);
            for depth in &other.depths[..last] {
                assert!(depth.wells.is_empty() && depth.edges.is_empty());
                assert_eq!(depth.lines.len(), 1);
            }
        }
    }

    /// Scores all wells equally, and cancels the search during a call.
    struct Canceller<'a> {
        calls: usize,
        last: usize,
        per_well: Option<usize>,
        cancel: &'a AtomicBool,
    }

    impl Scorer for Canceller<'_> {
        fn score(&mut self, wells: &[Well], _lines: &[u16], out: &mut Vec<i32>) {
            self.calls += 1;
            self.cancel
                .store(self.calls == self.last, Ordering::Relaxed);
            out.clear();
            out.resize(wells.len(), 0);
        }

        fn children_per_well(&self) -> Option<usize> {
            self.per_well
        }
    }

    #[test]
    fn cancelled_beam_stops_inside_a_depth() {
        for per_well in [None, Some(3)] {
            let search = |last| {
                let cancel = AtomicBool::new(false);
                let mut scorer = Canceller {
                    calls: 0,
                    last,
                    per_well,
                    cancel: &cancel,
                };
                let beam = run_beam(&emulator(), &mut scorer, &settings(300, 5), &cancel);
                (scorer.calls, beam)
            };
            let (calls, whole) = search(usize::MAX);
            assert!(calls > 20 && whole.pieces() == 5, "{calls}");
            for last in 1..=calls {
                let (calls, beam) = search(last);
                assert_eq!(calls, last);
                assert!(!beam.died && beam.pieces() < 5, "{}", beam.pieces());
            }
        }
    }
}
