//! The cost of the current run (the run that is being searched). Its usage ledger (machine time, requests,
//! storage) is advanced every second. Each saved manifest of the run contains the ledger.

use crate::registry::{RequestCounts, WorkerRegistry};
use hatebeam_cost::{
    ActiveProcess, Machine, MachineUsage, Micros, ObjectStorePrices, UsageLedger, one_per_machine,
};
use hatebeam_env::Env;
use hatebeam_objects::Objects;
use hatebeam_runs::{EndReason, Limits, Manifest, UsedShare};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Interval between two updates of the ledger.
const INTERVAL: Duration = Duration::from_secs(1);

/// The run that is being searched, and its usage so far.
struct Current {
    run: String,
    ledger: UsageLedger,
    stored_bytes: u64,
    /// Monotonic time at which charging began.
    began: Instant,
    /// Time charged since `began`, in milliseconds.
    charged_ms: u64,
    /// Reading of the wall clock at the last update of the ledger.
    wall_ms: u64,
    /// Request counters at the last update of the ledger.
    counted: RequestCounts,
}

pub(crate) struct CostTracker {
    env: Env,
    registry: Arc<WorkerRegistry>,
    objects: Objects,
    prices: ObjectStorePrices,
    /// This process, whose machine is charged too.
    own: ActiveProcess,
    current: Mutex<Option<Current>>,
}

impl CostTracker {
    pub(crate) fn new(
        env: &Env,
        registry: Arc<WorkerRegistry>,
        objects: Objects,
        prices: ObjectStorePrices,
        machine: Machine,
    ) -> Arc<CostTracker> {
        Arc::new(CostTracker {
            env: env.clone(),
            registry,
            objects,
            prices,
            own: ActiveProcess {
                name: "coordinator".to_owned(),
                started_ms: env.wall_ms(),
                machine,
            },
            current: Mutex::default(),
        })
    }

    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of object store requests so far, by the workers and by this process.
    fn requests(&self) -> RequestCounts {
        let workers = self.registry.requests();
        let (writes, reads) = self.objects.stats().charged();
        RequestCounts {
            writes: workers.writes.saturating_add(writes),
            reads: workers.reads.saturating_add(reads),
        }
    }

    /// Returns all processes whose machines are charged now. The coordinator is included only if its machine is known.
    fn present(&self) -> Vec<ActiveProcess> {
        let mut present = self.registry.present();
        if self.own.machine != Machine::default() {
            present.push(self.own.clone());
        }
        present
    }

    pub(crate) fn begin(&self, manifest: &Manifest) {
        let counted = self.requests();
        let wall_ms = self.env.wall_ms();
        let mut ledger = manifest.ledger.clone();
        ledger.resume(wall_ms);
        *self.current() = Some(Current {
            run: manifest.name.clone(),
            ledger,
            began: self.env.now(),
            charged_ms: 0,
            wall_ms,
            stored_bytes: manifest.stored_bytes(),
            counted,
        });
        self.advance();
    }

    pub(crate) fn end(&self) {
        *self.current() = None;
    }

    /// Sets the size of the current run's tables in the object store.
    pub(crate) fn set_stored(&self, bytes: u64) {
        if let Some(current) = &mut *self.current() {
            current.stored_bytes = bytes;
        }
    }

    /// Advances the ledger of the current run to now. Charges the elapsed monotonic time, even if the wall clock
    /// jumps. The times recorded in the ledger follow the wall clock, because another process may resume the ledger
    /// with its own wall clock.
    fn advance(&self) {
        let (present, requests) = (self.present(), self.requests());
        let wall_ms = self.env.wall_ms();
        if let Some(current) = &mut *self.current() {
            let elapsed = current.began.elapsed().as_millis() as u64;
            let charged_ms = std::mem::replace(&mut current.charged_ms, elapsed);
            let passed = elapsed.saturating_sub(charged_ms);
            let expected_ms = current.wall_ms.saturating_add(passed);
            current.wall_ms = wall_ms;
            let ledger = &mut current.ledger;
            ledger.advance(expected_ms, &present, current.stored_bytes);
            ledger.follow_clock(expected_ms, wall_ms);
            let counted = std::mem::replace(&mut current.counted, requests);
            let writes = requests.writes.saturating_sub(counted.writes);
            let reads = requests.reads.saturating_sub(counted.reads);
            ledger.writes = ledger.writes.saturating_add(writes);
            ledger.reads = ledger.reads.saturating_add(reads);
        }
    }

    pub(crate) async fn keep_advancing(self: Arc<Self>) -> Infallible {
        loop {
            tokio::time::sleep(INTERVAL).await;
            self.advance();
        }
    }

    /// Returns the current run and its ledger, advanced to now.
    pub(crate) fn current_ledger(&self) -> Option<(String, UsageLedger)> {
        self.advance();
        let current = self.current();
        let current = current.as_ref()?;
        Some((current.run.clone(), current.ledger.clone()))
    }

    /// Returns the ledger of a run, advanced to now. Returns `None` if it is not the current run.
    pub(crate) fn ledger(&self, run: &str) -> Option<UsageLedger> {
        self.advance();
        self.last_ledger(run)
    }

    /// Returns the cost of a run so far. Returns zero if it is not the current run.
    pub(crate) fn spent(&self, run: &str) -> Micros {
        let ledger = self.ledger(run);
        ledger.map_or(Micros::ZERO, |ledger| ledger.cost(&self.prices))
    }

    /// Returns the ledger of a run without advancing it. Returns `None` if it is not the current run.
    fn last_ledger(&self, run: &str) -> Option<UsageLedger> {
        let current = self.current();
        let current = current.as_ref().filter(|current| current.run == run);
        current.map(|current| current.ledger.clone())
    }

    pub(crate) fn cost(&self, manifest: &Manifest) -> Cost {
        // An ended run stays the current one while its garbage is collected, but is no longer charged.
        let is_open = manifest.is_open();
        let current = is_open.then(|| self.last_ledger(&manifest.name)).flatten();
        let present = match current {
            Some(_) => self.present(),
            None => Vec::new(),
        };
        Cost {
            ledger: current.unwrap_or_else(|| manifest.ledger.clone()),
            prices: self.prices,
            limits: manifest.limits,
            stored_bytes: manifest.stored_bytes(),
            present,
        }
    }

    /// Returns the hourly price of all machines that are active now.
    pub(crate) fn rate(&self) -> Rate {
        Rate::of(&self.present())
    }
}

/// Hourly price of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Hourly price of the machines whose price is known.
    pub per_hour: Micros,
    /// Number of machines whose price is unknown.
    pub unpriced: u32,
}

impl Rate {
    fn of(present: &[ActiveProcess]) -> Rate {
        let machines = one_per_machine(present, |one| one.machine.id.as_str());
        let prices = || machines.iter().map(|one| one.machine.price_per_hour);
        Rate {
            per_hour: prices().flatten().sum(),
            unpriced: prices().filter(Option::is_none).count() as u32,
        }
    }
}

/// Cost of a run, and the machines that are working on it.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Usage of the run.
    pub ledger: UsageLedger,
    prices: ObjectStorePrices,
    limits: Limits,
    stored_bytes: u64,
    present: Vec<ActiveProcess>,
}

/// Breakdown of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostParts {
    /// Cost of machines.
    pub machines: Micros,
    /// Cost of requests to the object store.
    pub requests: Micros,
    /// Cost of storage.
    pub storage: Micros,
}

impl Cost {
    /// Returns the cost of a run that has no workers and whose object store is free.
    #[cfg(test)]
    pub(crate) fn without_prices(manifest: &Manifest) -> Cost {
        Cost {
            ledger: manifest.ledger.clone(),
            prices: ObjectStorePrices::default(),
            limits: manifest.limits,
            stored_bytes: manifest.stored_bytes(),
            present: Vec::new(),
        }
    }

    /// Returns the total cost.
    pub fn total(&self) -> Micros {
        self.ledger.cost(&self.prices)
    }

    /// Returns the cost of machines, requests and storage.
    pub fn parts(&self) -> CostParts {
        CostParts {
            machines: self.ledger.machine_cost(),
            requests: self.ledger.request_cost(&self.prices),
            storage: self.ledger.storage_cost(&self.prices),
        }
    }

    /// Returns the hourly price of the machines that are working on the run.
    pub fn rate(&self) -> Rate {
        Rate::of(&self.present)
    }

    /// Returns the monthly price of the stored tables.
    pub fn storage_per_month(&self) -> Micros {
        self.prices.storage_per_month(self.stored_bytes)
    }

    /// Returns the number of machines on the ledger whose price is unknown.
    pub fn unpriced(&self) -> u32 {
        self.ledger.unpriced()
    }

    /// Whether the machine of a ledger entry is working on the run.
    pub fn is_present(&self, usage: &MachineUsage) -> bool {
        let mut processes = self.present.iter();
        processes.any(|process| usage.is_machine_of(process))
    }

    /// Returns whether the run has already used more than `limit` allows.
    pub fn exceeds(&self, limit: EndReason) -> bool {
        let time = Duration::from_millis(self.ledger.milliseconds);
        match limit {
            EndReason::MaxCost => self.limits.max_cost.is_some_and(|max| self.total() > max),
            EndReason::MaxHours => self.limits.max_time.is_some_and(|max| time > max),
            _ => false,
        }
    }

    /// Returns the used share of the cost or time limit, whichever is closer to being reached. Returns `None` if the
    /// run has neither.
    pub fn used_share(&self) -> Option<UsedShare> {
        let time = Duration::from_millis(self.ledger.milliseconds);
        self.limits.used_share(self.total(), time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::RegistrySettings;
    use crate::tests::support::{direct, manifest};
    use hatebeam_env::{Admission, Host};
    use hatebeam_metrics::{CoordinatorMetrics, Registry};
    use hatebeam_objects::Memory;
    use hatebeam_runs::RunState;
    use hatebeam_search::Fingerprint;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::task::Waker;

    const HOUR: u64 = 3_600_000;

    async fn advance(millis: u64) {
        tokio::time::advance(Duration::from_millis(millis)).await;
    }

    /// A host whose wall clock the test sets.
    #[derive(Default)]
    struct Clock(AtomicU64);

    impl Host for Clock {
        fn wall_ms(&self) -> u64 {
            self.0.load(Relaxed)
        }

        fn random(&self) -> u64 {
            0
        }

        fn add_task(&self) -> u64 {
            0
        }

        fn admit(&self, _: u64, _: &Waker) -> Admission {
            Admission::Run
        }

        fn remove_task(&self, _: u64) {}
    }

    /// Returns a tracker whose own machine costs one dollar an hour.
    fn tracker(clock: &Arc<Clock>, objects: &Objects) -> Arc<CostTracker> {
        let env = Env::with_host(clock.clone());
        let metrics = CoordinatorMetrics::register(&Registry::default());
        let second = Duration::from_secs(1);
        let settings = RegistrySettings {
            heartbeat: second,
            lost_after: second,
            search: Fingerprint::current(),
            lease: String::new(),
        };
        let registry = WorkerRegistry::new(&env, settings, &metrics);
        let prices = ObjectStorePrices {
            nanos_per_write: 5000,
            ..ObjectStorePrices::default()
        };
        let machine = Machine {
            price_per_hour: Some(Micros(1_000_000)),
            ..Machine::default()
        };
        CostTracker::new(&env, registry, objects.clone(), prices, machine)
    }

    #[tokio::test(start_paused = true)]
    async fn current_run_is_charged_until_it_ends() {
        let clock = Arc::new(Clock::default());
        let tracker = tracker(&clock, &direct(&Memory::new()));
        let run = manifest("r", 1);
        tracker.begin(&run);
        advance(HOUR / 2).await;
        assert_eq!(tracker.spent("r"), Micros(500_000));
        assert_eq!(tracker.spent("other"), Micros::ZERO);
        assert_eq!(tracker.cost(&run).total(), Micros(500_000));
        let mut ended = run.clone();
        ended.state = RunState::Finished;
        assert_eq!(tracker.cost(&ended).total(), Micros::ZERO);
        assert!(tracker.cost(&ended).present.is_empty());
        tracker.end();
        advance(HOUR / 2).await;
        assert!(tracker.ledger("r").is_none());
        // The run is no longer current, so the cost is that of the manifest's ledger, which is empty here.
        assert_eq!(tracker.cost(&run).total(), Micros::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn time_between_two_coordinators_is_not_charged() {
        let clock = Arc::new(Clock::default());
        let objects = direct(&Memory::new());
        let mut run = manifest("r", 1);
        let first = tracker(&clock, &objects);
        first.begin(&run);
        advance(HOUR).await;
        run.ledger = first.ledger("r").unwrap();
        run.ledger.close();
        // The second coordinator starts ten hours later.
        clock.0.store(11 * HOUR, Relaxed);
        let second = tracker(&clock, &objects);
        second.begin(&run);
        advance(HOUR).await;
        assert_eq!(second.spent("r"), Micros(2_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn time_is_charged_after_a_takeover_by_a_coordinator_whose_clock_is_behind() {
        let clock = Arc::new(Clock::default());
        let objects = direct(&Memory::new());
        let mut run = manifest("r", 1);
        clock.0.store(5 * HOUR, Relaxed);
        let first = tracker(&clock, &objects);
        first.begin(&run);
        advance(HOUR).await;
        run.ledger = first.ledger("r").unwrap();
        clock.0.store(2 * HOUR, Relaxed);
        let second = tracker(&clock, &objects);
        second.begin(&run);
        advance(HOUR).await;
        assert_eq!(second.spent("r"), Micros(2_000_000));
        assert_eq!(second.ledger("r").unwrap().milliseconds, 2 * HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn clock_jump_does_not_change_the_charge() {
        let clock = Arc::new(Clock::default());
        let tracker = tracker(&clock, &direct(&Memory::new()));
        clock.0.store(5 * HOUR, Relaxed);
        tracker.begin(&manifest("r", 1));
        advance(HOUR).await;
        assert_eq!(tracker.spent("r"), Micros(1_000_000));
        for hour in [1, 60, 6] {
            clock.0.store(hour * HOUR, Relaxed);
            assert_eq!(tracker.spent("r"), Micros(1_000_000));
        }
        advance(HOUR).await;
        assert_eq!(tracker.spent("r"), Micros(2_000_000));
    }

    #[tokio::test(start_paused = true)]
    async fn run_exceeds_a_limit_only_after_it_has_used_more() {
        let clock = Arc::new(Clock::default());
        let tracker = tracker(&clock, &direct(&Memory::new()));
        let mut run = manifest("r", 1);
        run.limits.max_cost = Some(Micros(1_000_000));
        run.limits.max_time = Some(Duration::from_millis(2 * HOUR));
        tracker.begin(&run);
        advance(HOUR).await;
        tracker.advance();
        assert!(!tracker.cost(&run).exceeds(EndReason::MaxCost));
        advance(HOUR).await;
        tracker.advance();
        assert!(tracker.cost(&run).exceeds(EndReason::MaxCost));
        assert!(!tracker.cost(&run).exceeds(EndReason::MaxHours));
        advance(HOUR).await;
        tracker.advance();
        assert!(tracker.cost(&run).exceeds(EndReason::MaxHours));
        assert!(!tracker.cost(&run).exceeds(EndReason::MaxDepth));
    }

    #[tokio::test(start_paused = true)]
    async fn clock_jump_before_a_takeover_is_not_charged() {
        let clock = Arc::new(Clock::default());
        let objects = direct(&Memory::new());
        let mut run = manifest("r", 1);
        clock.0.store(5 * HOUR, Relaxed);
        let first = tracker(&clock, &objects);
        first.begin(&run);
        // The clock was wrong when the machine started, and is corrected during the run.
        clock.0.store(50 * HOUR, Relaxed);
        advance(HOUR).await;
        run.ledger = first.ledger("r").unwrap();
        let second = tracker(&clock, &objects);
        second.begin(&run);
        advance(HOUR).await;
        assert_eq!(second.ledger("r").unwrap().milliseconds, 2 * HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_before_the_run_are_not_charged() {
        let clock = Arc::new(Clock::default());
        let objects = direct(&Memory::new());
        let tracker = tracker(&clock, &objects);
        let put = async || objects.put("key", "value".into()).await.unwrap();
        put().await;
        let before = objects.stats().charged();
        tracker.begin(&manifest("r", 1));
        assert_eq!(tracker.ledger("r").unwrap().writes, 0);
        put().await;
        put().await;
        let writes = objects.stats().charged().0 - before.0;
        assert_eq!(tracker.ledger("r").unwrap().writes, writes);
    }
}
