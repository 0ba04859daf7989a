//! A beam search that continues a game of HATETRIS. At each depth (number of pieces placed), it keeps the best wells,
//! which are called the frontier. Each request searches a limited number of further depths.

use crate::answer::Failure;
use crate::hatetris::{GEOMETRY, rules};
use crate::scores::EvaluatorName;
use hatebeam_game::{Children, Emulator, Well};
use hatebeam_search::{Frontier, Network, Node, NodeWell, RecentCuts, ShardLayout, Step};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Number of stored wells above which the search ends. This many wells take 224 MB, which browsers on phones still
/// provide.
const MOST_WELLS: usize = 8_000_000;
const MOST_WIDTH: usize = 100_000;
/// Number of cleared rows above which a beam neither starts nor continues, far below [`MAX_LINES`](hatebeam_search::MAX_LINES), which the search
/// must not exceed.
const MOST_LINES: u16 = 60_000;

#[derive(Deserialize)]
pub(crate) struct BeamStart {
    /// The well in which the search starts, in hex.
    well: String,
    /// Number of rows cleared before this well.
    lines: u16,
    width: usize,
    #[serde(flatten)]
    evaluator: EvaluatorName,
}

#[derive(Serialize)]
pub(crate) struct Progress {
    /// Number of pieces placed since the start of the beam.
    depth: u32,
    /// Number of wells in the last frontier.
    wells: usize,
    /// Number of children generated at all depths.
    children: u64,
    /// Digest of the last frontier.
    digest: String,
    /// Greatest number of rows cleared in a game of the beam, including rows cleared before the beam started.
    lines: u16,
    best: BestWell,
    /// Reason why the beam ended, or `None` if it can continue.
    end: Option<&'static str>,
}

/// The well with the greatest score in the last frontier.
#[derive(Serialize)]
struct BestWell {
    rows: Vec<u16>,
    score: i32,
    lines: u16,
}

pub(crate) struct Beam {
    emulator: Emulator,
    step: Step,
    width: u64,
    cuts: RecentCuts,
    /// The frontiers of all depths, none of which is empty.
    frontiers: Vec<Arc<Frontier>>,
    wells: usize,
    children: u64,
    lines: u16,
    end: Option<&'static str>,
}

impl Beam {
    pub(crate) fn new(start: &BeamStart, network: Option<&Network>) -> Result<Beam, Failure> {
        if !(1..=MOST_WIDTH).contains(&start.width) {
            return Err(format!("the width must be 1 to {MOST_WIDTH}").into());
        }
        if start.lines > MOST_LINES {
            return Err(format!("the number of lines must be at most {MOST_LINES}").into());
        }
        let emulator = Emulator::new(GEOMETRY, rules());
        let layout = ShardLayout::local(start.width);
        let spec = start.evaluator.spec(network)?;
        let well = Well::from_hex(GEOMETRY, &start.well)?;
        let root = Node::first(GEOMETRY, &well, start.lines);
        Ok(Beam {
            step: Step::new(&emulator, spec, layout, 1)?,
            emulator,
            width: start.width as u64,
            cuts: RecentCuts::default(),
            frontiers: vec![Arc::new(Frontier::new(0, [root], layout))],
            wells: 1,
            children: 0,
            lines: start.lines,
            end: None,
        })
    }

    /// Searches at most `depths` further depths.
    pub(crate) fn run(&mut self, depths: u32) {
        for _ in 0..depths {
            if self.end.is_some() {
                return;
            }
            let frontier = Arc::clone(self.last());
            let (cancel, progress) = (AtomicBool::new(false), AtomicU64::new(0));
            let (next, stats) = self
                .step
                .advance(frontier, self.cuts.floor(), &cancel, &progress)
                .expect("this step is never cancelled");
            self.children += stats.children;
            if next.is_empty() {
                self.end = Some("every game is over");
                return;
            }
            let worst = next.nodes().map(|node| node.score).min();
            self.cuts
                .add(next.len() as u64, worst.unwrap_or(0), self.width);
            self.lines = next
                .nodes()
                .map(|node| node.lines)
                .fold(self.lines, u16::max);
            self.wells += next.len();
            self.frontiers.push(Arc::new(next));
            if self.wells > MOST_WELLS {
                self.end = Some("the memory for wells is full: choose a smaller width");
            }
            if self.lines > MOST_LINES {
                self.end = Some("the game clears too many lines for the search");
            }
        }
    }

    fn last(&self) -> &Arc<Frontier> {
        self.frontiers
            .last()
            .expect("the beam always contains its first frontier")
    }

    /// Returns the node with the greatest score in the last frontier. Among equal scores, the greatest hash wins.
    fn best(&self) -> Node {
        let rank = |node: &&Node| (node.score, node.well.hash());
        let best = self.last().nodes().max_by_key(rank);
        *best.expect("stored frontiers are not empty")
    }

    pub(crate) fn progress(&self) -> Progress {
        let best = self.best();
        let well = unpack(&best.well);
        let rows = well.rows()[..GEOMETRY.height()].iter().rev();
        Progress {
            depth: self.last().depth,
            wells: self.last().len(),
            children: self.children,
            digest: self.last().digest().to_string(),
            lines: self.lines,
            best: BestWell {
                rows: rows.copied().collect(),
                score: best.score,
                lines: best.lines,
            },
            end: self.end,
        }
    }

    /// Returns the wells of a game in hex, from the first to the last. If the beam can continue, the last well is the
    /// best well. If the beam has ended, the last well is a well with the most rows cleared.
    pub(crate) fn path(&self) -> Vec<String> {
        let mut target = self.best();
        let mut depth = self.frontiers.len() - 1;
        if self.end.is_some() {
            for (at, frontier) in self.frontiers.iter().enumerate().rev() {
                let best = frontier.nodes().max_by_key(|node| node.lines);
                if let Some(best) = best.filter(|best| best.lines > target.lines) {
                    (target, depth) = (*best, at);
                }
            }
        }
        let mut path = vec![target.well];
        let mut children = Children::new();
        for frontier in self.frontiers[..depth].iter().rev() {
            target = self.parent(frontier, &target, &mut children);
            path.push(target.well);
        }
        path.iter()
            .rev()
            .map(|well| unpack(well).to_hex(GEOMETRY))
            .collect()
    }

    /// Returns the first node in `frontier` that generates `child`.
    fn parent(&self, frontier: &Frontier, child: &Node, children: &mut Children) -> Node {
        let well = unpack(&child.well);
        let mut parents = frontier.nodes().filter(|parent| {
            let parent_well = unpack(&parent.well);
            if parent_well.hash() as u8 != child.hint {
                return false;
            }
            self.emulator.expand(&parent_well, children);
            children.wells().contains(&well)
        });
        *parents
            .next()
            .expect("every well has a parent in the previous frontier")
    }
}

fn unpack(well: &NodeWell) -> Well {
    well.unpack(GEOMETRY)
        .expect("frontiers contain only wells of this geometry")
}
