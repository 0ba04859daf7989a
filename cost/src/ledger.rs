//! What a run costs, as its manifest has it.
//!
//! A machine is charged for from when it first attends while the run is searched until it is last seen, at its own
//! price. One that is away for a while and comes back was rented all the time, and so was one that a coordinator
//! finds when it takes a run up that another left in the middle. All sums are made of whole numbers (milliseconds,
//! requests, millionths of a dollar): they come out the same in whatever order they are added.

use serde::{Deserialize, Serialize};

/// Machines that are charged for one by one: of those that are gone, more are put together by kind. It bounds the
/// manifest, which is written at each depth.
const MOST_GONE: usize = 1000;
/// The longest text about a machine.
pub const MAX_TEXT: usize = 128;
/// The highest price of a machine: a million dollars an hour.
pub const MAX_MICROS: u64 = 1_000_000_000_000;
const MILLIS_PER_HOUR: u128 = 3_600_000;
/// A twelfth of a year.
const SECONDS_PER_MONTH: u128 = 2_629_746;

/// A machine that is rented.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Such as `c5d.18xlarge`; empty if it is not known.
    pub kind: String,
    /// `spot`, `on-demand`, or empty.
    pub market: String,
    /// Where it is; empty if that is not known.
    pub region: String,
    /// Where in the region.
    pub zone: String,
    /// What whoever rents it out calls it; empty if that is not known.
    pub id: String,
    /// Millionths of a dollar an hour.
    pub micros_per_hour: Option<u64>,
    /// Where the price is from, in words.
    pub price_from: String,
}

/// A process that works for a run now, and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveProcess {
    /// What it is called.
    pub name: String,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Where it runs.
    pub machine: Machine,
}

/// What is charged for one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineUsage {
    /// The worker on it.
    pub name: String,
    /// When that was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// What it is.
    pub machine: Machine,
    /// For how long.
    pub milliseconds: u64,
    /// When it was seen last, in milliseconds since 1970; none once the run does not need it any more.
    pub until_ms: Option<u64>,
}

impl MachineUsage {
    /// Millionths of a dollar; none if the price is not known.
    pub fn micros(&self) -> Option<u64> {
        let price = u128::from(self.machine.micros_per_hour?);
        let micros = price * u128::from(self.milliseconds) / MILLIS_PER_HOUR;
        Some(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Whether this is the machine of that process, and at the same price. Where machines have names of their own,
    /// a process that was started again there changes nothing.
    fn is_of(&self, present: &ActiveProcess) -> bool {
        let same = match present.machine.id.as_str() {
            "" => self.name == present.name && self.started_ms == present.started_ms,
            id => self.machine.id == id,
        };
        same && self.machine.micros_per_hour == present.machine.micros_per_hour
            && self.machine.market == present.machine.market
    }

    fn see(&mut self, now_ms: u64) {
        let since = self.until_ms.unwrap_or(now_ms);
        let elapsed = now_ms.saturating_sub(since);
        self.milliseconds = self.milliseconds.saturating_add(elapsed);
        self.until_ms = Some(now_ms.max(since));
    }
}

/// What an object store charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStorePrices {
    /// Billionths of a dollar for a request that writes or lists.
    pub nanos_per_write: u64,
    /// Billionths of a dollar for a request that reads.
    pub nanos_per_read: u64,
    /// Millionths of a dollar for a gigabyte and a month.
    pub micros_per_gb_month: u64,
}

impl ObjectStorePrices {
    /// Millionths of a dollar that so many bytes cost in a month.
    pub fn month(&self, bytes: u64) -> u64 {
        let micros = u128::from(bytes) * u128::from(self.micros_per_gb_month) / 1_000_000_000;
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}

/// What a run has taken so far that costs something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageLedger {
    /// The machines, those that are gone included.
    pub machines: Vec<MachineUsage>,
    /// For how long the run was worked on or waited for workers.
    pub milliseconds: u64,
    /// Until when this is made up, in milliseconds since 1970; none while nobody works on the run.
    pub until_ms: Option<u64>,
    /// Requests to the object store that write or list.
    pub writes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Kibibytes in the object store, times the seconds that they were there while the run was worked on.
    pub kib_seconds: u64,
}

impl UsageLedger {
    /// Makes the bill up until now: who is here, and how many bytes are in the object store.
    pub fn advance(&mut self, now_ms: u64, present: &[ActiveProcess], stored_bytes: u64) {
        let since = self.until_ms.unwrap_or(now_ms);
        let elapsed = now_ms.saturating_sub(since);
        self.milliseconds = self.milliseconds.saturating_add(elapsed);
        let kib = (stored_bytes >> 10).saturating_mul(elapsed) / 1000;
        self.kib_seconds = self.kib_seconds.saturating_add(kib);
        self.until_ms = Some(now_ms.max(since));
        for one in present {
            match self.machines.iter_mut().find(|charge| charge.is_of(one)) {
                Some(charge) => charge.see(now_ms),
                None => self.machines.push(MachineUsage {
                    name: one.name.clone(),
                    started_ms: one.started_ms,
                    machine: one.machine.clone(),
                    milliseconds: 0,
                    until_ms: Some(now_ms),
                }),
            }
        }
        self.fold(present);
    }

    /// Nobody works on the run from now on.
    pub fn close(&mut self) {
        self.until_ms = None;
        for charge in &mut self.machines {
            charge.until_ms = None;
        }
    }

    /// Puts machines that are gone together where there are too many of them: those of one kind and price.
    fn fold(&mut self, present: &[ActiveProcess]) {
        if self.machines.len() <= present.len() + MOST_GONE {
            return;
        }
        let (mut kept, gone): (Vec<MachineUsage>, Vec<MachineUsage>) =
            std::mem::take(&mut self.machines)
                .into_iter()
                .partition(|charge| present.iter().any(|one| charge.is_of(one)));
        let mut sums: Vec<MachineUsage> = Vec::new();
        for charge in gone {
            let machine = Machine {
                id: String::new(),
                zone: String::new(),
                ..charge.machine
            };
            match sums.iter_mut().find(|sum| sum.machine == machine) {
                Some(sum) => {
                    sum.milliseconds = sum.milliseconds.saturating_add(charge.milliseconds);
                }
                None => sums.push(MachineUsage {
                    name: "gone".to_owned(),
                    machine,
                    started_ms: 0,
                    until_ms: None,
                    ..charge
                }),
            }
        }
        kept.extend(sums);
        self.machines = kept;
    }

    /// Millionths of a dollar for machines, as far as their prices are known.
    pub fn machine_micros(&self) -> u64 {
        let each = self.machines.iter().filter_map(MachineUsage::micros);
        each.fold(0, u64::saturating_add)
    }

    /// Millionths of a dollar for requests.
    pub fn request_micros(&self, rates: &ObjectStorePrices) -> u64 {
        let writes = u128::from(self.writes) * u128::from(rates.nanos_per_write);
        let reads = u128::from(self.reads) * u128::from(rates.nanos_per_read);
        u64::try_from((writes + reads) / 1000).unwrap_or(u64::MAX)
    }

    /// Millionths of a dollar for what was stored while the run was worked on.
    pub fn storage_micros(&self, rates: &ObjectStorePrices) -> u64 {
        let byte_seconds = u128::from(self.kib_seconds) << 10;
        let micros = byte_seconds * u128::from(rates.micros_per_gb_month);
        let micros = micros / (1_000_000_000 * SECONDS_PER_MONTH);
        u64::try_from(micros).unwrap_or(u64::MAX)
    }

    /// Millionths of a dollar, all told.
    pub fn micros(&self, rates: &ObjectStorePrices) -> u64 {
        let parts = [
            self.machine_micros(),
            self.request_micros(rates),
            self.storage_micros(rates),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// What ended a run before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// The depth to stop at.
    MaxDepth,
    /// What it may cost.
    MaxCost,
    /// How long it may be searched.
    MaxHours,
}

impl StoppedBy {
    /// As the flag that sets the limit has it.
    pub fn name(self) -> &'static str {
        match self {
            StoppedBy::MaxDepth => "max-depth",
            StoppedBy::MaxCost => "max-cost",
            StoppedBy::MaxHours => "max-hours",
        }
    }
}

/// One of all that are on each rented machine: two workers on one machine rent it once. `id` is what whoever rents
/// machines out calls the machine; those of which nothing is known are each on one of their own.
pub fn once_a_machine<T>(all: &[T], id: impl Fn(&T) -> &str) -> Vec<&T> {
    let mut once: Vec<&T> = Vec::new();
    for one in all {
        if id(one).is_empty() || once.iter().all(|other| id(other) != id(one)) {
            once.push(one);
        }
    }
    once
}

/// What a run may take at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Millionths of a dollar, all told.
    pub max_cost_micros: Option<u64>,
    /// Seconds that it is worked on or waits for workers, all told.
    pub max_seconds: Option<u64>,
}

impl Budget {
    /// Which limit the next depth would break, if it takes as much as the last one did.
    pub fn broken_by(
        &self,
        spent_micros: u64,
        spent_millis: u64,
        (depth_micros, depth_millis): (u64, u64),
    ) -> Option<StoppedBy> {
        let breaks =
            |spent: u64, next: u64, max: u64| spent >= max || spent.saturating_add(next) > max;
        let max_millis = self.max_seconds.map(|seconds| seconds.saturating_mul(1000));
        if self
            .max_cost_micros
            .is_some_and(|max| breaks(spent_micros, depth_micros, max))
        {
            Some(StoppedBy::MaxCost)
        } else if max_millis.is_some_and(|max| breaks(spent_millis, depth_millis, max)) {
            Some(StoppedBy::MaxHours)
        } else {
            None
        }
    }

    /// How much of the budget is spent, from 0 on, of the limit that is nearest; none without a budget.
    pub fn share(&self, spent_micros: u64, spent_millis: u64) -> Option<(StoppedBy, f64)> {
        let share = |spent: u64, max: u64| spent as f64 / max.max(1) as f64;
        let cost = self.max_cost_micros.map(|max| share(spent_micros, max));
        let time = self.max_seconds.map(|max| share(spent_millis / 1000, max));
        let cost = cost.map(|share| (StoppedBy::MaxCost, share));
        let time = time.map(|share| (StoppedBy::MaxHours, share));
        cost.into_iter()
            .chain(time)
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: u64 = 3_600_000;
    const RATES: ObjectStorePrices = ObjectStorePrices {
        nanos_per_write: 5000,
        nanos_per_read: 400,
        micros_per_gb_month: 23_000,
    };

    fn worker(name: &str, dollars: f64) -> ActiveProcess {
        ActiveProcess {
            name: name.to_owned(),
            started_ms: 7,
            machine: Machine {
                kind: "c5d.18xlarge".to_owned(),
                micros_per_hour: Some((dollars * 1e6) as u64),
                ..Machine::default()
            },
        }
    }

    #[test]
    fn joins_leaves_and_a_restart_come_to_the_right_cents() {
        let (a, b) = (worker("a", 3.456), worker("b", 1.38));
        let mut bill = UsageLedger::default();
        // a from 0 to 2 h, b from 0:30 to 1:15, seen every second; for the last hour 500 GB are kept.
        for second in 0..=7200u64 {
            let has_b = (1800..=4500).contains(&second);
            let present = [a.clone(), b.clone()];
            let stored = if second > 3600 { 500_000_000_000 } else { 0 };
            bill.advance(second * 1000, &present[..1 + usize::from(has_b)], stored);
            // The coordinator is killed and started again: 45 s of nobody looking.
            if second == 2000 {
                let text = serde_json::to_string(&bill).unwrap();
                bill = serde_json::from_str(&text).unwrap();
                bill.advance(2_045_000, &present, 0);
            }
        }
        assert_eq!(bill.milliseconds, 2 * HOUR);
        assert_eq!(bill.machines[0].micros(), Some(6_912_000));
        assert_eq!(bill.machines[1].micros(), Some(1_035_000));
        // 500 GB for an hour at 2.3 cents a GB and month.
        let hour_of_storage = 500.0 * 23_000.0 / (2_629_746.0 / 3600.0);
        let storage = bill.storage_micros(&RATES) as f64;
        assert!(
            (storage - hour_of_storage).abs() < 2.0,
            "{storage} {hour_of_storage}"
        );
        (bill.writes, bill.reads) = (10_000, 100_000);
        assert_eq!(bill.request_micros(&RATES), 50_000 + 40_000);
        assert_eq!(
            bill.micros(&RATES),
            6_912_000 + 1_035_000 + 90_000 + bill.storage_micros(&RATES)
        );
    }

    #[test]
    fn who_comes_back_was_there_and_who_is_let_go_was_not() {
        let a = [worker("a", 3.6)];
        let mut bill = UsageLedger::default();
        bill.advance(0, &a, 0);
        bill.advance(1000, &[], 0);
        bill.advance(60_000, &a, 0);
        assert_eq!(bill.machines[0].milliseconds, 60_000);
        // The run is stopped, and gone on with a day later.
        bill.close();
        bill.advance(24 * HOUR, &a, 0);
        bill.advance(24 * HOUR + 5000, &a, 0);
        assert_eq!(bill.machines[0].milliseconds, 65_000);
        assert_eq!(bill.milliseconds, 65_000);
        // Another process of the same name is another machine, unless machines have names.
        let again = [ActiveProcess {
            started_ms: 8,
            ..a[0].clone()
        }];
        bill.advance(24 * HOUR + 6000, &again, 0);
        assert_eq!(bill.machines.len(), 2);
        let named = |started_ms, name: &str| ActiveProcess {
            started_ms,
            machine: Machine {
                id: "i-1".to_owned(),
                ..a[0].machine.clone()
            },
            name: name.to_owned(),
        };
        // Two workers on one machine, and one of them started anew: it is rented once.
        bill.advance(25 * HOUR, &[named(1, "x"), named(2, "y")], 0);
        bill.advance(26 * HOUR, &[named(3, "x"), named(2, "y")], 0);
        assert_eq!(bill.machines[2].milliseconds, HOUR);
        assert_eq!(bill.machines.len(), 3);
    }

    #[test]
    fn machines_that_are_gone_are_put_together() {
        let mut bill = UsageLedger::default();
        for n in 0..3000u64 {
            let present = [worker(&format!("w{n}"), 3.6), worker("stays", 36.0)];
            bill.advance(n * 2000, &present, 0);
            bill.advance(n * 2000 + 1000, &present, 0);
        }
        assert!(bill.machines.len() < MOST_GONE + 10);
        // 3000 workers for a second each at a tenth of a cent; and ten dollars an hour.
        assert_eq!(bill.machine_micros(), 3000 * 1000 + 5999 * 10_000);
    }

    #[test]
    fn a_budget_stops_before_it_is_broken() {
        let budget = Budget {
            max_cost_micros: Some(1_000_000),
            max_seconds: Some(60),
        };
        assert_eq!(budget.broken_by(500_000, 30_000, (400_000, 20_000)), None);
        assert_eq!(
            budget.broken_by(700_000, 30_000, (400_000, 20_000)),
            Some(StoppedBy::MaxCost)
        );
        assert_eq!(
            budget.broken_by(0, 50_000, (0, 20_000)),
            Some(StoppedBy::MaxHours)
        );
        assert_eq!(
            budget.broken_by(1_000_000, 0, (0, 0)),
            Some(StoppedBy::MaxCost)
        );
        assert_eq!(
            Budget::default().broken_by(u64::MAX, u64::MAX, (1, 1)),
            None
        );
        assert_eq!(
            budget.share(800_000, 30_000),
            Some((StoppedBy::MaxCost, 0.8))
        );
        assert_eq!(
            budget.share(100_000, 57_000),
            Some((StoppedBy::MaxHours, 0.95))
        );
        assert_eq!(Budget::default().share(1, 1), None);
    }

    proptest! {
        /// However often the bill is made up in between, and wherever it is written down and read again, it comes to
        /// the same.
        #[test]
        fn looking_more_often_costs_no_more(
            cuts in proptest::collection::vec(1u64..100_000, 0..20),
            micros in 0u64..10_000_000,
        ) {
            let who = [ActiveProcess {
                machine: Machine { micros_per_hour: Some(micros), ..Machine::default() },
                ..worker("a", 0.0)
            }];
            let end = cuts.iter().sum::<u64>() + 1000;
            let mut once = UsageLedger::default();
            once.advance(0, &who, 0);
            once.advance(end, &who, 0);
            let mut often = UsageLedger::default();
            often.advance(0, &who, 0);
            let mut now = 0;
            for cut in cuts {
                now += cut;
                often.advance(now, &who, 0);
                often = serde_json::from_str(&serde_json::to_string(&often).unwrap()).unwrap();
            }
            // A clock that goes back for a moment takes nothing away.
            often.advance(now / 2, &who, 0);
            often.advance(end, &who, 0);
            prop_assert_eq!(once, often);
        }
    }
}
