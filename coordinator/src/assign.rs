//! Which worker has which shards.

use std::collections::BTreeMap;

/// A worker that is to have shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerCapacity {
    /// Its name.
    pub(crate) name: String,
    /// Its threads: it gets shards by them.
    pub(crate) threads: u32,
}

/// The place in `seats` of the owner of each shard. Each seat gets its share by threads, give or take one
/// shard; a shard stays with the owner it had in `before` as long as that one is there and has no more than
/// its share, so that a worker that comes or goes moves no more shards than it must.
pub(crate) fn assign(before: &[String], shards: usize, seats: &[WorkerCapacity]) -> Vec<u32> {
    let quotas = quotas(shards, seats);
    let place_of: BTreeMap<&str, usize> = seats
        .iter()
        .enumerate()
        .map(|(place, seat)| (seat.name.as_str(), place))
        .collect();
    let mut left = quotas;
    let mut owners: Vec<Option<usize>> = vec![None; shards];
    for (owner, name) in owners.iter_mut().zip(before) {
        if let Some(&place) = place_of.get(name.as_str())
            && left[place] > 0
        {
            left[place] -= 1;
            *owner = Some(place);
        }
    }
    for (shard, owner) in owners.iter_mut().enumerate() {
        if owner.is_some() {
            continue;
        }
        // The one that likes the shard most, of those that have room: the same one each time.
        let free = (0..seats.len()).filter(|&place| left[place] > 0);
        let place = free.max_by_key(|&place| (rendezvous_weight(&seats[place].name, shard), place));
        if let Some(place) = place {
            left[place] -= 1;
            *owner = Some(place);
        }
    }
    owners
        .into_iter()
        .map(|owner| owner.unwrap_or_default() as u32)
        .collect()
}

/// Shares by threads: the largest remainders get one more.
fn quotas(shards: usize, seats: &[WorkerCapacity]) -> Vec<usize> {
    let threads = |seat: &WorkerCapacity| u64::from(seat.threads.max(1));
    let total: u64 = seats.iter().map(threads).sum();
    let share = |seat: &WorkerCapacity| shards as u64 * threads(seat);
    let mut quotas: Vec<usize> = seats
        .iter()
        .map(|seat| (share(seat) / total.max(1)) as usize)
        .collect();
    let mut order: Vec<usize> = (0..seats.len()).collect();
    order.sort_by_key(|&place| {
        let rest = share(&seats[place]) % total.max(1);
        (std::cmp::Reverse(rest), seats[place].name.clone())
    });
    let missing = shards - quotas.iter().sum::<usize>().min(shards);
    for &place in order
        .iter()
        .cycle()
        .take(if seats.is_empty() { 0 } else { missing })
    {
        quotas[place] += 1;
    }
    quotas
}

/// FNV-1a of name and shard, mixed.
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

    fn seats(threads: &[u32]) -> Vec<WorkerCapacity> {
        let seat = |(at, &threads): (usize, &u32)| WorkerCapacity {
            name: format!("worker-{at}"),
            threads,
        };
        threads.iter().enumerate().map(seat).collect()
    }

    fn names(owners: &[u32], seats: &[WorkerCapacity]) -> Vec<String> {
        let name = |&owner: &u32| seats[owner as usize].name.clone();
        owners.iter().map(name).collect()
    }

    proptest! {
        #[test]
        fn everybody_gets_a_share_and_few_shards_move(
            threads in prop::collection::vec(1u32..100, 2..20),
            shards in 1usize..300,
            gone in any::<prop::sample::Index>(),
        ) {
            let all = seats(&threads);
            let owners = assign(&[], shards, &all);
            prop_assert_eq!(owners.len(), shards);
            let total: u32 = threads.iter().sum();
            for (place, &own) in threads.iter().enumerate() {
                let has = owners.iter().filter(|&&owner| owner as usize == place).count() as f64;
                let share = shards as f64 * f64::from(own) / f64::from(total);
                prop_assert!((has - share).abs() <= 1.0, "{has} of {share}");
            }
            // Nothing happens, nothing moves.
            prop_assert_eq!(&assign(&names(&owners, &all), shards, &all), &owners);
            // One goes: what it had moves, and hardly anything else.
            let mut fewer = all.clone();
            let gone = fewer.remove(gone.index(fewer.len()));
            let before = names(&owners, &all);
            let after = names(&assign(&before, shards, &fewer), &fewer);
            let kept = before.iter().zip(&after).filter(|(a, b)| a == b).count();
            let had = before.iter().filter(|name| **name == gone.name).count();
            prop_assert!(kept + had + fewer.len() >= shards, "{kept} {had}");
            // It comes back: it gets its share again, and hardly anything else moves.
            let again = names(&assign(&after, shards, &all), &all);
            let kept = after.iter().zip(&again).filter(|(a, b)| a == b).count();
            prop_assert!(kept + had + all.len() >= shards, "{kept} {had}");
        }
    }
}
