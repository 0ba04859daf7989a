//! The retention rules of a run on one machine.

use crate::retention::Retention;
use serde::{Deserialize, Serialize};

/// A change of a run's retention rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionChange {
    /// The first depth to which the rule applies.
    from: u32,
    keep: Retention,
}

/// The retention rules of a run. Each rule applies from its first depth to the first depth of the next rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RetentionRules {
    /// Rule with which the run was created.
    pub(super) created: Retention,
    /// Later rules, in ascending order of their first depths.
    pub(super) changes: Vec<RetentionChange>,
}

impl RetentionRules {
    /// Returns the rule that applies to a depth.
    pub(super) fn at(&self, depth: u32) -> Retention {
        let change = self.changes.iter().rfind(|change| change.from <= depth);
        change.map_or(self.created, |change| change.keep)
    }

    /// Returns the rule that applies to new depths.
    pub(super) fn current(&self) -> Retention {
        self.changes.last().map_or(self.created, |last| last.keep)
    }

    /// Applies a rule to all depths from `from`.
    pub(super) fn change(&mut self, from: u32, keep: Retention) {
        self.changes.retain(|change| change.from < from);
        if self.current() != keep {
            self.changes.push(RetentionChange { from, keep });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_applies_from_its_depth_to_the_next_change() {
        let mut rules = RetentionRules {
            created: Retention::All,
            changes: Vec::new(),
        };
        rules.change(5, Retention::All);
        assert_eq!(rules.changes, []);
        rules.change(10, Retention::Last);
        rules.change(20, Retention::Every(4));
        let kept = [0, 9, 10, 19, 20, 99].map(|depth| rules.at(depth).to_string());
        assert_eq!(kept, ["all", "all", "last", "last", "4", "4"]);
        // A search that continues with the same rule changes nothing.
        let before = rules.clone();
        for depth in [20, 30] {
            rules.change(depth, Retention::Every(4));
            assert_eq!(rules, before);
        }
        // The search continues from an earlier depth, because later ones are damaged.
        rules.change(12, Retention::Every(4));
        let kept = [11, 12, 20].map(|depth| rules.at(depth).to_string());
        assert_eq!(kept, ["last", "4", "4"]);
        rules.change(10, Retention::All);
        assert_eq!(rules.changes, []);
        assert_eq!(rules.current(), Retention::All);
    }
}
