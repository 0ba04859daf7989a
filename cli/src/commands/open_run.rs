//! A run that a command has opened, on this machine or in an object store.

use hatebeam_game::{Geometry, Rules, Well};
use hatebeam_runs::{GameTo, ReadableRun};
use hatebeam_store::{DepthRecord, Lookup};

/// A run whose games can be read back.
pub(super) struct OpenRun {
    pub(super) geometry: Geometry,
    pub(super) rules: Rules,
    pub(super) depths: Vec<DepthRecord>,
    /// Reads back the game that leads to a well at a depth.
    pub(super) game_to: Box<dyn FnOnce(u32, Well) -> anyhow::Result<GameTo>>,
}

impl OpenRun {
    pub(super) fn new<R: ReadableRun + 'static>(
        run: R,
        game_to: impl FnOnce(R, u32, Well) -> anyhow::Result<GameTo> + 'static,
    ) -> OpenRun {
        OpenRun {
            geometry: run.store().geometry(),
            rules: run.emulator().rules(),
            depths: run.store().depths().to_vec(),
            game_to: Box::new(|depth, well| game_to(run, depth, well)),
        }
    }
}
