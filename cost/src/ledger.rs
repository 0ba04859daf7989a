//! Usage of a run: machines, requests and storage.
//!
//! A machine is charged at its own price from the time at which it first works on the run until it is last seen. If a
//! machine is absent for a while and returns, its absence is charged too, because it stayed rented. The exception is a
//! long absence after which its process has been restarted. The same rules apply when a new coordinator takes over a
//! run. All sums consist of whole numbers (milliseconds, requests, millionths of a dollar), so the result does not
//! depend on the order of addition.

use crate::machine::{ActiveProcess, Machine};
use crate::money::Micros;
use crate::prices::ObjectStorePrices;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Maximum number of departed machines with separate entries. If there are more, the entries of equal machines are
/// merged. This bounds the size of the run's manifest, which contains the ledger and is written at each depth.
const MAX_DEPARTED: usize = 1000;
/// Longest absence, in milliseconds, that is charged for a coordinator or for a machine with a restarted process. A
/// crashed process is usually restarted within this time. After a longer absence, its machine may have been off.
const MAX_ABSENCE_MS: u64 = 600_000;
/// Name of an entry into which the entries of departed machines have been merged.
const MERGED: &str = "gone";
/// Number of seconds in a twelfth of a year.
const SECONDS_PER_MONTH: u128 = 2_629_746;

/// Maximum time limit of a run in hours, which is 114 years.
pub const MAX_HOURS: f64 = 1e6;

/// Usage of one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineUsage {
    /// Name of the process on the machine.
    pub name: String,
    /// Time at which this process started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Description and price of the machine.
    pub machine: Machine,
    /// Duration of the usage in milliseconds.
    pub milliseconds: u64,
    /// Time at which the machine was last seen, in milliseconds since 1970; `None` once the run no longer uses it.
    pub until_ms: Option<u64>,
}

impl MachineUsage {
    /// Returns the cost, or `None` if the price is unknown.
    pub fn cost(&self) -> Option<Micros> {
        let price = self.machine.price_per_hour?;
        Some(price.per_hour_for(self.milliseconds))
    }

    /// Returns whether the process runs on this machine. If the machine has an identifier, a restarted process counts
    /// as running on the same machine. Otherwise, it counts as running on another machine.
    pub fn is_machine_of(&self, process: &ActiveProcess) -> bool {
        match process.machine.id.as_str() {
            "" => self.name == process.name && self.started_ms == process.started_ms,
            id => self.machine.id == id,
        }
    }

    /// Returns whether the process runs on this machine, and the price and market have not changed.
    fn covers(&self, process: &ActiveProcess) -> bool {
        self.is_machine_of(process)
            && self.machine.price_per_hour == process.machine.price_per_hour
            && self.machine.market == process.machine.market
    }

    /// Returns whether two entries, from two ledgers of a run, describe the same machine.
    fn is_same(&self, other: &MachineUsage) -> bool {
        self.name == other.name
            && self.started_ms == other.started_ms
            && self.machine == other.machine
    }

    /// Returns whether entries of departed machines have been merged into this one.
    fn is_merged(&self) -> bool {
        self.name == MERGED && self.started_ms == 0
    }

    /// Returns the machine of the entry into which this one is merged after the machine has departed.
    fn merged_machine(&self) -> Machine {
        Machine {
            id: String::new(),
            zone: String::new(),
            ..self.machine.clone()
        }
    }

    /// Records that a process runs on the machine. If the machine was absent for longer than [`MAX_ABSENCE_MS`] and the
    /// process has been restarted, the absence before the restart is not charged.
    fn extend_to(&mut self, now_ms: u64, process: &ActiveProcess) {
        let mut since = self.until_ms.unwrap_or(now_ms);
        let is_restarted = process.started_ms > self.started_ms;
        if is_restarted && now_ms.saturating_sub(since) > MAX_ABSENCE_MS {
            since = process.started_ms.clamp(since, now_ms);
        }
        let elapsed = now_ms.saturating_sub(since);
        self.milliseconds = self.milliseconds.saturating_add(elapsed);
        self.until_ms = Some(now_ms.max(since));
    }
}

/// Usage of a run so far, for all items that cost money.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageLedger {
    /// Machines, including those that have left.
    pub machines: Vec<MachineUsage>,
    /// Duration in milliseconds for which the run was searched or waited for workers.
    pub milliseconds: u64,
    /// End of the recorded time, in milliseconds since 1970; `None` while no process works on the run.
    pub until_ms: Option<u64>,
    /// Number of object store requests that write or list.
    pub writes: u64,
    /// Number of object store requests that read.
    pub reads: u64,
    /// Kibibytes in the object store, multiplied by the seconds during which the run was searched.
    pub kib_seconds: u64,
}

impl UsageLedger {
    /// Records the usage up to now. `present` contains the processes that work on the run, and `stored_bytes` is the
    /// total size of the run's objects.
    pub fn advance(&mut self, now_ms: u64, present: &[ActiveProcess], stored_bytes: u64) {
        let since = self.until_ms.unwrap_or(now_ms);
        let elapsed = now_ms.saturating_sub(since);
        self.milliseconds = self.milliseconds.saturating_add(elapsed);
        let kib = (stored_bytes >> 10).saturating_mul(elapsed) / 1000;
        self.kib_seconds = self.kib_seconds.saturating_add(kib);
        self.until_ms = Some(now_ms.max(since));
        for process in present {
            match self.machines.iter_mut().find(|usage| usage.covers(process)) {
                Some(usage) => usage.extend_to(now_ms, process),
                None => self.machines.push(MachineUsage {
                    name: process.name.clone(),
                    started_ms: process.started_ms,
                    machine: process.machine.clone(),
                    milliseconds: 0,
                    until_ms: Some(now_ms),
                }),
            }
        }
        self.merge_departed(present);
    }

    /// Resumes the ledger at `now_ms`. If the clock of the previous coordinator was ahead, the recorded times can be
    /// later than `now_ms`. They are set back to `now_ms`, because no time would be charged until then. If no
    /// coordinator was running for more than ten minutes, the run's duration grows by only ten minutes.
    pub fn resume(&mut self, now_ms: u64) {
        let earlier = |until: Option<u64>| until.map(|until| until.min(now_ms));
        let oldest = now_ms.saturating_sub(MAX_ABSENCE_MS);
        self.until_ms = earlier(self.until_ms).map(|until| until.max(oldest));
        for usage in &mut self.machines {
            usage.until_ms = earlier(usage.until_ms);
        }
    }

    /// Shifts the recorded times by a jump of the clock from `expected_ms` to `now_ms`, so that neither this process
    /// nor its successor charges the jump.
    pub fn follow_clock(&mut self, expected_ms: u64, now_ms: u64) {
        let moved = |until: Option<u64>| {
            until.map(|until| until.saturating_add(now_ms).saturating_sub(expected_ms))
        };
        self.until_ms = moved(self.until_ms);
        for usage in &mut self.machines {
            usage.until_ms = moved(usage.until_ms);
        }
    }

    /// Raises each usage to at least the usage in `other`, a ledger of the same run that another process advanced at
    /// the same time. Adding the ledgers would charge the common time twice.
    ///
    /// If a ledger has merged the entries of departed machines, only the sums of both ledgers can be compared, and the greater
    /// sum counts. So the cost is never less than that of either ledger. Time is charged twice only if a machine has
    /// returned after one ledger has merged its entry.
    pub fn cover(&mut self, other: &UsageLedger) {
        let mut other = other.clone();
        let own = self.clone();
        self.merge_as_in(&other);
        other.merge_as_in(&own);
        self.milliseconds = self.milliseconds.max(other.milliseconds);
        self.writes = self.writes.max(other.writes);
        self.reads = self.reads.max(other.reads);
        self.kib_seconds = self.kib_seconds.max(other.kib_seconds);
        for usage in other.machines {
            match self.machines.iter_mut().find(|own| own.is_same(&usage)) {
                Some(own) => own.milliseconds = own.milliseconds.max(usage.milliseconds),
                None => self.machines.push(usage),
            }
        }
    }

    /// Merges each entry that `other` does not have if it may be part of a merged entry there.
    fn merge_as_in(&mut self, other: &UsageLedger) {
        self.merge(|usage| {
            let is_shared = !usage.is_merged() && other.machines.iter().any(|of| of.is_same(usage));
            let machine = usage.merged_machine();
            let mut merged = other.machines.iter().filter(|of| of.is_merged());
            is_shared || merged.all(|of| of.machine != machine)
        });
    }

    /// Replaces this ledger with `later`, a ledger of the same run that another process may have advanced at the same
    /// time.
    pub fn follow(&mut self, mut later: UsageLedger) {
        later.cover(self);
        *self = later;
    }

    /// Stops the accounting. The time until the next call to [`advance`](Self::advance) is not charged.
    pub fn close(&mut self) {
        self.until_ms = None;
        for usage in &mut self.machines {
            usage.until_ms = None;
        }
    }

    /// Merges the entries of equal departed machines if more than [`MAX_DEPARTED`] machines have departed.
    fn merge_departed(&mut self, present: &[ActiveProcess]) {
        if self.machines.len() > present.len() + MAX_DEPARTED {
            self.merge(|usage| present.iter().any(|process| usage.covers(process)));
        }
    }

    /// Merges the entries for which `keeps` returns `false`, one entry for all equal machines.
    fn merge(&mut self, keeps: impl Fn(&MachineUsage) -> bool) {
        let machines = std::mem::take(&mut self.machines);
        let (mut kept, departed): (Vec<MachineUsage>, Vec<MachineUsage>) =
            machines.into_iter().partition(keeps);
        let mut sums: Vec<MachineUsage> = Vec::new();
        for usage in departed {
            let machine = usage.merged_machine();
            match sums.iter_mut().find(|sum| sum.machine == machine) {
                Some(sum) => {
                    sum.milliseconds = sum.milliseconds.saturating_add(usage.milliseconds);
                }
                None => sums.push(MachineUsage {
                    name: MERGED.to_owned(),
                    machine,
                    started_ms: 0,
                    until_ms: None,
                    ..usage
                }),
            }
        }
        kept.extend(sums);
        self.machines = kept;
    }

    /// Returns the cost of the machines with a known price.
    pub fn machine_cost(&self) -> Micros {
        self.machines.iter().filter_map(MachineUsage::cost).sum()
    }

    /// Returns the cost of requests to the object store.
    pub fn request_cost(&self, prices: &ObjectStorePrices) -> Micros {
        let writes = u128::from(self.writes) * u128::from(prices.nanos_per_write);
        let reads = u128::from(self.reads) * u128::from(prices.nanos_per_read);
        Micros::saturating((writes + reads) / 1000)
    }

    /// Returns the cost of storage while the run was searched.
    pub fn storage_cost(&self, prices: &ObjectStorePrices) -> Micros {
        let byte_seconds = u128::from(self.kib_seconds) << 10;
        let micros = byte_seconds * u128::from(prices.per_gb_month.0);
        Micros::saturating(micros / (1_000_000_000 * SECONDS_PER_MONTH))
    }

    /// Returns the total cost.
    pub fn cost(&self, prices: &ObjectStorePrices) -> Micros {
        [
            self.machine_cost(),
            self.request_cost(prices),
            self.storage_cost(prices),
        ]
        .into_iter()
        .sum()
    }

    /// Returns the number of machines whose price is or was unknown, including those that have left. Processes with the
    /// same name on machines without an identifier count as one machine.
    pub fn unpriced(&self) -> u32 {
        let is_unpriced = |usage: &&MachineUsage| usage.machine.price_per_hour.is_none();
        let unpriced = self.machines.iter().filter(is_unpriced);
        let machines: HashSet<(&str, &str)> = unpriced
            .map(|usage| match usage.machine.id.as_str() {
                "" => ("", usage.name.as_str()),
                id => (id, ""),
            })
            .collect();
        machines.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: u64 = 3_600_000;
    const PRICES: ObjectStorePrices = ObjectStorePrices {
        nanos_per_write: 5000,
        nanos_per_read: 400,
        per_gb_month: Micros(23_000),
    };

    fn worker(name: &str, dollars: f64) -> ActiveProcess {
        ActiveProcess {
            name: name.to_owned(),
            started_ms: 7,
            machine: Machine {
                kind: "c5d.18xlarge".to_owned(),
                price_per_hour: Some(Micros::from_dollars(dollars)),
                ..Machine::default()
            },
        }
    }

    #[test]
    fn cost_is_exact_when_workers_join_and_leave_and_coordinator_restarts() {
        let (a, b) = (worker("a", 3.456), worker("b", 1.38));
        let mut ledger = UsageLedger::default();
        // Worker `a` works from 0:00 to 2:00, and `b` from 0:30 to 1:15. The usage is recorded every second. In the
        // last hour, 500 GB are stored.
        for second in 0..=7200u64 {
            let has_b = (1800..=4500).contains(&second);
            let present = [a.clone(), b.clone()];
            let stored = if second > 3600 { 500_000_000_000 } else { 0 };
            ledger.advance(second * 1000, &present[..1 + usize::from(has_b)], stored);
            // The coordinator is killed and restarted, so there is no update for 45 s.
            if second == 2000 {
                let text = serde_json::to_string(&ledger).unwrap();
                ledger = serde_json::from_str(&text).unwrap();
                ledger.advance(2_045_000, &present, 0);
            }
        }
        assert_eq!(ledger.milliseconds, 2 * HOUR);
        assert_eq!(ledger.machines[0].cost(), Some(Micros(6_912_000)));
        assert_eq!(ledger.machines[1].cost(), Some(Micros(1_035_000)));
        // 500 GB are stored for an hour at 2.3 cents per GB and month.
        let hour_of_storage = 500.0 * 23_000.0 / (2_629_746.0 / 3600.0);
        let storage = ledger.storage_cost(&PRICES).0 as f64;
        assert!(
            (storage - hour_of_storage).abs() < 2.0,
            "{storage} {hour_of_storage}"
        );
        (ledger.writes, ledger.reads) = (10_000, 100_000);
        assert_eq!(ledger.request_cost(&PRICES), Micros(50_000 + 40_000));
        assert_eq!(
            ledger.cost(&PRICES),
            Micros(6_912_000 + 1_035_000 + 90_000 + ledger.storage_cost(&PRICES).0)
        );
    }

    #[test]
    fn absence_is_charged_and_time_after_close_is_not() {
        let a = [worker("a", 3.6)];
        let mut ledger = UsageLedger::default();
        ledger.advance(0, &a, 0);
        ledger.advance(1000, &[], 0);
        ledger.advance(60_000, &a, 0);
        assert_eq!(ledger.machines[0].milliseconds, 60_000);
        // The run is stopped, and resumed a day later.
        ledger.close();
        ledger.advance(24 * HOUR, &a, 0);
        ledger.advance(24 * HOUR + 5000, &a, 0);
        assert_eq!(ledger.machines[0].milliseconds, 65_000);
        assert_eq!(ledger.milliseconds, 65_000);
        // Another process with the same name counts as another machine, because the machine has no identifier.
        let restarted = [ActiveProcess {
            started_ms: 8,
            ..a[0].clone()
        }];
        ledger.advance(24 * HOUR + 6000, &restarted, 0);
        assert_eq!(ledger.machines.len(), 2);
        let named = |started_ms, name: &str| ActiveProcess {
            started_ms,
            machine: Machine {
                id: "i-1".to_owned(),
                ..a[0].machine.clone()
            },
            name: name.to_owned(),
        };
        // Two workers share a machine, and one of them restarts. The machine is charged once.
        ledger.advance(25 * HOUR, &[named(1, "x"), named(2, "y")], 0);
        ledger.advance(26 * HOUR, &[named(3, "x"), named(2, "y")], 0);
        assert_eq!(ledger.machines[2].milliseconds, HOUR);
        assert_eq!(ledger.machines.len(), 3);
    }

    #[test]
    fn neither_a_process_nor_its_successor_charges_a_jump_of_the_clock() {
        let a = [worker("a", 3.6)];
        for jumped in [100 * HOUR, 70 * HOUR] {
            let mut ledger = UsageLedger::default();
            ledger.advance(80 * HOUR, &a, 0);
            ledger.advance(81 * HOUR, &a, 0);
            ledger.follow_clock(81 * HOUR, jumped);
            ledger.resume(jumped);
            ledger.advance(jumped + HOUR, &a, 0);
            assert_eq!(ledger.milliseconds, 2 * HOUR);
            assert_eq!(ledger.machines[0].milliseconds, 2 * HOUR);
        }
    }

    #[test]
    fn time_during_which_machines_were_off_is_not_charged() {
        let on = |started_ms, id: &str| ActiveProcess {
            started_ms,
            machine: Machine {
                id: id.to_owned(),
                ..worker("a", 3.6).machine
            },
            ..worker(id, 3.6)
        };
        let mut ledger = UsageLedger::default();
        let first = [on(0, "i-1"), on(0, "i-2")];
        ledger.advance(0, &first, 0);
        ledger.advance(HOUR, &first, 0);
        // The coordinator crashes, and the next one starts two days later. The process on the first machine was
        // restarted half an hour before that. The process on the second machine has been running since the beginning.
        let now = 49 * HOUR;
        ledger.resume(now);
        ledger.advance(now, &[on(now - HOUR / 2, "i-1"), on(0, "i-2")], 0);
        assert_eq!(ledger.milliseconds, HOUR + MAX_ABSENCE_MS);
        let times: Vec<u64> = ledger
            .machines
            .iter()
            .map(|usage| usage.milliseconds)
            .collect();
        assert_eq!(times, [HOUR + HOUR / 2, now]);
        // An outage of five minutes is charged completely.
        let later = now + 300_000;
        ledger.resume(later);
        ledger.advance(later, &[on(later, "i-1"), on(0, "i-2")], 0);
        assert_eq!(ledger.milliseconds, HOUR + MAX_ABSENCE_MS + 300_000);
        assert_eq!(ledger.machines[0].milliseconds, HOUR + HOUR / 2 + 300_000);
    }

    #[test]
    fn time_in_two_concurrent_ledgers_is_charged_once() {
        let (a, b, c) = (worker("a", 1.0), worker("b", 1.0), worker("c", 1.0));
        let mut first = UsageLedger::default();
        first.advance(0, std::slice::from_ref(&a), 0);
        first.advance(HOUR, std::slice::from_ref(&a), 0);
        let mut second = first.clone();
        // Two processes advance the ledger at the same time. Worker `b` is connected to the first one, and worker `c`
        // to the second one.
        first.advance(HOUR, std::slice::from_ref(&b), 0);
        first.advance(3 * HOUR, &[a.clone(), b], 0);
        second.advance(HOUR, std::slice::from_ref(&c), 0);
        second.advance(2 * HOUR, &[a, c], 0);
        (first.writes, second.reads) = (5, 7);
        second.cover(&first);
        assert_eq!(second.milliseconds, 3 * HOUR);
        let hours: Vec<(&str, u64)> = second
            .machines
            .iter()
            .map(|usage| (usage.name.as_str(), usage.milliseconds / HOUR))
            .collect();
        assert_eq!(hours, [("a", 3), ("c", 1), ("b", 2)]);
        assert_eq!((second.writes, second.reads), (5, 7));
    }

    #[test]
    fn departed_machines_are_merged() {
        let mut ledger = UsageLedger::default();
        for n in 0..3000u64 {
            let present = [worker(&format!("w{n}"), 3.6), worker("stays", 36.0)];
            ledger.advance(n * 2000, &present, 0);
            ledger.advance(n * 2000 + 1000, &present, 0);
        }
        assert!(ledger.machines.len() < MAX_DEPARTED + 10);
        // 3000 workers worked for a second each at a tenth of a cent per second, and another worker for 5999 seconds
        // at a cent per second.
        assert_eq!(ledger.machine_cost(), Micros(3000 * 1000 + 5999 * 10_000));
    }

    #[test]
    fn restarted_processes_of_unknown_price_count_once() {
        let on = |started_ms, name: &str, id: &str, price_per_hour| ActiveProcess {
            name: name.to_owned(),
            started_ms,
            machine: Machine {
                id: id.to_owned(),
                price_per_hour,
                ..Machine::default()
            },
        };
        let mut ledger = UsageLedger::default();
        for restart in 0..3 {
            let present = [
                on(restart, "a", "", None),
                on(restart, "b", "", Some(Micros(5))),
                on(restart, "c", "i-1", None),
                on(restart, "d", "i-1", None),
                on(restart, "d", "i-2", None),
            ];
            ledger.advance(restart * 1000, &present, 0);
        }
        // The machines are that of `a`, i-1 and i-2.
        assert_eq!(ledger.unpriced(), 3);
        // The price of i-1 becomes known, but its earlier time is still not charged.
        ledger.advance(4000, &[on(9, "c", "i-1", Some(Micros(5)))], 0);
        assert_eq!(ledger.unpriced(), 3);
    }

    /// The time of a worker in two ledgers of a run, which two processes have advanced at the same time.
    #[derive(Clone, Debug)]
    struct History {
        /// Seconds before the ledgers were copied.
        common: u64,
        /// Seconds afterwards in each ledger. `None` means that this process did not see the worker.
        later: [Option<u64>; 2],
        /// Whether the worker has departed in the first and in the second ledger, and its entry has been merged.
        is_merged: [bool; 2],
        is_large: bool,
    }

    impl History {
        /// Returns the seconds in a ledger.
        fn seconds(&self, ledger: usize) -> Option<u64> {
            let later = self.later[ledger];
            match self.common {
                0 => later,
                common => Some(common + later.unwrap_or(0)),
            }
        }

        fn usage(&self, number: usize, seconds: u64) -> MachineUsage {
            // A second costs a tenth of a cent or a cent.
            let dollars = if self.is_large { 36.0 } else { 3.6 };
            let process = worker(&format!("w{number}"), dollars);
            MachineUsage {
                name: process.name,
                started_ms: process.started_ms,
                machine: Machine {
                    zone: format!("zone-{}", number % 3),
                    ..process.machine
                },
                milliseconds: seconds * 1000,
                until_ms: None,
            }
        }
    }

    fn histories() -> impl Strategy<Value = Vec<History>> {
        let later = || proptest::option::of(0u64..50);
        let one = (0u64..50, later(), later(), any::<[bool; 3]>());
        let one = one.prop_map(|(common, first, second, [a, b, is_large])| History {
            common,
            later: [first, second],
            is_merged: [a, b],
            is_large,
        });
        proptest::collection::vec(one, 0..12)
    }

    /// Returns one of the ledgers. `merges` is whether it has merged entries.
    fn ledger_of(workers: &[History], ledger: usize, merges: bool) -> UsageLedger {
        let usage = |(number, worker): (usize, &History)| {
            let seconds = worker.seconds(ledger)?;
            Some(worker.usage(number, seconds))
        };
        let mut result = UsageLedger {
            machines: workers.iter().enumerate().filter_map(usage).collect(),
            ..UsageLedger::default()
        };
        if merges {
            let kept: Vec<String> = workers
                .iter()
                .enumerate()
                .filter(|(_, worker)| !worker.is_merged[ledger])
                .map(|(number, _)| format!("w{number}"))
                .collect();
            result.merge(|usage| kept.contains(&usage.name));
        }
        result
    }

    #[test]
    fn departed_machines_that_one_ledger_has_merged_are_charged_once() {
        let mut stored = UsageLedger::default();
        for n in 0..MAX_DEPARTED as u64 {
            stored.advance(n * 1000, &[worker(&format!("w{n}"), 3.6)], 0);
            stored.advance(n * 1000 + 1000, &[worker(&format!("w{n}"), 3.6)], 0);
        }
        let mut memory = stored.clone();
        let now = MAX_DEPARTED as u64 * 1000;
        memory.advance(now, &[worker("a", 3.6)], 0);
        memory.advance(now + 1000, &[worker("b", 3.6)], 0);
        memory.advance(now + 2000, &[worker("b", 3.6)], 0);
        assert!(memory.machines.len() < 10);
        let expected = memory.machine_cost();
        assert_eq!(expected, Micros(MAX_DEPARTED as u64 * 1000 + 1000));
        stored.follow(memory);
        assert_eq!(stored.machine_cost(), expected);
    }

    proptest! {
        /// Checks that merged entries make two ledgers neither lose nor double time.
        #[test]
        fn cover_charges_at_least_each_ledger_and_at_most_the_time_of_each_machine(
            workers in histories(),
            merges in any::<[bool; 2]>(),
        ) {
            let ledgers = [0, 1].map(|ledger| ledger_of(&workers, ledger, merges[ledger]));
            let [first, second] = &ledgers;
            let mut covered = first.clone();
            covered.cover(second);
            let least = first.machine_cost().max(second.machine_cost());
            let most: Micros = workers
                .iter()
                .enumerate()
                .filter_map(|(number, worker)| {
                    let seconds = worker.seconds(0).max(worker.seconds(1))?;
                    worker.usage(number, seconds).cost()
                })
                .sum();
            prop_assert!(least <= covered.machine_cost() && covered.machine_cost() <= most);
            if !merges[0] && !merges[1] {
                prop_assert_eq!(covered.machine_cost(), most);
            }
            // The order does not matter, and a repetition changes nothing.
            let mut reversed = second.clone();
            reversed.cover(first);
            prop_assert_eq!(reversed.machine_cost(), covered.machine_cost());
            for ledger in &ledgers {
                covered.cover(ledger);
                prop_assert_eq!(reversed.machine_cost(), covered.machine_cost());
            }
        }

        /// Checks that neither intermediate updates nor saving and loading the ledger change the result.
        #[test]
        fn usage_does_not_depend_on_how_often_it_is_recorded(
            cuts in proptest::collection::vec(1u64..100_000, 0..20),
            micros in 0u64..10_000_000,
        ) {
            let who = [ActiveProcess {
                machine: Machine { price_per_hour: Some(Micros(micros)), ..Machine::default() },
                ..worker("a", 0.0)
            }];
            let end = cuts.iter().sum::<u64>() + 1000;
            let mut coarse = UsageLedger::default();
            coarse.advance(0, &who, 0);
            coarse.advance(end, &who, 0);
            let mut fine = UsageLedger::default();
            fine.advance(0, &who, 0);
            let mut now = 0;
            for cut in cuts {
                now += cut;
                fine.advance(now, &who, 0);
                fine = serde_json::from_str(&serde_json::to_string(&fine).unwrap()).unwrap();
            }
            // A clock that jumps back does not reduce the usage.
            fine.advance(now / 2, &who, 0);
            fine.advance(end, &who, 0);
            prop_assert_eq!(coarse, fine);
        }
    }
}
