//! Estimated floors: the cuts of the last depths, from which the floor of the next one is estimated.

use hatebeam_runs::Manifest;
use hatebeam_search::estimated_floor;

/// Scores of the last cuts, oldest first, of consecutive depths with a full frontier.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    scores: Vec<i32>,
}

impl Cuts {
    /// Returns the cuts of the committed depths.
    pub(super) fn of(manifest: &Manifest) -> Cuts {
        let mut cuts = Cuts::default();
        for record in manifest.records() {
            cuts.add(record.count, record.worst_eval, manifest.spec.width);
        }
        cuts
    }

    /// Adds a depth with this number of wells and this lowest score.
    pub(super) fn add(&mut self, count: u64, worst_eval: i32, width: u64) {
        if count == width {
            self.scores.push(worst_eval);
        } else {
            self.scores.clear();
        }
    }

    /// Returns the floor to begin the next depth with.
    pub(super) fn floor(&self) -> Option<u64> {
        estimated_floor(&self.scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_frontiers_count() {
        let mut cuts = Cuts::default();
        for score in 0..5 {
            cuts.add(10, score, 10);
        }
        assert!(cuts.floor().is_some());
        cuts.add(9, 5, 10);
        assert_eq!(cuts.floor(), None);
    }
}
