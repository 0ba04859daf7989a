//! Checks of a single manifest, and of two successive manifests of a run.

use crate::oracle::Oracle;
use hatebeam_runs::{CommittedDepth, Manifest, RunState};
use std::collections::BTreeMap;

/// Returns the epoch in which a depth was committed, from the key of its table list.
fn epoch_of(depth: &CommittedDepth) -> Option<u64> {
    let key = &depth.tables.as_ref()?.key;
    let (_, epoch) = key.strip_suffix(".json")?.rsplit_once('-')?;
    epoch.parse().ok()
}

/// Returns a violation if a depth was committed by a process that cannot have begun the depth's epoch (a period with a
/// fixed set of workers). One of `writers` committed the depth.
pub(super) fn check_owner(
    depth: &CommittedDepth,
    begun: &BTreeMap<u64, Vec<String>>,
    writers: &[String],
) -> Option<String> {
    let epoch = epoch_of(depth)?;
    let owners = begun.get(&epoch)?;
    let is_own = writers.iter().any(|writer| owners.contains(writer));
    let (number, writers, owners) = (depth.record.depth, writers.join(", "), owners.join(", "));
    (!is_own).then(|| {
        format!("{writers} committed depth {number} in epoch {epoch}, which was begun by {owners}")
    })
}

/// Returns a violation if the record of a depth differs from the record of the single-threaded search. The changed pieces
/// are not in the record, but in the list of tables.
pub(super) fn check_record(oracle: &Oracle, depth: &CommittedDepth) -> Option<String> {
    let found = &depth.record;
    let Some(expected) = oracle.record(found.depth) else {
        let (depth, last) = (found.depth, oracle.last_depth());
        return Some(format!(
            "depth {depth} is committed, but the search ends at depth {last}"
        ));
    };
    let same = found.digest == expected.digest
        && found.count == expected.count
        && (found.best_eval, found.median_eval, found.worst_eval)
            == (
                expected.best_eval,
                expected.median_eval,
                expected.worst_eval,
            )
        && (found.best_lines, &found.best_well) == (expected.best_lines, &expected.best_well)
        && found.children == expected.children
        && found.changed.is_empty();
    (!same).then(|| format!("depth {} is {found:?} instead of {expected:?}", found.depth))
}

/// Returns the invalid changes between two successive manifests of a run. `has_damage` tells whether the simulation has
/// deleted a table at a greater depth than the last depth in `after`. Only then may depths disappear.
pub(super) fn changes(before: &Manifest, after: &Manifest, has_damage: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if after.epoch < before.epoch {
        wrong.push(format!(
            "the epoch decreased from {} to {}",
            before.epoch, after.epoch
        ));
    }
    if after.depths.len() < before.depths.len() && !has_damage {
        let (now, then) = (after.depths.len(), before.depths.len());
        wrong.push(format!(
            "the number of depths decreased from {then} to {now}"
        ));
    }
    for (then, now) in before.depths.iter().zip(&after.depths) {
        let is_same = then.tables == now.tables
            && then.record.digest == now.record.digest
            && then.record.depth == now.record.depth;
        if !is_same {
            wrong.push(format!("depth {} was committed again", then.record.depth));
        }
        if now.record.kept && !then.record.kept {
            wrong.push(format!(
                "depth {} is kept, although it was dropped before",
                then.record.depth
            ));
        }
    }
    if before.spec != after.spec || before.keep != after.keep {
        wrong.push("the specification changed".to_owned());
    }
    let splits = after.shards / before.shards.max(1);
    let is_split = after.shards == before.shards * splits && splits.is_power_of_two();
    if !is_split || splits > 1 && after.epoch == before.epoch {
        wrong.push(format!(
            "the number of shards changed from {} in epoch {} to {} in epoch {}",
            before.shards, before.epoch, after.shards, after.epoch
        ));
    }
    if !may_follow(before.state, after.state) {
        wrong.push(format!(
            "the state changed from {} to {}",
            before.state, after.state
        ));
    }
    if after.ledger.milliseconds < before.ledger.milliseconds {
        wrong.push("the charged time decreased".to_owned());
    }
    wrong
}

/// Whether the state of a run may change from `before` to `after`. An ended run becomes queued when it is submitted
/// again.
fn may_follow(before: RunState, after: RunState) -> bool {
    before == after
        || match (before, after) {
            (RunState::Running, RunState::Queued) => false,
            (RunState::Queued | RunState::Running, _) => true,
            (_, after) => after == RunState::Queued,
        }
}
