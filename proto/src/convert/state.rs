//! Conversions of run states and depth records.

use crate::v1;
use hatebeam_runs::RunState;
use hatebeam_search::DepthRecord;

impl From<RunState> for v1::State {
    fn from(state: RunState) -> v1::State {
        match state {
            RunState::Queued => v1::State::Queued,
            RunState::Running => v1::State::Running,
            RunState::Finished => v1::State::Finished,
            RunState::Cancelled => v1::State::Cancelled,
            RunState::Failed => v1::State::Failed,
        }
    }
}

impl v1::State {
    /// Returns the state of a run, or `None` if this program does not know the state.
    pub fn run_state(self) -> Option<RunState> {
        RunState::ALL
            .into_iter()
            .find(|&state| v1::State::from(state) == self)
    }

    /// Returns the state's name in JSON output.
    pub fn name(self) -> &'static str {
        self.run_state().map_or("unknown", RunState::name)
    }
}

impl v1::RunStatus {
    /// Returns whether the run is queued or running.
    pub fn is_open(&self) -> bool {
        self.state().run_state().is_some_and(RunState::is_open)
    }
}

impl From<&v1::DepthRecord> for DepthRecord {
    fn from(record: &v1::DepthRecord) -> DepthRecord {
        DepthRecord {
            depth: record.depth,
            count: record.count,
            digest: record.digest.clone(),
            best_eval: record.best_eval,
            median_eval: record.median_eval,
            worst_eval: record.worst_eval,
            best_lines: u16::try_from(record.best_lines).unwrap_or(u16::MAX),
            best_well: record.best_well.clone(),
            children: record.children,
            seconds: record.seconds,
            bytes: record.bytes,
            kept: record.kept,
            changed: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_converted_both_ways() {
        for state in RunState::ALL {
            let message = v1::State::from(state);
            assert_eq!(
                (message.run_state(), message.name()),
                (Some(state), state.name())
            );
            let status = v1::RunStatus {
                state: message.into(),
                ..v1::RunStatus::default()
            };
            assert_eq!(status.is_open(), state.is_open());
        }
        assert_eq!(v1::State::Unspecified.name(), "unknown");
    }
}
