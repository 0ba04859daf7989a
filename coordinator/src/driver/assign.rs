//! Assignment of shards to workers.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A worker to which shards are assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkerCapacity {
    pub(super) name: String,
    /// Number of threads. The worker's share of the shards is proportional to it.
    pub(super) threads: u32,
}

/// Assigns each shard to a worker. Returns the owner of each shard as an index into `workers`.
///
/// The number of shards per worker is proportional to its threads, to within one shard. `before` contains the name of
/// each shard's previous owner. A shard stays with that owner if the owner is in `workers` and its share is not used
/// up, so few shards move when a worker joins or leaves.
pub(super) fn assign(before: &[String], shards: usize, workers: &[WorkerCapacity]) -> Vec<u32> {
    let places = workers.iter().enumerate();
    let places: BTreeMap<&str, usize> = places
        .map(|(place, worker)| (worker.name.as_str(), place))
        .collect();
    let mut free = quotas(shards, workers);
    let mut owners: Vec<Option<usize>> = vec![None; shards];
    for (owner, name) in owners.iter_mut().zip(before) {
        if let Some(&place) = places.get(name.as_str())
            && free[place] > 0
        {
            free[place] -= 1;
            *owner = Some(place);
        }
    }
    for (shard, owner) in owners.iter_mut().enumerate() {
        if owner.is_some() {
            continue;
        }
        // Rendezvous hashing: the same shard and the same candidates always give the same owner.
        let candidates = (0..workers.len()).filter(|&place| free[place] > 0);
        let weight = |&place: &usize| (rendezvous_weight(&workers[place].name, shard), place);
        if let Some(place) = candidates.max_by_key(weight) {
            free[place] -= 1;
            *owner = Some(place);
        }
    }
    let owners = owners.into_iter();
    owners
        .map(|owner| owner.unwrap_or_default() as u32)
        .collect()
}

/// Returns the number of shards for each worker, in proportion to its threads. Shards left over after rounding down go
/// to the workers with the largest remainders.
fn quotas(shards: usize, workers: &[WorkerCapacity]) -> Vec<usize> {
    let threads = |worker: &WorkerCapacity| u64::from(worker.threads.max(1));
    let total: u64 = workers.iter().map(threads).sum();
    let share = |worker: &WorkerCapacity| shards as u64 * threads(worker);
    let mut quotas: Vec<usize> = workers
        .iter()
        .map(|worker| (share(worker) / total.max(1)) as usize)
        .collect();
    let mut order: Vec<usize> = (0..workers.len()).collect();
    order.sort_by_key(|&place| {
        let remainder = share(&workers[place]) % total.max(1);
        (Reverse(remainder), workers[place].name.clone())
    });
    let missing = shards.saturating_sub(quotas.iter().sum());
    for &place in order.iter().cycle().take(missing) {
        quotas[place] += 1;
    }
    quotas
}

/// Hashes a worker's name and a shard with FNV-1a, and mixes the bits.
fn rendezvous_weight(name: &str, shard: usize) -> u64 {
    let bytes = name.bytes().chain((shard as u64).to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn workers(threads: &[u32]) -> Vec<WorkerCapacity> {
        let worker = |(at, &threads): (usize, &u32)| WorkerCapacity {
            name: format!("worker-{at}"),
            threads,
        };
        threads.iter().enumerate().map(worker).collect()
    }

    fn names(owners: &[u32], workers: &[WorkerCapacity]) -> Vec<String> {
        let name = |&owner: &u32| workers[owner as usize].name.clone();
        owners.iter().map(name).collect()
    }

    proptest! {
        #[test]
        fn workers_get_their_share_and_few_shards_move(
            threads in prop::collection::vec(1u32..100, 2..20),
            shards in 1usize..300,
            gone in any::<prop::sample::Index>(),
        ) {
            let all = workers(&threads);
            let owners = assign(&[], shards, &all);
            prop_assert_eq!(owners.len(), shards);
            let total: u32 = threads.iter().sum();
            for (place, &own) in threads.iter().enumerate() {
                let has = owners.iter().filter(|&&owner| owner as usize == place).count() as f64;
                let share = shards as f64 * f64::from(own) / f64::from(total);
                prop_assert!((has - share).abs() <= 1.0, "{has} of {share}");
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
