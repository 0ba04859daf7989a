//! Examinations: beam searches that measure a network. Their wells are not used for training.

use crate::beam::{BeamSettings, run_beam};
use crate::recipe::ExamRecipe;
use crate::workers::run_in_threads;
use hatebeam_game::Emulator;
use hatebeam_search::{Evaluator, Network};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Result of one beam search of an examination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExamResult {
    /// Width of the beam.
    pub width: usize,
    /// Number of lines cleared in the best game.
    pub lines: u32,
    /// Number of pieces in the longest game.
    pub pieces: usize,
    /// Duration of the search in seconds.
    pub seconds: f64,
}

/// Runs the beam searches of an examination on up to `threads` threads. If `cancel` becomes `true`, the searches end early
/// and their results are meaningless.
pub fn examine(
    emulator: &Emulator,
    network: &Arc<Network>,
    recipe: &ExamRecipe,
    threads: usize,
    cancel: &AtomicBool,
) -> Vec<ExamResult> {
    let run = |&width: &usize| {
        let start = Instant::now();
        let mut evaluator =
            Evaluator::with_network(emulator, Arc::clone(network), recipe.quiescence);
        let settings = BeamSettings::new(width, recipe.pieces);
        let beam = run_beam(emulator, &mut evaluator, &settings, cancel);
        ExamResult {
            width,
            lines: u32::from(beam.lines()),
            pieces: beam.pieces(),
            seconds: start.elapsed().as_secs_f64(),
        }
    };
    run_in_threads(threads, &recipe.widths, run)
}
