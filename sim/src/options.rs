//! The options of a simulation.

use crate::plan::Mix;
use crate::trace::Detail;

/// Options of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Selection of the classes of events.
    pub mix: Mix,
    /// Level of detail of the log.
    pub detail: Detail,
    /// A deliberate fault, to test whether the simulation detects it.
    pub sabotage: Option<Sabotage>,
}

/// A deliberate fault that the simulation must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The object store ignores the conditions of writes, except those of a coordinator's startup probe.
    UnconditionalStore,
    /// Workers accept children (new wells) that other workers sent in an earlier, abandoned attempt at a depth.
    ForgottenAttempts,
    /// Workers whose search differs from the coordinator's search claim to have the same search.
    ForgedFingerprints,
}
