//! `hatebeam perft`: how many wells there are after n pieces.
//!
//! **What is counted.** Distinct (well, score) pairs of live wells under HATETRIS Mild, from the
//! empty well. Cells are conserved (four come with a piece, a row of them goes with a line), so that
//! among wells after the same number of pieces the well settles the score: wells are counted.
//!
//! **Memory.** A level is a list of distinct wells, 32 bytes each. The next one is made in shards by
//! hash: every well of the level is expanded once for each shard, and of the children those of the
//! shard are gathered, sorted and stripped of repetitions. A shard's buffer takes at most about a
//! quarter of the memory allowed; what is kept of both levels the rest. The last level is only
//! counted. At 10 × 16 a level has about ten times the wells of the one before it, so that the
//! default of 2 GiB suffices to depth 8 (232 million wells), in three to four minutes.
//!
//! Nothing is saved on the way: an interrupted count starts again.

use crate::args::PerftArgs;
use crate::output;
use anyhow::bail;
use hatebeam_game::{Children, Emulator, Well};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    width: usize,
    height: usize,
    depth: u32,
    counts: Vec<u64>,
}

/// Runs `hatebeam perft`.
pub(crate) fn perft(args: &PerftArgs) -> anyhow::Result<()> {
    let geometry = args.variant.geometry()?;
    let emulator = Emulator::new(geometry, args.variant.rules());
    let mut counter = Counter::new(emulator, args.memory << 20);
    let mut counts = Vec::new();
    if !args.json {
        output::print(&"pieces  wells\n")?;
    }
    for depth in 0..=args.depth {
        let count = counter.count(depth, depth == args.depth)?;
        counts.push(count);
        // After the level on which all games have ended there is nothing new to say.
        let news = count > 0 || counts[counts.len().saturating_sub(2)] > 0;
        if !args.json && news {
            output::print(&format_args!("{depth:>6}  {count}\n"))?;
        }
    }
    if args.json {
        let (width, height) = (geometry.width(), geometry.height());
        let report = Report {
            width,
            height,
            depth: args.depth,
            counts,
        };
        output::print(&format_args!("{}\n", serde_json::to_string(&report)?))?;
    }
    Ok(())
}

/// Counts level after level.
struct Counter {
    emulator: Emulator,
    children: Children,
    /// The distinct wells of the level counted last.
    level: Vec<Well>,
    /// The children of one shard.
    shard: Vec<Well>,
    memory_bytes: u64,
    shows_progress: bool,
}

impl Counter {
    fn new(emulator: Emulator, memory_bytes: u64) -> Counter {
        Counter {
            emulator,
            children: Children::new(),
            level: Vec::new(),
            shard: Vec::new(),
            memory_bytes,
            shows_progress: io::stderr().is_terminal(),
        }
    }

    /// The number of wells after `depth` pieces; to be called for 0, 1, 2 … in turn, and with `last`
    /// when nothing more will be asked.
    fn count(&mut self, depth: u32, last: bool) -> anyhow::Result<u64> {
        if depth == 0 {
            self.level = vec![Well::EMPTY];
            return Ok(1);
        }
        let shards = self.shards_needed();
        let mut next: Vec<Well> = Vec::new();
        let mut count = 0;
        for index in 0..shards {
            self.progress(format_args!(
                "level {depth}: shard {} of {shards}",
                index + 1
            ));
            self.gather(index, shards);
            count += self.shard.len() as u64;
            if !last {
                let kept = (self.level.len() + next.len() + self.shard.len()) as u64;
                if kept > self.memory_bytes / 4 * 3 / WELL_BYTES {
                    self.progress("");
                    bail!(
                        "level {depth} does not fit into {} MiB: allow more with --memory, or stop \
                         at --depth {depth}",
                        self.memory_bytes >> 20
                    );
                }
                next.reserve_exact(self.shard.len());
                next.append(&mut self.shard);
            }
        }
        self.progress("");
        self.level = next;
        Ok(count)
    }

    /// How many shards make the children of one fit into its buffer, repetitions included.
    fn shards_needed(&mut self) -> u64 {
        let mut total = 0;
        for well in &self.level {
            self.emulator.expand(well, &mut self.children);
            total += self.children.len() as u64;
        }
        (total * WELL_BYTES).div_ceil(self.memory_bytes / 4).max(1)
    }

    /// Puts the level's distinct children of one shard into `self.shard`.
    fn gather(&mut self, index: u64, shards: u64) {
        self.shard.clear();
        for well in &self.level {
            self.emulator.expand(well, &mut self.children);
            let of_shard = |child: &&Well| shards == 1 || child.hash() % shards == index;
            self.shard
                .extend(self.children.wells().iter().filter(of_shard));
        }
        self.shard.sort_unstable();
        self.shard.dedup();
    }

    /// Shows how far the count is, on one line that is written over.
    fn progress(&self, text: impl std::fmt::Display) {
        if self.shows_progress {
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }
}

/// Bytes a well takes in memory.
const WELL_BYTES: u64 = size_of::<Well>() as u64;
