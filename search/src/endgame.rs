//! Endgame: the most lines that can still be had from a well, by exhaustive depth-first search.
//!
//! Under HATETRIS Mild a well settles the piece that comes, so that the most lines still to be had
//! depend on the well alone: the greatest, over its children, of the lines on the way and what is to
//! be had from there. Wells that were searched to the end are kept in a table of fixed size, whole well
//! and all; where it is full, what took least work to find gives way. A smaller table makes the search
//! slower and never wrong.
//!
//! A well that comes back on its own way is not entered again: HATETRIS has a rule against profiting
//! from it. What was found below such a place may hang on the way there, and is neither kept nor called
//! proven.

use crate::node::NodeWell;
use hatebeam_game::{Children, Emulator, Well};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When a search gives up.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndgameLimits {
    /// Wells expanded at most. The same limit gives the same answer.
    pub nodes: Option<u64>,
    /// The time at which to stop. What is found by then depends on the machine.
    pub deadline: Option<Instant>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndgameResult {
    /// The most lines found.
    pub lines: u32,
    /// A game that has them: the wells after the one searched from. It may have to be brought to its
    /// end from the last of them.
    pub wells: Vec<Well>,
    /// Whether no game has more.
    pub proven: bool,
}

/// A search with its table, which later searches of the same endgame profit from.
pub struct Endgame {
    emulator: Emulator,
    table: Table,
    nodes: u64,
}

/// A well on the way.
struct Frame {
    well: Well,
    key: NodeWell,
    /// Lines on the way from the well before.
    lines: u32,
    /// Children to be searched, the most promising last.
    rest: Vec<(Well, u32)>,
    /// The most lines found from here, and the child they begin with, with the lines on the way to it.
    best: u32,
    best_child: Option<(Well, u32)>,
    /// Whether something below hangs on the way here.
    tainted: bool,
    /// Nodes expanded before this one.
    begun: u64,
}

/// The wells before the root of a search that was stopped, and the child its best lines begin with.
struct Stopped {
    wells: Vec<Well>,
    lines: u32,
}

impl Endgame {
    /// A search with a table of at most so many bytes.
    pub fn new(emulator: &Emulator, table_bytes: u64) -> Endgame {
        Endgame {
            emulator: emulator.clone(),
            table: Table::new(table_bytes),
            nodes: 0,
        }
    }

    /// How many wells were expanded so far.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// The most lines from this well on, with a game that has them.
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
            Ok((lines, is_clean)) => {
                let (wells, found) = self.line(well, &limits);
                EndgameResult {
                    // Where the table forgot too much, the line may be a worse one.
                    lines: found,
                    proven: is_clean && found == lines,
                    wells,
                }
            }
            Err(Stopped { mut wells, lines }) => {
                let (more, found) = match wells.last() {
                    Some(&last) => self.line(&last, &limits),
                    None => (Vec::new(), 0),
                };
                wells.extend(more);
                EndgameResult {
                    lines: lines + found,
                    wells,
                    proven: false,
                }
            }
        }
    }

    fn frame(&mut self, children: &mut Children, well: &Well, lines: u32) -> Frame {
        self.emulator.expand(well, children);
        let begun = self.nodes;
        self.nodes += 1;
        let mut rest: Vec<(Well, u32)> = children
            .iter()
            .map(|(child, lines)| (*child, u32::from(lines)))
            .collect();
        // Lines first; then low stacks, and few holes in them.
        rest.sort_by_cached_key(|(well, lines)| {
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
            tainted: false,
            begun,
        }
    }

    /// The most lines from a well, and whether that is so whatever came before it.
    fn value(&mut self, well: &Well, limits: &Bounds) -> Result<(u32, bool), Stopped> {
        let geometry = self.emulator.geometry();
        if let Some(value) = self.table.get(&NodeWell::pack(geometry, well)) {
            return Ok((value, true));
        }
        let mut children = Children::new();
        let mut on_the_way: HashSet<Well> = HashSet::from([*well]);
        let mut frames = vec![self.frame(&mut children, well, 0)];
        loop {
            let Some(frame) = frames.last_mut() else {
                unreachable!("the root is left by returning");
            };
            if let Some((child, lines)) = frame.rest.pop() {
                if on_the_way.contains(&child) {
                    frame.tainted = true;
                    continue;
                }
                if let Some(value) = self.table.get(&NodeWell::pack(geometry, &child)) {
                    frame.take(&child, lines, value);
                    continue;
                }
                if limits.is_reached(self.nodes) {
                    return Err(stopped(&frames));
                }
                on_the_way.insert(child);
                let next = self.frame(&mut children, &child, lines);
                frames.push(next);
                continue;
            }
            let Some(done) = frames.pop() else {
                unreachable!("it was just looked at");
            };
            if !done.tainted {
                self.table.put(done.key, done.best, self.nodes - done.begun);
            }
            on_the_way.remove(&done.well);
            let Some(parent) = frames.last_mut() else {
                return Ok((done.best, !done.tainted));
            };
            parent.tainted |= done.tainted;
            parent.take(&done.well, done.lines, done.best);
        }
    }

    /// A game from a well that has the most lines, as far as the table tells or a search finds, and its
    /// lines.
    fn line(&mut self, well: &Well, limits: &Bounds) -> (Vec<Well>, u32) {
        let geometry = self.emulator.geometry();
        let mut children = Children::new();
        let (mut wells, mut total, mut well) = (Vec::new(), 0, *well);
        let mut seen = HashSet::from([well]);
        loop {
            self.emulator.expand(&well, &mut children);
            let next: Vec<(Well, u32)> = children
                .iter()
                .map(|(child, lines)| (*child, u32::from(lines)))
                .filter(|(child, _)| !seen.contains(child))
                .collect();
            let mut best: Option<(u32, Reverse<Well>, u32)> = None;
            for (child, lines) in next {
                let known = self.table.get(&NodeWell::pack(geometry, &child));
                let value =
                    known.or_else(|| self.value(&child, limits).ok().map(|(value, _)| value));
                if let Some(value) = value {
                    best = best.max(Some((lines + value, Reverse(child), lines)));
                }
            }
            match best {
                // With no line to be had any more there is nothing to choose.
                Some((1.., Reverse(child), lines)) => {
                    total += lines;
                    wells.push(child);
                    seen.insert(child);
                    well = child;
                }
                _ => return (wells, total),
            }
        }
    }
}

impl Frame {
    fn take(&mut self, child: &Well, lines: u32, value: u32) {
        if lines + value > self.best {
            self.best = lines + value;
            self.best_child = Some((*child, lines));
        }
    }
}

/// The best that was found by the time of stopping: some way on the stack, and from its end a child
/// that was searched to the end.
fn stopped(frames: &[Frame]) -> Stopped {
    let mut before = 0;
    let mut best: Option<(u32, usize)> = None;
    for (at, frame) in frames.iter().enumerate() {
        before += frame.lines;
        if best.is_none_or(|(lines, _)| before + frame.best > lines) {
            best = Some((before + frame.best, at));
        }
    }
    let at = best.map_or(0, |(_, at)| at);
    let way = &frames[1..=at];
    let mut wells: Vec<Well> = way.iter().map(|frame| frame.well).collect();
    let mut lines: u32 = way.iter().map(|frame| frame.lines).sum();
    // The caller follows what is to be had from there.
    if let Some((child, on_the_way)) = frames[at].best_child {
        lines += on_the_way;
        wells.push(child);
    }
    Stopped { wells, lines }
}

/// Empty cells below filled ones.
fn holes(well: &Well) -> u32 {
    let mut cover = 0;
    let mut holes = 0;
    for row in well.rows().iter().rev() {
        holes += (cover & !row).count_ones();
        cover |= row;
    }
    holes
}

struct Bounds<'a> {
    nodes: Option<u64>,
    deadline: Option<Instant>,
    cancel: &'a AtomicBool,
}

impl Bounds<'_> {
    fn is_reached(&self, nodes: u64) -> bool {
        if self.nodes.is_some_and(|limit| nodes >= limit) {
            return true;
        }
        // The clock is looked at now and then.
        nodes.is_multiple_of(256)
            && (self.cancel.load(Ordering::Relaxed)
                || self
                    .deadline
                    .is_some_and(|deadline| Instant::now() >= deadline))
    }
}

/// Wells whose value is known.
struct Table {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    key: NodeWell,
    value: u16,
    /// The logarithm of the nodes it took; 0 where the slot is free.
    work: u8,
}

/// Slots that a well may be in.
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
