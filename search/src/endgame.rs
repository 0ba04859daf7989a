//! The endgame search: an exhaustive depth-first search for the maximum number of lines that a game
//! can still clear from a given well.
//!
//! Against HATETRIS Mild, the well determines the piece, so this maximum (the *value* of the well)
//! depends only on the well. The value of a well is the maximum, over all of its children, of the
//! number of lines that the placement clears plus the child's value. A table of fixed size stores the
//! values of wells that were searched completely. It stores whole wells, so it never confuses two
//! wells. Each well has a bucket of four slots. In a full bucket, a new value replaces the value that
//! took the least work to compute.
//!
//! A well that is already on the path to the current well is not searched again. Against Mild, a
//! game could go through such a repetition again and again and clear lines without end. HATETRIS
//! avoids pieces that can repeat a well, so this does not work against it. A value whose
//! computation met a repetition may depend on the path, so it is not stored and does not count as
//! proven.

use crate::node::NodeWell;
use hatebeam_game::{Children, Emulator, Well};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Limits of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndgameLimits {
    /// Number of expanded wells after which the search stops. Wells that are expanded afterwards, to
    /// find the moves of the result, do not count. With this limit alone, the result is deterministic.
    pub nodes: Option<u64>,
    /// Time at which the search stops. The clock is read once per 256 wells. With a deadline, the
    /// result depends on the speed of the machine.
    pub deadline: Option<Instant>,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndgameResult {
    /// Maximum number of lines found.
    pub lines: u32,
    /// The wells of a game that clears this number of lines, without the starting well. The game may
    /// continue after the last well.
    pub wells: Vec<Well>,
    /// Whether `lines` is proven to be the maximum.
    pub proven: bool,
}

/// An endgame search. Its table remains between calls and speeds up later searches.
pub struct Endgame {
    emulator: Emulator,
    table: Table,
    nodes: u64,
}

/// A child and the number of lines that its placement clears.
#[derive(Clone, Copy)]
struct Child {
    well: Well,
    lines: u32,
}

/// A well on the path of the search.
struct Frame {
    well: Well,
    key: NodeWell,
    /// Number of lines cleared between the previous well on the path and this one.
    lines: u32,
    /// Children that have not been searched yet. The most promising child is the last one.
    rest: Vec<Child>,
    /// Maximum number of lines found so far from this well.
    best: u32,
    /// The child that leads to `best` lines.
    best_child: Option<Child>,
    /// Whether the value of this well may depend on the path.
    depends_on_path: bool,
    /// Number of wells expanded before this one, in all calls.
    nodes_before: u64,
}

/// The value of a well.
struct Value {
    lines: u32,
    /// Whether the value does not depend on the path to the well.
    proven: bool,
}

/// The best path found before the search stopped.
struct Stopped {
    wells: Vec<Well>,
    lines: u32,
}

impl Endgame {
    /// Creates a search with a table of at most `table_bytes` bytes, but at least four slots.
    pub fn new(emulator: &Emulator, table_bytes: u64) -> Endgame {
        Endgame {
            emulator: emulator.clone(),
            table: Table::new(table_bytes),
            nodes: 0,
        }
    }

    /// Returns the number of wells that the exhaustive search has expanded so far, in all calls.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Finds the maximum number of lines that can be cleared from `well`, and a game that clears this
    /// number of lines. If the search reaches a limit or `cancel` becomes true, returns the best game
    /// found so far.
    pub fn search(
        &mut self,
        well: &Well,
        limits: &EndgameLimits,
        cancel: &AtomicBool,
    ) -> EndgameResult {
        let limits = Bounds {
            nodes: limits.nodes.map(|nodes| self.nodes.saturating_add(nodes)),
            deadline: limits.deadline,
            cancel,
        };
        match self.value(well, &limits) {
            Ok(value) => {
                let found = self.best_game(well, &limits);
                EndgameResult {
                    // The game may clear fewer lines than the value if the table no longer contains
                    // the values of the game's wells and a limit stops their recomputation.
                    proven: value.proven && found.lines == value.lines,
                    ..found
                }
            }
            Err(Stopped { mut wells, lines }) => {
                let mut total = lines;
                if let Some(&last) = wells.last() {
                    let found = self.best_game(&last, &limits);
                    wells.extend(found.wells);
                    total += found.lines;
                }
                EndgameResult {
                    lines: total,
                    wells,
                    proven: false,
                }
            }
        }
    }

    /// Expands a well and sorts its children.
    fn frame(&mut self, children: &mut Children, well: &Well, lines: u32) -> Frame {
        self.emulator.expand(well, children);
        let nodes_before = self.nodes;
        self.nodes += 1;
        let mut rest: Vec<Child> = children_of(children).collect();
        // The most promising child comes last: the child with the most lines, then with the lowest
        // stack, then with the fewest holes.
        rest.sort_by_cached_key(|Child { well, lines }| {
            let worse = (well.stack_height(), holes(well), *well);
            Reverse((Reverse(*lines), worse))
        });
        Frame {
            well: *well,
            key: NodeWell::pack(self.emulator.geometry(), well),
            lines,
            rest,
            best: 0,
            best_child: None,
            depends_on_path: false,
            nodes_before,
        }
    }

    /// Finds the value of a well by searching all of its descendants.
    fn value(&mut self, well: &Well, limits: &Bounds) -> Result<Value, Stopped> {
        let geometry = self.emulator.geometry();
        if let Some(lines) = self.table.get(&NodeWell::pack(geometry, well)) {
            let proven = true;
            return Ok(Value { lines, proven });
        }
        let mut children = Children::new();
        let mut on_path: HashSet<Well> = HashSet::from([*well]);
        let mut frames = vec![self.frame(&mut children, well, 0)];
        loop {
            let frame = frames
                .last_mut()
                .expect("the loop returns when it removes the root");
            if let Some(child) = frame.rest.pop() {
                if on_path.contains(&child.well) {
                    frame.depends_on_path = true;
                    continue;
                }
                if let Some(value) = self.table.get(&NodeWell::pack(geometry, &child.well)) {
                    frame.improve(child, value);
                    continue;
                }
                if limits.is_reached(self.nodes) {
                    return Err(best_so_far(&frames));
                }
                on_path.insert(child.well);
                let next = self.frame(&mut children, &child.well, child.lines);
                frames.push(next);
                continue;
            }
            let done = frames
                .pop()
                .expect("the stack is not empty: its last frame was read above");
            if !done.depends_on_path {
                let work = self.nodes - done.nodes_before;
                self.table.put(done.key, done.best, work);
            }
            on_path.remove(&done.well);
            let Some(parent) = frames.last_mut() else {
                return Ok(Value {
                    lines: done.best,
                    proven: !done.depends_on_path,
                });
            };
            parent.depends_on_path |= done.depends_on_path;
            let Frame { well, lines, .. } = done;
            parent.improve(Child { well, lines }, done.best);
        }
    }

    /// Finds a game by repeatedly choosing the child with which the most lines can be cleared. Values that
    /// are not in the table are computed again. The result is not marked as proven.
    fn best_game(&mut self, well: &Well, limits: &Bounds) -> EndgameResult {
        let geometry = self.emulator.geometry();
        let mut children = Children::new();
        let (mut wells, mut total, mut well) = (Vec::new(), 0, *well);
        let mut seen = HashSet::from([well]);
        loop {
            self.emulator.expand(&well, &mut children);
            let next: Vec<Child> = children_of(&children)
                .filter(|child| !seen.contains(&child.well))
                .collect();
            let mut best: Option<(u32, Reverse<Well>, u32)> = None;
            for Child { well, lines } in next {
                let known = self.table.get(&NodeWell::pack(geometry, &well));
                let value = known.or_else(|| self.value(&well, limits).ok().map(|v| v.lines));
                if let Some(value) = value {
                    best = best.max(Some((lines + value, Reverse(well), lines)));
                }
            }
            match best {
                Some((1.., Reverse(child), lines)) => {
                    total += lines;
                    wells.push(child);
                    seen.insert(child);
                    well = child;
                }
                _ => {
                    return EndgameResult {
                        lines: total,
                        wells,
                        proven: false,
                    };
                }
            }
        }
    }
}

impl Frame {
    /// Updates `best` and `best_child` if `child` leads to more lines than all previous children. `value`
    /// is the value of `child`.
    fn improve(&mut self, child: Child, value: u32) {
        if child.lines + value > self.best {
            self.best = child.lines + value;
            self.best_child = Some(child);
        }
    }
}

fn children_of(children: &Children) -> impl Iterator<Item = Child> {
    children.iter().map(|(well, lines)| Child {
        well: *well,
        lines: u32::from(lines),
    })
}

/// Returns the best game that an incomplete search has found: a prefix of the current path, continued
/// with the best completely searched child of its last well, if there is one.
fn best_so_far(frames: &[Frame]) -> Stopped {
    let mut before = 0;
    let mut best: Option<(u32, usize)> = None;
    for (at, frame) in frames.iter().enumerate() {
        before += frame.lines;
        if best.is_none_or(|(lines, _)| before + frame.best > lines) {
            best = Some((before + frame.best, at));
        }
    }
    let at = best.map_or(0, |(_, at)| at);
    let path = &frames[1..=at];
    let mut wells: Vec<Well> = path.iter().map(|frame| frame.well).collect();
    let mut lines: u32 = path.iter().map(|frame| frame.lines).sum();
    // The caller finds the rest of the game from this child.
    if let Some(child) = frames[at].best_child {
        lines += child.lines;
        wells.push(child.well);
    }
    Stopped { wells, lines }
}

/// Returns the number of empty cells with a filled cell above them in the same column.
fn holes(well: &Well) -> u32 {
    let mut cover = 0;
    let mut holes = 0;
    for row in well.rows().iter().rev() {
        holes += (cover & !row).count_ones();
        cover |= row;
    }
    holes
}

/// The limits of one call.
struct Bounds<'a> {
    /// Limit for the number of wells expanded in all calls.
    nodes: Option<u64>,
    deadline: Option<Instant>,
    cancel: &'a AtomicBool,
}

impl Bounds<'_> {
    fn is_reached(&self, nodes: u64) -> bool {
        if self.nodes.is_some_and(|limit| nodes >= limit) {
            return true;
        }
        // Check the clock and `cancel` only once per 256 nodes.
        nodes.is_multiple_of(256)
            && (self.cancel.load(Ordering::Relaxed)
                || self
                    .deadline
                    .is_some_and(|deadline| Instant::now() >= deadline))
    }
}

/// A hash table of the values of wells.
struct Table {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    key: NodeWell,
    value: u16,
    /// One plus the binary logarithm of the number of wells expanded to find the value, or 0 if the
    /// slot is free.
    work: u8,
}

/// Number of slots in a bucket. A well may be stored in any slot of its bucket.
const BUCKET: usize = 4;

impl Table {
    fn new(bytes: u64) -> Table {
        let slots = (bytes / size_of::<Slot>() as u64).max(BUCKET as u64);
        let free = Slot {
            key: NodeWell::default(),
            value: 0,
            work: 0,
        };
        Table {
            slots: vec![free; usize::try_from(slots).unwrap_or(usize::MAX) / BUCKET * BUCKET],
        }
    }

    fn bucket(&self, key: &NodeWell) -> usize {
        let buckets = self.slots.len() / BUCKET;
        BUCKET * ((u128::from(key.hash()) * buckets as u128) >> 64) as usize
    }

    fn get(&self, key: &NodeWell) -> Option<u32> {
        let at = self.bucket(key);
        self.slots[at..at + BUCKET]
            .iter()
            .find(|slot| slot.work > 0 && slot.key == *key)
            .map(|slot| u32::from(slot.value))
    }

    fn put(&mut self, key: NodeWell, value: u32, nodes: u64) {
        let Ok(value) = u16::try_from(value) else {
            return;
        };
        let work = 1 + nodes.max(1).ilog2() as u8;
        let at = self.bucket(&key);
        let bucket = &mut self.slots[at..at + BUCKET];
        if let Some(slot) = bucket.iter_mut().min_by_key(|slot| slot.work) {
            *slot = Slot { key, value, work };
        }
    }
}
