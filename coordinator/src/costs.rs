//! What the run that is worked on costs: made up every second, and written down with the run's manifest.

use crate::registry::WorkerRegistry;
use crate::wire::machine_to_wire;
use hatebeam_cost::{
    ActiveProcess, Machine, MachineUsage, Micros, ObjectStorePrices, UsageLedger, one_per_machine,
};
use hatebeam_objects::Objects;
use hatebeam_proto::v1;
use hatebeam_runs::{Limits, Manifest, UsedShare};
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
            limits: manifest.limits,
            stored_bytes: manifest.stored_bytes(),
            present,
        }
    }

    /// What all machines that are here cost in an hour, and how many of them have no price.
    pub(crate) fn per_hour(&self) -> (Micros, u32) {
        per_hour(&self.present())
    }
}

fn per_hour(present: &[ActiveProcess]) -> (Micros, u32) {
    let machines = one_per_machine(present, |one| one.machine.id.as_str());
    let price = |one: &&ActiveProcess| one.machine.price_per_hour;
    let priced = machines.iter().filter_map(price);
    let unpriced = machines.iter().filter(|one| price(one).is_none());
    (priced.sum(), unpriced.count() as u32)
}

/// What a run has cost, and the machines that are here for it.
pub(crate) struct Cost {
    pub(crate) ledger: UsageLedger,
    prices: ObjectStorePrices,
    limits: Limits,
    stored_bytes: u64,
    present: Vec<ActiveProcess>,
}

impl Cost {
    /// Total cost.
    pub(crate) fn total(&self) -> Micros {
        self.ledger.cost(&self.prices)
    }

    /// Cost of machines, requests and storage.
    pub(crate) fn parts(&self) -> [Micros; 3] {
        [
            self.ledger.machine_cost(),
            self.ledger.request_cost(&self.prices),
            self.ledger.storage_cost(&self.prices),
        ]
    }

    /// Hourly price of the machines that are present.
    pub(crate) fn per_hour(&self) -> Micros {
        per_hour(&self.present).0
    }

    /// Number of used machines whose price is not known.
    pub(crate) fn unpriced(&self) -> u32 {
        self.ledger.unpriced()
    }

    /// Used share of the limit that is nearest, if there is one.
    pub(crate) fn used_share(&self) -> Option<UsedShare> {
        let time = Duration::from_millis(self.ledger.milliseconds);
        self.limits.used_share(self.total(), time)
    }

    pub(crate) fn to_wire(&self) -> v1::Cost {
        let [machine, request, storage] = self.parts();
        let machine_cost = |usage: &MachineUsage| v1::MachineCost {
            name: usage.name.clone(),
            machine: Some(machine_to_wire(usage.machine.clone())),
            milliseconds: usage.milliseconds,
            micros: usage.cost().unwrap_or_default().0,
            active: self
                .present
                .iter()
                .any(|process| usage.is_machine_of(process)),
        };
        v1::Cost {
            micros: self.total().0,
            machine_micros: machine.0,
            request_micros: request.0,
            storage_micros: storage.0,
            micros_per_hour: self.per_hour().0,
            unpriced: self.unpriced(),
            machines: self.ledger.machines.iter().map(machine_cost).collect(),
            storage_micros_per_month: self.prices.storage_per_month(self.stored_bytes).0,
        }
    }
}
