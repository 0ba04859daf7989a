//! `hatebeam perft`: count the wells after n pieces.
//!
//! **What is counted.** Distinct (well, score) pairs of live wells under HATETRIS Mild, from the empty well. Cells are
//! conserved: a piece adds four, and a cleared line removes a row. So the well determines the score among wells after the
//! same number of pieces, and it suffices to count wells.
//!
//! **Memory.** A level is a list of distinct wells, 32 bytes each. The next level is generated in shards by hash: every
//! well of the level is expanded once per shard, and the children of the shard are collected, sorted and deduplicated. The
//! buffer of a shard takes at most about a quarter of the allowed memory; the wells of both levels take the rest. The last
//! level is only counted. At 10 × 16 a level has about ten times the wells of the previous level, so the default of 2 GiB
//! suffices up to depth 8 (232 million wells), in three to four minutes.
//!
//! Nothing is saved: an interrupted count starts again.

use crate::args::VariantArgs;
use crate::output;
use anyhow::bail;
use hatebeam_game::{Children, Emulator, Well};
use serde::Serialize;

const HELP: &str = "\
Counts the distinct (well, score) pairs of live wells after each number of pieces, from the empty well and under
HATETRIS Mild, which chooses the same pieces as HATETRIS until a well repeats.

Examples:
  hatebeam perft --depth 6
  hatebeam perft --depth 12 --height 4 --json";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct PerftArgs {
    /// Number of pieces to count to, at most 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    depth: u32,
    #[command(flatten)]
    variant: VariantArgs,
    /// Maximum memory in MiB; the count fails if it does not suffice
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
    memory: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Counts {
    width: usize,
    height: usize,
    depth: u32,
    counts: Vec<u64>,
}

impl PerftArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let geometry = self.variant.geometry()?;
        let emulator = Emulator::new(geometry, self.variant.rules());
        let mut counter = Counter {
            emulator,
            children: Children::new(),
            level: Vec::new(),
            shard: Vec::new(),
            memory_bytes: self.memory << 20,
        };
        let mut counts = Vec::new();
        if !self.json {
            output::print("pieces  wells\n")?;
        }
        for depth in 0..=self.depth {
            let count = counter.count(depth, depth == self.depth)?;
            counts.push(count);
            // One empty level is printed; all levels after it are empty too.
            let is_news = count > 0 || counts[counts.len().saturating_sub(2)] > 0;
            if !self.json && is_news {
                output::print(format_args!("{depth:>6}  {count}\n"))?;
            }
        }
        if self.json {
            output::print_json(&Counts {
                width: geometry.width(),
                height: geometry.height(),
                depth: self.depth,
                counts,
            })?;
        }
        Ok(())
    }
}

/// Bytes of a well in memory.
const WELL_BYTES: u64 = size_of::<Well>() as u64;

/// Counts the levels in their order.
struct Counter {
    emulator: Emulator,
    children: Children,
    /// The distinct wells of the last counted level.
    level: Vec<Well>,
    /// The children of one shard.
    shard: Vec<Well>,
    memory_bytes: u64,
}

impl Counter {
    /// Returns the number of wells after `depth` pieces. Call it for 0, 1, 2 … in this order, with `is_last` for the last
    /// call.
    fn count(&mut self, depth: u32, is_last: bool) -> anyhow::Result<u64> {
        if depth == 0 {
            self.level = vec![Well::EMPTY];
            return Ok(1);
        }
        let shards = self.shards_needed();
        let mut next: Vec<Well> = Vec::new();
        let mut count = 0;
        for index in 0..shards {
            let number = index + 1;
            output::progress(format_args!("level {depth}: shard {number} of {shards}"));
            self.collect(index, shards);
            count += self.shard.len() as u64;
            if is_last {
                continue;
            }
            let kept = (self.level.len() + next.len() + self.shard.len()) as u64;
            if kept > self.memory_bytes / 4 * 3 / WELL_BYTES {
                output::progress("");
                bail!(
                    "level {depth} does not fit in {} MiB: allow more with --memory, or stop at --depth {depth}",
                    self.memory_bytes >> 20
                );
            }
            next.reserve_exact(self.shard.len());
            next.append(&mut self.shard);
        }
        output::progress("");
        self.level = next;
        Ok(count)
    }

    /// Returns the number of shards with which the children of one fit in its buffer, duplicates included.
    fn shards_needed(&mut self) -> u64 {
        let mut total = 0;
        for well in &self.level {
            self.emulator.expand(well, &mut self.children);
            total += self.children.len() as u64;
        }
        (total * WELL_BYTES).div_ceil(self.memory_bytes / 4).max(1)
    }

    /// Collects the distinct children of the level that belong to a shard.
    fn collect(&mut self, index: u64, shards: u64) {
        self.shard.clear();
        for well in &self.level {
            self.emulator.expand(well, &mut self.children);
            let is_in_shard = |child: &&Well| shards == 1 || child.hash() % shards == index;
            self.shard
                .extend(self.children.wells().iter().filter(is_in_shard));
        }
        self.shard.sort_unstable();
        self.shard.dedup();
    }
}
