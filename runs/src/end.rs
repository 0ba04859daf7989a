//! States of runs, and reasons why searches end.

use serde::{Deserialize, Serialize};
use std::fmt;

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The run waits in the queue.
    Queued,
    /// The run is being searched, or was being searched when its coordinator stopped.
    Running,
    /// Every game is over, or the search has reached a limit.
    Finished,
    /// A user stopped the run.
    Cancelled,
    /// An error ended the run.
    Failed,
}

impl RunState {
    /// All states.
    pub const ALL: [RunState; 5] = [
        RunState::Queued,
        RunState::Running,
        RunState::Finished,
        RunState::Cancelled,
        RunState::Failed,
    ];

    /// Returns the name of the state, which is also its serialized form.
    pub const fn name(self) -> &'static str {
        match self {
            RunState::Queued => "queued",
            RunState::Running => "running",
            RunState::Finished => "finished",
            RunState::Cancelled => "cancelled",
            RunState::Failed => "failed",
        }
    }

    /// Returns whether the run is queued or running.
    pub const fn is_open(self) -> bool {
        matches!(self, RunState::Queued | RunState::Running)
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Every game is over: no well at the last depth has a child from which a game can continue.
    Over,
    /// At the next depth, a game could clear more lines than a [`Node`](hatebeam_search::Node) can count.
    MaxLines,
    /// The depth limit was reached.
    MaxDepth,
    /// One more depth would exceed the cost limit.
    MaxCost,
    /// One more depth would exceed the time limit.
    MaxHours,
    /// A user stopped the search.
    Interrupted,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [EndReason; 6] = [
        EndReason::Over,
        EndReason::MaxLines,
        EndReason::MaxDepth,
        EndReason::MaxCost,
        EndReason::MaxHours,
        EndReason::Interrupted,
    ];

    /// Returns the name of the reason, which is also its serialized form. A limit of a run has the name of the option that
    /// sets it.
    pub const fn name(self) -> &'static str {
        match self {
            EndReason::Over => "over",
            EndReason::MaxLines => "max-lines",
            EndReason::MaxDepth => "max-depth",
            EndReason::MaxCost => "max-cost",
            EndReason::MaxHours => "max-hours",
            EndReason::Interrupted => "interrupted",
        }
    }

    /// Returns the reason with this name, or `None` if no reason has it.
    pub fn from_name(name: &str) -> Option<EndReason> {
        EndReason::ALL.into_iter().find(|end| end.name() == name)
    }

    /// Returns whether a limit of the run ended the search. The run can then be continued with a higher limit.
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            EndReason::MaxDepth | EndReason::MaxCost | EndReason::MaxHours
        )
    }

    /// Returns a description of the reason.
    pub const fn words(self) -> &'static str {
        match self {
            EndReason::Over => "searched to the end",
            EndReason::MaxLines => "stopped at the maximum of 65,534 lines",
            EndReason::MaxDepth => "stopped at its depth limit",
            EndReason::MaxCost => "stopped at its cost limit",
            EndReason::MaxHours => "stopped at its time limit",
            EndReason::Interrupted => "interrupted",
        }
    }
}

/// Returns a description of why a search ended, or `not finished` if it has not ended.
pub fn end_in_words(end: Option<EndReason>) -> &'static str {
    end.map_or("not finished", EndReason::words)
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_their_serialized_form() {
        for end in EndReason::ALL {
            assert_eq!(serde_json::to_value(end).unwrap(), end.name());
            assert_eq!(EndReason::from_name(end.name()), Some(end));
        }
        for state in RunState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        assert_eq!(EndReason::from_name("tired"), None);
    }
}
