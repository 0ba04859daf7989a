//! Assignment of shards (ranges of well hashes) to workers.

use crate::registry::Member;
use hatebeam_runs::{RunSpec, max_width, memory_of_loops};
use hatebeam_search::{ShardLayout, fnv1a, gathered_layout};
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkerCapacity {
    pub(super) name: String,
    /// Relative speed. The worker's share of the shards is proportional to it.
    pub(super) weight: u64,
    /// Number of shards that fit into the worker's memory.
    pub(super) max_shards: usize,
}

/// Assigns each shard to a worker. Returns the owner of each shard as an index into `workers`.
///
/// Each worker gets a number of shards in proportion to its weight, to within one shard. If fewer shards fit into its
/// memory, it gets only those, and the other workers get the rest.
///
/// `before` contains the name of each shard's previous owner. A shard stays with that owner if the owner is in
/// `workers` and has not reached its number of shards yet, so few shards move when a worker joins or leaves. If shards
/// have been split, `before` is shorter than the result. The parts of a split shard then go to the same owner where
/// possible, because the owner of a part loads the table of the whole shard.
pub(super) fn assign(before: &[String], shards: usize, workers: &[WorkerCapacity]) -> Vec<u32> {
    let indices = workers.iter().enumerate();
    let indices: BTreeMap<&str, usize> = indices
        .map(|(index, worker)| (worker.name.as_str(), index))
        .collect();
    let mut free = quotas(shards, workers);
    let mut owners: Vec<Option<usize>> = vec![None; shards];
    // Index in `before` of the shard that contains a shard.
    let whole = |shard: usize| match before.len() {
        0 => shard,
        count => shard * count / shards,
    };
    for (shard, owner) in owners.iter_mut().enumerate() {
        if let Some(name) = before.get(whole(shard))
            && let Some(&index) = indices.get(name.as_str())
            && free[index] > 0
        {
            free[index] -= 1;
            *owner = Some(index);
        }
    }
    for (shard, owner) in owners.iter_mut().enumerate() {
        if owner.is_some() {
            continue;
        }
        // Rendezvous hashing: the same shard and the same candidates always give the same owner.
        let candidates = (0..workers.len()).filter(|&index| free[index] > 0);
        let weight =
            |&index: &usize| (rendezvous_weight(&workers[index].name, whole(shard)), index);
        if let Some(index) = candidates.max_by_key(weight) {
            free[index] -= 1;
            *owner = Some(index);
        }
    }
    let owners = owners.into_iter();
    owners
        .map(|owner| owner.unwrap_or_default() as u32)
        .collect()
}

/// Returns the number of shards for each worker, in proportion to its weight and limited by its memory. If the
/// total memory of the workers is too small for all shards, some numbers exceed the limit.
fn quotas(shards: usize, workers: &[WorkerCapacity]) -> Vec<usize> {
    let mut quotas = vec![0; workers.len()];
    // Whether each worker's share exceeds its memory. Such a worker gets as many shards as fit, and the others share
    // the rest.
    let mut full: Vec<bool> = vec![false; workers.len()];
    loop {
        let open: Vec<usize> = (0..workers.len()).filter(|&index| !full[index]).collect();
        let taken = quotas.iter().zip(&full).filter(|(_, full)| **full);
        let taken: usize = taken.map(|(quota, _)| *quota).sum();
        share(shards.saturating_sub(taken), &open, workers, &mut quotas);
        let is_over = |&&index: &&usize| quotas[index] > workers[index].max_shards;
        let over: Vec<usize> = open.iter().filter(is_over).copied().collect();
        // Stop if no share exceeds its worker's memory. Also stop if all shares do: the limits cannot be met.
        if over.is_empty() || over.len() == open.len() {
            return quotas;
        }
        for index in over {
            quotas[index] = workers[index].max_shards;
            full[index] = true;
        }
    }
}

/// Divides shards among the workers at `indices`, in proportion to their weights. Shards left over after rounding
/// down go to the workers with the largest remainders.
fn share(shards: usize, indices: &[usize], workers: &[WorkerCapacity], quotas: &mut [usize]) {
    let weight = |index: usize| u128::from(workers[index].weight.max(1));
    let total: u128 = indices.iter().map(|&index| weight(index)).sum();
    let share = |index: usize| shards as u128 * weight(index);
    for &index in indices {
        quotas[index] = (share(index) / total) as usize;
    }
    let mut order = indices.to_vec();
    order.sort_by_key(|&index| {
        let remainder = share(index) % total;
        (Reverse(remainder), workers[index].name.clone())
    });
    let given: usize = indices.iter().map(|&index| quotas[index]).sum();
    for &index in order.iter().cycle().take(shards.saturating_sub(given)) {
        quotas[index] += 1;
    }
}

/// Returns the number of shards that fit into a worker's memory beside what every worker needs for the loop rule. Returns the
/// number of all shards if `memory_bytes` is 0, which means that the memory is unknown.
pub(crate) fn shards_in(
    memory_bytes: u64,
    threads: u32,
    spec: &RunSpec,
    layout: ShardLayout,
) -> usize {
    if memory_bytes == 0 {
        return layout.shards();
    }
    let gathered = gathered_layout(layout, spec.evaluator.quiescence);
    let memory = memory_bytes.saturating_sub(memory_of_loops(spec.width, spec.loops));
    let wells = (gathered.width() as u64).div_ceil(layout.shards() as u64);
    usize::try_from(max_width(memory, threads as usize) / wells.max(1)).unwrap_or(usize::MAX)
}

/// Returns the layout for an epoch with these workers, whose shards are those of `layout` or parts of them.
pub(crate) fn layout_for(
    workers: &[Member],
    layout: ShardLayout,
    min_shard_wells: usize,
) -> ShardLayout {
    let threads = workers.iter().map(|worker| worker.threads as usize);
    layout.for_workers(workers.len(), threads.sum(), min_shard_wells)
}

/// Hashes a worker's name and a shard with FNV-1a, and mixes the bits.
fn rendezvous_weight(name: &str, shard: usize) -> u64 {
    let bytes = name.bytes().chain((shard as u64).to_le_bytes());
    let hash = fnv1a(bytes);
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_runs::LoopRule;
    use hatebeam_search::{EvaluatorKind, EvaluatorSpec, Quiescence};
    use proptest::prelude::*;

    fn workers(threads: &[u32]) -> Vec<WorkerCapacity> {
        let worker = |(at, &threads): (usize, &u32)| WorkerCapacity {
            name: format!("worker-{at}"),
            weight: u64::from(threads),
            max_shards: usize::MAX,
        };
        threads.iter().enumerate().map(worker).collect()
    }

    fn names(owners: &[u32], workers: &[WorkerCapacity]) -> Vec<String> {
        let name = |&owner: &u32| workers[owner as usize].name.clone();
        owners.iter().map(name).collect()
    }

    #[test]
    fn workers_get_no_more_shards_than_their_memory_holds() {
        let mut all = workers(&[72, 72, 2]);
        all[0].max_shards = 10;
        assert_eq!(quotas(64, &all), [10, 53, 1]);
        all[1].max_shards = 50;
        assert_eq!(quotas(64, &all), [10, 50, 4]);
        // If the memory of all workers together is too small, all shards are still assigned.
        all[2].max_shards = 1;
        assert_eq!(quotas(64, &all).iter().sum::<usize>(), 64);
    }

    #[test]
    fn memory_limits_the_number_of_shards() {
        let width = 100_000_000;
        let layout = ShardLayout::new(width, 100);
        let evaluator = EvaluatorSpec::new(EvaluatorKind::Plain, Quiescence::Off);
        let spec = RunSpec::new(width as u64, evaluator);
        let shards = |bytes, threads| shards_in(bytes, threads, &spec, layout);
        assert_eq!(shards(0, 1), 100);
        // A well takes 100 bytes, and the process itself takes 200 MiB.
        assert_eq!(shards((200 << 20) + 4_099_999_999, 0), 40);
        assert_eq!(shards(1 << 20, 1), 0);
        // Each worker needs 700 bytes for each well of the beam to apply the loop rule.
        let spec = RunSpec {
            loops: LoopRule::Exact,
            ..spec
        };
        let shards = |bytes| shards_in(bytes, 0, &spec, layout);
        assert_eq!(shards((200 << 20) + 74_099_999_999), 40);
        assert_eq!(shards(70_000_000_000), 0);
    }

    #[test]
    fn parts_of_split_shards_stay_together() {
        let (two, four) = (workers(&[1, 1]), workers(&[1, 1, 1, 1]));
        let before = names(&assign(&[], 16, &two), &two);
        let after = names(&assign(&before, 64, &four), &four);
        for worker in &four {
            assert_eq!(
                after.iter().filter(|&name| *name == worker.name).count(),
                16
            );
        }
        // The old workers keep half of their shards, and no shard has parts on more than two workers.
        let kept = (0..64).filter(|&shard| before[shard / 4] == after[shard]);
        assert_eq!(kept.count(), 32);
        let moved = after
            .chunks(4)
            .filter(|parts| parts.iter().any(|name| *name != parts[0]));
        assert!(moved.count() <= 2, "{after:?}");
    }

    proptest! {
        #[test]
        fn workers_get_proportional_shares_and_few_shards_move(
            threads in prop::collection::vec(1u32..100, 2..20),
            shards in 1usize..300,
            gone in any::<prop::sample::Index>(),
        ) {
            let all = workers(&threads);
            let owners = assign(&[], shards, &all);
            prop_assert_eq!(owners.len(), shards);
            let total: u32 = threads.iter().sum();
            for (index, &own) in threads.iter().enumerate() {
                let has = owners.iter().filter(|&&owner| owner as usize == index).count() as f64;
                let share = shards as f64 * f64::from(own) / f64::from(total);
                prop_assert!((has - share).abs() <= 1.0, "{has} shards, share {share}");
            }
            // If the workers stay the same, no shard moves.
            prop_assert_eq!(&assign(&names(&owners, &all), shards, &all), &owners);
            // When a worker leaves, its shards move, and few others do.
            let mut fewer = all.clone();
            let gone = fewer.remove(gone.index(fewer.len()));
            let before = names(&owners, &all);
            let after = names(&assign(&before, shards, &fewer), &fewer);
            let kept = before.iter().zip(&after).filter(|(a, b)| a == b).count();
            let had = before.iter().filter(|name| **name == gone.name).count();
            prop_assert!(kept + had + fewer.len() >= shards, "{kept} {had}");
            // When the worker returns, it gets its share of shards again, and few others move.
            let again = names(&assign(&after, shards, &all), &all);
            let kept = after.iter().zip(&again).filter(|(a, b)| a == b).count();
            prop_assert!(kept + had + all.len() >= shards, "{kept} {had}");
        }
    }
}
