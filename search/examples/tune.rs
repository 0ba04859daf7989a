//! Tunes the weights of the `knewjade` evaluator. It changes some weights at random and runs beams
//! of several widths until no well has a child. It keeps the change if the games become longer in
//! total.
//!
//! ```text
//! cargo run --release -p hatebeam-search --example tune -- MINUTES SEED QUIESCENCE WIDTH... [NAME=VALUE...]
//! ```
//!
//! The length of a game is a chaotic function of the weights, so a single width gives little
//! information and the sum over several widths gives more. A change is kept only if two conditions
//! hold. The sum over the given widths must not decrease, and the sum that also includes the widths
//! that are 1/8 greater must increase. The program prints each kept change with the lines cleared
//! at each width.

use hatebeam_game::{Emulator, Geometry, Rules, Well};
use hatebeam_search::{
    EvaluatorKind, EvaluatorSpec, Frontier, Node, NodeWell, Quiescence, ShardLayout, Step, Weights,
};
use serde_json::Value;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Maximum number of pieces in a game. In practice, games are far shorter with any weights.
const MAX_PIECES: u32 = 5000;

/// Returns the approximate size of a change to a weight.
fn step_of(name: &str) -> f64 {
    match name {
        "score" => 150.0,
        "holes" => 8.0,
        "bumpiness" | "steps" => 4.0,
        "surface_height" | "stack_height" => 20.0,
        _ => 40.0,
    }
}

/// Runs a beam. Returns the number of lines in its best game and the number of pieces in its
/// longest game.
fn beam(spec: EvaluatorSpec, width: usize, threads: usize) -> Result<(u16, u32), Box<dyn Error>> {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let step = Step::new(&emulator, spec, ShardLayout::local(width), threads)?;
    let root = Node {
        score: 0,
        well: NodeWell::pack(Geometry::STANDARD, &Well::EMPTY),
        lines: 0,
        hint: 0,
    };
    let mut frontier = Frontier::new(0, [root], ShardLayout::local(width));
    let mut best = 0;
    while !frontier.is_empty() && frontier.depth < MAX_PIECES {
        let lines = frontier.nodes().map(|node| node.lines).max();
        best = best.max(lines.unwrap_or(0));
        let (next, _) = step
            .run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0))
            .map_err(|_| "the step was cancelled")?;
        frontier = next;
    }
    Ok((best, frontier.depth))
}

struct Tuner {
    quiescence: Quiescence,
    threads: usize,
}

impl Tuner {
    /// Returns the mean number of pieces, and the number of lines for each width.
    fn evaluate(
        &self,
        weights: &Value,
        widths: &[usize],
    ) -> Result<(f64, Vec<u16>), Box<dyn Error>> {
        let spec = EvaluatorSpec {
            kind: EvaluatorKind::Knewjade,
            weights: serde_json::from_value(weights.clone())?,
            quiescence: self.quiescence,
        };
        let (mut pieces, mut lines) = (0, Vec::new());
        for &width in widths {
            let (best, depth) = beam(spec, width, self.threads)?;
            pieces += depth;
            lines.push(best);
        }
        Ok((f64::from(pieces) / widths.len() as f64, lines))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [minutes, seed, quiescence, rest @ ..] = args.as_slice() else {
        return Err("usage: tune MINUTES SEED QUIESCENCE WIDTH... [NAME=VALUE...]".into());
    };
    let time = Duration::from_secs_f64(60.0 * minutes.parse::<f64>()?);
    let mut state = seed.parse::<u64>()? | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut weights = serde_json::to_value(Weights::default())?;
    let mut widths = Vec::new();
    for text in rest {
        match text.split_once('=') {
            Some((name, value)) => weights[name] = value.parse::<f64>()?.into(),
            None => widths.push(text.parse::<usize>()?),
        }
    }
    // These widths are searched only if the result at the given widths is no worse.
    let between: Vec<usize> = widths.iter().map(|width| width * 9 / 8).collect();
    let tuner = Tuner {
        quiescence: *Quiescence::ALL
            .iter()
            .find(|mode| mode.name() == quiescence)
            .ok_or("unknown quiescence: use off, single, forced or first")?,
        threads: std::thread::available_parallelism()?.get(),
    };
    let names: Vec<String> = weights
        .as_object()
        .ok_or("the weights are not an object")?
        .keys()
        .cloned()
        .collect();
    let (mut first, mut lines) = tuner.evaluate(&weights, &widths)?;
    let (mut second, more) = tuner.evaluate(&weights, &between)?;
    lines.extend(more);
    println!("{first:.1} {second:.1} {lines:?} {weights}");
    let start = Instant::now();
    while start.elapsed() < time {
        let mut changed = weights.clone();
        for _ in 0..1 + (3.0 * random()) as usize {
            let name = &names[(random() * names.len() as f64) as usize % names.len()];
            let change = ((0..6).map(|_| random()).sum::<f64>() - 3.0) * step_of(name);
            let value = changed[name].as_f64().unwrap_or(0.0) + change;
            changed[name] = ((value * 10.0).round() / 10.0).into();
        }
        let (new_first, mut lines) = tuner.evaluate(&changed, &widths)?;
        if new_first < first {
            continue;
        }
        let (new_second, more) = tuner.evaluate(&changed, &between)?;
        lines.extend(more);
        if new_first + new_second > first + second {
            (first, second, weights) = (new_first, new_second, changed);
            let seconds = start.elapsed().as_secs();
            println!("{seconds} s: {first:.1} {second:.1} {lines:?} {weights}");
        }
    }
    Ok(())
}
