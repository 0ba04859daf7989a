//! Estimate of the next cut from the cuts of previous depths. A child's rank is its score with a tie-break, and the cut
//! is the lowest rank with which a child is kept. The kept children of a depth are its frontier.

use super::cut::rank;

/// Minimum number of cuts for an estimate.
const MIN_CUTS: usize = 5;
/// Maximum number of cuts that an estimate uses.
const MAX_CUTS: usize = 9;

/// The cuts of the last depths, from which the next cut is estimated.
#[derive(Clone, Debug, Default)]
pub struct RecentCuts {
    /// The scores of the last cuts, oldest first. The depths are consecutive, and their frontiers are full.
    scores: Vec<i32>,
}

impl RecentCuts {
    /// Adds the cut of a depth whose frontier contains `count` wells with a lowest score of `worst_eval`.
    /// If the frontier has fewer wells than `width`, removes all cuts instead.
    pub fn add(&mut self, count: u64, worst_eval: i32, width: u64) {
        if count < width {
            self.scores.clear();
            return;
        }
        if self.scores.len() == MAX_CUTS {
            self.scores.remove(0);
        }
        self.scores.push(worst_eval);
    }

    /// Returns the [estimated floor](estimated_floor) for the next depth.
    pub fn floor(&self) -> Option<u64> {
        estimated_floor(&self.scores)
    }
}

/// Returns an estimated floor (lowest accepted rank) for the next depth. The floor is probably a little below the
/// depth's cut. `cuts` contains the scores of the last cuts, oldest first. Returns `None` if there are fewer than five
/// cuts.
///
/// The cut rises by a similar amount with every depth. The estimate is the last cut plus the smallest of the last
/// rises, minus the difference between the largest and the smallest rise. At a width of 5,000, one in 125 estimates
/// was too high, and the number of children above the estimate was about twice the number of survivors. An estimate
/// that is too high does not change the frontier, because
/// [`Candidates::dropped_above`](super::Candidates::dropped_above) detects it and the depth is repeated.
pub fn estimated_floor(cuts: &[i32]) -> Option<u64> {
    let cuts = &cuts[cuts.len().saturating_sub(MAX_CUTS)..];
    let last = *cuts.last().filter(|_| cuts.len() >= MIN_CUTS)?;
    let rises = cuts
        .windows(2)
        .map(|pair| i64::from(pair[1]) - i64::from(pair[0]));
    let (least, greatest) = (rises.clone().min()?, rises.max()?);
    let score = i64::from(last) + least - (greatest - least);
    let limits = (i64::from(i32::MIN), i64::from(i32::MAX));
    Some(rank(score.clamp(limits.0, limits.1) as i32, 0))
}

#[cfg(test)]
mod tests {
    use super::super::cut::score_of;
    use super::*;

    #[test]
    fn floor_requires_enough_consecutive_full_frontiers() {
        let mut cuts = RecentCuts::default();
        for score in -20..5 {
            cuts.add(10, score, 10);
        }
        assert_eq!(cuts.scores, Vec::from_iter(-4..5));
        assert!(cuts.floor().is_some());
        cuts.add(9, 5, 10);
        assert_eq!(cuts.floor(), None);
    }

    #[test]
    fn estimate_uses_recent_rises_and_subtracts_their_spread() {
        assert_eq!(estimated_floor(&[0, 100, 200, 300]), None);
        let estimate = |cuts: &[i32]| score_of(estimated_floor(cuts).unwrap());
        assert_eq!(estimate(&[0, 100, 200, 300, 400]), 500);
        assert_eq!(estimate(&[0, 100, 220, 310, 400]), 400 + 90 - 30);
        assert_eq!(
            estimate(&[-9999, 0, 100, 200, 300, 400, 500, 600, 700, 800]),
            900
        );
        assert_eq!(
            estimate(&[i32::MAX, i32::MIN, i32::MAX, i32::MIN, 0]),
            i32::MIN
        );
    }
}
