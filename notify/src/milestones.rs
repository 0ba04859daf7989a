//! Selection of the events that a committed depth causes.

use crate::event::{EventKind, Progress};
use hatebeam_search::DepthRecord;

/// Progress of a run, which determines the events that the run's committed depths cause.
#[derive(Clone, Debug)]
pub struct Milestones {
    every: u32,
    progress: Progress,
}

impl Milestones {
    /// Creates the milestones of a run that starts or resumes at `progress`. Each depth that is a multiple of
    /// `every` causes an [`EventKind::Depth`] event.
    pub fn new(every: u32, progress: Progress) -> Milestones {
        Milestones {
            every: every.max(1),
            progress,
        }
    }

    /// Returns the progress of the run.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Updates the progress, and returns the events that a committed depth causes.
    pub fn committed(&mut self, record: &DepthRecord) -> Vec<EventKind> {
        let mut events = Vec::new();
        self.progress.depth = record.depth;
        let lines = u32::from(record.best_lines);
        if lines > self.progress.lines {
            self.progress.lines = lines;
            events.push(EventKind::BestScore {});
        }
        if record.depth.is_multiple_of(self.every) {
            events.push(EventKind::Depth {
                wells: record.count,
                children: record.children,
                seconds: record.seconds,
            });
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(depth: u32, best_lines: u16) -> DepthRecord {
        DepthRecord {
            depth,
            count: 10,
            digest: String::new(),
            best_eval: 0,
            median_eval: 0,
            worst_eval: 0,
            best_lines,
            best_well: String::new(),
            children: 100,
            seconds: 0.5,
            bytes: 0,
            kept: true,
            changed: Vec::new(),
        }
    }

    #[test]
    fn better_games_and_every_nth_depth_cause_events() {
        let mut milestones = Milestones::new(
            25,
            Progress {
                depth: 23,
                lines: 3,
            },
        );
        let mut names = |depth, lines| -> Vec<&str> {
            let events = milestones.committed(&record(depth, lines));
            events.iter().map(EventKind::name).collect()
        };
        assert_eq!(names(24, 3), [""; 0]);
        assert_eq!(names(25, 2), ["depth"]);
        assert_eq!(names(26, 4), ["best-score"]);
        assert_eq!(names(27, 4), [""; 0]);
        assert_eq!(names(50, 5), ["best-score", "depth"]);
        assert_eq!(
            milestones.progress(),
            Progress {
                depth: 50,
                lines: 5
            }
        );
    }

    #[test]
    fn interval_of_zero_reports_every_depth() {
        let mut milestones = Milestones::new(0, Progress::default());
        assert_eq!(milestones.committed(&record(1, 0)).len(), 1);
    }
}
