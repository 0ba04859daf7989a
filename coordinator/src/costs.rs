//! What the run that is worked on costs: made up every second, and written down with the run's manifest.

use crate::registry::WorkerRegistry;
use crate::wire::machine_to_wire;
use hatebeam_cost::{
    ActiveProcess, Budget, Machine, MachineUsage, ObjectStorePrices, StoppedBy, UsageLedger,
    once_a_machine,
};
use hatebeam_objects::Objects;
use hatebeam_proto::v1;
use hatebeam_runs::Manifest;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Between two looks at who is here.
const EVERY: Duration = Duration::from_secs(1);

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}

/// The run that is worked on.
struct Open {
    run: String,
    ledger: UsageLedger,
    stored_bytes: u64,
    /// Requests that were made when it was looked last, of which the ledger has all: writes, reads.
    seen: (u64, u64),
}

/// What the run that is worked on costs.
pub(crate) struct CostTracker {
    registry: Arc<WorkerRegistry>,
    objects: Objects,
    pub(crate) prices: ObjectStorePrices,
    /// This process, whose machine is paid for as well.
    own: ActiveProcess,
    open: Mutex<Option<Open>>,
}

impl CostTracker {
    pub(crate) fn new(
        registry: Arc<WorkerRegistry>,
        objects: Objects,
        prices: ObjectStorePrices,
        machine: Machine,
    ) -> Arc<CostTracker> {
        Arc::new(CostTracker {
            registry,
            objects,
            prices,
            own: ActiveProcess {
                name: "coordinator".to_owned(),
                started_ms: now_ms(),
                machine,
            },
            open: Mutex::default(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests to the object store so far, this process's included.
    fn requests(&self) -> (u64, u64) {
        let (writes, reads) = self.registry.requests();
        let (own_writes, own_reads) = self.objects.stats().charged();
        (
            writes.saturating_add(own_writes),
            reads.saturating_add(own_reads),
        )
    }

    /// All processes that are here. What has neither name nor price is not on anybody's ledger.
    fn present(&self) -> Vec<ActiveProcess> {
        let mut present = self.registry.present();
        if self.own.machine != Machine::default() {
            present.push(self.own.clone());
        }
        present
    }

    /// A run is worked on from now on.
    pub(crate) fn begin(&self, manifest: &Manifest) {
        let seen = self.requests();
        *self.open() = Some(Open {
            run: manifest.name.clone(),
            ledger: manifest.ledger.clone(),
            stored_bytes: manifest.stored_bytes(),
            seen,
        });
        self.look();
    }

    /// No run is worked on from now on.
    pub(crate) fn end(&self) {
        *self.open() = None;
    }

    /// What is stored of the run that is worked on.
    pub(crate) fn stored(&self, bytes: u64) {
        if let Some(open) = &mut *self.open() {
            open.stored_bytes = bytes;
        }
    }

    /// Makes the ledger up until now.
    fn look(&self) {
        let (present, requests, now) = (self.present(), self.requests(), now_ms());
        if let Some(open) = &mut *self.open() {
            open.ledger.advance(now, &present, open.stored_bytes);
            let seen = std::mem::replace(&mut open.seen, requests);
            let more = |now: u64, then: u64| now.saturating_sub(then);
            open.ledger.writes = open.ledger.writes.saturating_add(more(requests.0, seen.0));
            open.ledger.reads = open.ledger.reads.saturating_add(more(requests.1, seen.1));
        }
    }

    /// Makes the ledger up, time and again.
    pub(crate) async fn keep_up(self: Arc<Self>) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look();
        }
    }

    /// The ledger of the run that is worked on, made up until now.
    pub(crate) fn ledger(&self, run: &str) -> Option<UsageLedger> {
        self.look();
        self.as_seen(run)
    }

    /// The same, as it was when it was looked last.
    fn as_seen(&self, run: &str) -> Option<UsageLedger> {
        let open = self.open();
        let open = open.as_ref().filter(|open| open.run == run);
        open.map(|open| open.ledger.clone())
    }

    /// What a run has cost, for those who ask.
    pub(crate) fn cost(&self, manifest: &Manifest) -> Cost {
        let is_open = self.as_seen(&manifest.name);
        let present = match is_open {
            Some(_) => self.present(),
            None => Vec::new(),
        };
        Cost {
            ledger: is_open.unwrap_or_else(|| manifest.ledger.clone()),
            prices: self.prices,
            budget: manifest.budget,
            stored_bytes: manifest.stored_bytes(),
            present,
        }
    }

    /// What all machines that are here cost in an hour, and how many of them have no price.
    pub(crate) fn per_hour(&self) -> (u64, u32) {
        per_hour(&self.present())
    }
}

fn per_hour(present: &[ActiveProcess]) -> (u64, u32) {
    let machines = once_a_machine(present, |one| one.machine.id.as_str());
    let price = |one: &&ActiveProcess| one.machine.micros_per_hour;
    let priced = machines.iter().filter_map(price);
    let unpriced = machines.iter().filter(|one| price(one).is_none());
    (priced.fold(0, u64::saturating_add), unpriced.count() as u32)
}

/// What a run has cost, and the machines that are here for it.
pub(crate) struct Cost {
    pub(crate) ledger: UsageLedger,
    prices: ObjectStorePrices,
    budget: Budget,
    stored_bytes: u64,
    present: Vec<ActiveProcess>,
}

impl Cost {
    /// Millionths of a dollar.
    pub(crate) fn micros(&self) -> u64 {
        self.ledger.micros(&self.prices)
    }

    /// Machines, requests, storage.
    pub(crate) fn parts(&self) -> [u64; 3] {
        [
            self.ledger.machine_micros(),
            self.ledger.request_micros(&self.prices),
            self.ledger.storage_micros(&self.prices),
        ]
    }

    /// What the machines that are here cost in an hour.
    pub(crate) fn per_hour(&self) -> u64 {
        per_hour(&self.present).0
    }

    /// Machines that were here and whose price is not known.
    pub(crate) fn unpriced(&self) -> u32 {
        let unpriced = |charge: &&MachineUsage| charge.machine.micros_per_hour.is_none();
        self.ledger.machines.iter().filter(unpriced).count() as u32
    }

    /// How much of the budget is spent, if there is one, and of which limit.
    pub(crate) fn share(&self) -> Option<(StoppedBy, f64)> {
        self.budget.share(self.micros(), self.ledger.milliseconds)
    }

    pub(crate) fn to_wire(&self) -> v1::Cost {
        let [machine_micros, request_micros, storage_micros] = self.parts();
        let here = |charge: &MachineUsage| {
            let is_same = |one: &ActiveProcess| match charge.machine.id.as_str() {
                "" => one.name == charge.name && one.started_ms == charge.started_ms,
                id => one.machine.id == id,
            };
            self.present.iter().any(is_same)
        };
        let machine = |charge: &MachineUsage| v1::MachineCost {
            name: charge.name.clone(),
            machine: Some(machine_to_wire(charge.machine.clone())),
            milliseconds: charge.milliseconds,
            micros: charge.micros().unwrap_or(0),
            active: here(charge),
        };
        v1::Cost {
            micros: self.micros(),
            machine_micros,
            request_micros,
            storage_micros,
            micros_per_hour: self.per_hour(),
            unpriced: self.unpriced(),
            machines: self.ledger.machines.iter().map(machine).collect(),
            storage_micros_per_month: self.prices.month(self.stored_bytes),
        }
    }
}
