//! The lease on an object store: the object `coordinator.json`, which identifies the active coordinator.
//!
//! The coordinator that holds the lease renews it by rewriting the object, every second while a run is open and every
//! ten seconds otherwise. The object contains the interval. If the object exists when another coordinator starts, that
//! coordinator waits somewhat longer than the interval, and takes over the lease if the object has not changed.
//!
//! A coordinator that was suspended does not notice a takeover immediately, so two coordinators may believe that they
//! hold the lease. In this case the conditional writes of the manifests decide which one continues, and the other
//! stops. A coordinator that shuts down gracefully marks the lease as released, unless another coordinator has taken
//! it over.

use bytes::Bytes;
use hatebeam_env::{Env, watch};
use hatebeam_objects::{Condition, ObjectError, Objects, Version};
use hatebeam_runs::LEASE;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Interval between two renewals while a run is open. Also the pause before a failed renewal is retried.
const RENEWAL: Duration = Duration::from_secs(1);
/// Interval between two renewals while no run is open. Each renewal is a billed write: one every second costs about 13
/// dollars a month.
const IDLE_RENEWAL: Duration = Duration::from_secs(10);
/// Time by which a renewal may be late before the lease expires.
const GRACE: Duration = Duration::from_millis(2300);
/// Time without a successful renewal after which the coordinator stops, since another one may have taken over the
/// lease.
const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum time for releasing the lease. If the store does not respond in this time, the next coordinator waits until
/// the lease expires.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// The content of `coordinator.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    coordinator: String,
    address: String,
    /// Number of renewals. It makes each written content unique, because a store may give equal content the same
    /// version.
    beats: u64,
    /// Random identifier of the process. A coordinator's name is not unique: default names may contain the process ID,
    /// which is often 1 in a container.
    #[serde(default)]
    id: String,
    /// Whether the holder has released the lease, so that its successor need not wait.
    #[serde(default)]
    is_gone: bool,
    /// Interval until the next renewal, in milliseconds. Older coordinators, which do not write it, renew every second.
    #[serde(default = "default_renewal_ms")]
    renewal_ms: u64,
}

fn default_renewal_ms() -> u64 {
    millis(RENEWAL)
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

/// Returns the time without a renewal after which a lease expires. `None` stands for a record that cannot be parsed.
/// Its holder may be idle, so the idle interval applies.
fn expiry(record: Option<&Record>) -> Duration {
    let longest = millis(IDLE_RENEWAL);
    let renewal = record.map_or(longest, |record| record.renewal_ms.min(longest));
    Duration::from_millis(renewal) + GRACE
}

#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) name: String,
    pub(crate) address: String,
}

pub(crate) struct Lease {
    objects: Objects,
    /// Whether the store honors conditional writes.
    conditional: bool,
    record: Record,
    version: Option<Version>,
}

/// An error that prevents a coordinator from acquiring or renewing the lease.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The object store failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Another coordinator holds the lease and renews it.
    #[error(
        "the coordinator {name} at {address} holds the lease on this object store: stop it, or wait until it stops"
    )]
    Held {
        /// Name of the holder.
        name: String,
        /// Address of the holder.
        address: String,
    },
    /// Another coordinator has taken over the lease.
    #[error("another coordinator has taken over the lease on this object store")]
    Superseded,
}

impl Lease {
    /// Acquires the lease. If the store contains a lease that was not released, waits until it expires, and then
    /// takes it over unless it was renewed.
    pub(crate) async fn acquire(
        env: &Env,
        objects: &Objects,
        conditional: bool,
        holder: Holder,
    ) -> Result<Lease, LeaseError> {
        let mut lease = Lease {
            objects: objects.clone(),
            conditional,
            record: Record {
                coordinator: holder.name,
                address: holder.address,
                beats: 0,
                id: format!("{:016x}{:016x}", env.random(), env.random()),
                is_gone: false,
                renewal_ms: millis(RENEWAL),
            },
            version: None,
        };
        if let Some((found, version)) = lease.read().await? {
            let is_released = found.as_ref().is_some_and(|record| record.is_gone);
            if !is_released {
                let expiry = expiry(found.as_ref());
                tracing::info!(
                    seconds = expiry.as_secs_f64(),
                    "found the lease of another coordinator: waiting to see whether it is renewed"
                );
                tokio::time::sleep(expiry).await;
            }
            if let Some((_, now)) = lease.read().await? {
                if now != version {
                    let holder = found.map(|record| (record.coordinator, record.address));
                    let (name, address) = holder.unwrap_or_default();
                    return Err(LeaseError::Held { name, address });
                }
                lease.version = Some(version);
            }
        }
        lease.renew(RENEWAL).await?;
        Ok(lease)
    }

    /// Returns the random identifier of this process in the lease.
    pub(crate) fn id(&self) -> &str {
        &self.record.id
    }

    /// Reads the lease object. Returns its record (`None` if it cannot be parsed) and its version, or `None` if the
    /// object does not exist.
    async fn read(&self) -> Result<Option<(Option<Record>, Version)>, ObjectError> {
        match self.objects.get(LEASE).await {
            Ok((bytes, version)) => Ok(Some((serde_json::from_slice(&bytes).ok(), version))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renews the lease, and records that the next renewal follows after `interval`.
    async fn renew(&mut self, interval: Duration) -> Result<(), LeaseError> {
        self.record.renewal_ms = millis(interval);
        self.record.beats += 1;
        match self.write().await {
            Err(LeaseError::Superseded) => {
                self.adopt_own_write().await?;
                self.write().await
            }
            written => written,
        }
    }

    async fn write(&mut self) -> Result<(), LeaseError> {
        let text = Bytes::from(serde_json::to_vec(&self.record).unwrap_or_default());
        if !self.conditional {
            self.check_holder().await?;
            self.objects.put(LEASE, text).await?;
            return Ok(());
        }
        let condition = match &self.version {
            Some(version) => Condition::Is(version.clone()),
            None => Condition::Absent,
        };
        match self.objects.put_if(LEASE, text, &condition).await {
            Ok(version) => {
                self.version = Some(version);
                Ok(())
            }
            Err(error) if error.is_changed() => Err(LeaseError::Superseded),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that this process was the last to write the object. A store that ignores conditions does not detect
    /// another writer.
    async fn check_holder(&self) -> Result<(), LeaseError> {
        // The first write takes the lease over.
        let is_first = self.record.beats <= 1;
        match self.read().await? {
            Some((Some(found), _)) if !is_first && found.id != self.record.id => {
                Err(LeaseError::Superseded)
            }
            _ => Ok(()),
        }
    }

    /// Adopts the stored version of the lease if this process wrote it. A renewal whose response was lost counts as
    /// failed, although the store may have applied it.
    async fn adopt_own_write(&mut self) -> Result<(), LeaseError> {
        match self.read().await? {
            Some((Some(found), version)) if found.id == self.record.id => {
                tracing::info!("adopted own renewal whose response was lost");
                self.version = Some(version);
                Ok(())
            }
            _ => Err(LeaseError::Superseded),
        }
    }

    /// Marks the lease as released, so that the next coordinator need not wait.
    async fn release(mut self) {
        self.record.is_gone = true;
        match self.renew(RENEWAL).await {
            Ok(()) | Err(LeaseError::Superseded) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot release the lease: the next coordinator must wait until it expires");
            }
        }
    }
}

/// The task that renews the lease.
pub(crate) struct Heartbeat {
    stop: watch::Sender<bool>,
    busy: watch::Sender<bool>,
    renewals: watch::Receiver<u64>,
    task: JoinHandle<Result<(), LeaseError>>,
}

impl Heartbeat {
    /// Starts a task that renews the lease. The interval is one second until [`busy`](Heartbeat::busy) is set to
    /// `false`.
    pub(crate) fn start(env: &Env, lease: Lease) -> Heartbeat {
        let (stop, stopped) = watch::channel(false);
        let (busy, is_busy) = watch::channel(true);
        let (count, renewals) = watch::channel(0);
        let task = env.spawn(keep_renewing(env.clone(), lease, count, is_busy, stopped));
        Heartbeat {
            stop,
            busy,
            renewals,
            task,
        }
    }

    /// Returns a receiver for the number of renewals so far.
    pub(crate) fn renewals(&self) -> watch::Receiver<u64> {
        self.renewals.clone()
    }

    /// Returns the sender of a flag that is `true` while a run is open. Setting the flag to `true` renews an idle
    /// lease immediately.
    pub(crate) fn busy(&self) -> watch::Sender<bool> {
        self.busy.clone()
    }

    /// Waits until the task ends with an error or a panic. This method is cancel safe. It must not be called again
    /// after it has returned.
    pub(crate) async fn ended(&mut self) -> Result<LeaseError, tokio::task::JoinError> {
        // `Ok` cannot occur here: the task returns it only after `release` has stopped the task, and `release` consumes
        // this value.
        (&mut self.task).await.map(|ended| match ended {
            Err(error) => error,
            Ok(()) => LeaseError::Superseded,
        })
    }

    /// Stops the task, and releases the lease if it is still held.
    pub(crate) async fn release(mut self) {
        let _ = self.stop.send(true);
        let released = tokio::time::timeout(RELEASE_LIMIT, &mut self.task).await;
        if released.is_err() {
            self.task.abort();
            tracing::warn!(
                "cannot release the lease: timed out; the next coordinator must wait until it expires"
            );
        }
    }
}

/// Renews the lease until `stop` changes or its sender is dropped, and then releases the lease. Returns an error if the
/// lease is lost, or if no renewal succeeds for [`PATIENCE`].
async fn keep_renewing(
    env: Env,
    mut lease: Lease,
    count: watch::Sender<u64>,
    mut busy: watch::Receiver<bool>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), LeaseError> {
    let mut renewed = env.now();
    let mut pause = RENEWAL;
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => {
                lease.release().await;
                return Ok(());
            }
            () = begins(&mut busy), if pause > RENEWAL => {}
            () = tokio::time::sleep(pause) => {}
        }
        let is_busy = *busy.borrow();
        let interval = if is_busy { RENEWAL } else { IDLE_RENEWAL };
        match lease.renew(interval).await {
            Ok(()) => {
                renewed = env.now();
                pause = interval;
                count.send_modify(|count| *count += 1);
            }
            Err(LeaseError::Object(error)) if renewed.elapsed() < PATIENCE => {
                pause = RENEWAL;
                tracing::warn!(%error, "cannot renew the lease");
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a run is open.
async fn begins(busy: &mut watch::Receiver<bool>) {
    if busy.wait_for(|&is_busy| is_busy).await.is_err() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::{Faults, direct, faulty};
    use hatebeam_objects::Memory;
    use std::sync::Arc;

    /// Time after which a lease with an interval of one second expires.
    const EXPIRY: Duration = Duration::from_millis(3300);

    async fn acquire(objects: &Objects, name: &str) -> Result<Lease, LeaseError> {
        acquire_in(objects, true, name).await
    }

    /// Acquires the lease in a store that honors conditional writes if `conditional` is set.
    async fn acquire_in(
        objects: &Objects,
        conditional: bool,
        name: &str,
    ) -> Result<Lease, LeaseError> {
        let holder = Holder {
            name: name.to_owned(),
            address: "127.0.0.1:1".to_owned(),
        };
        Lease::acquire(&Env::system(), objects, conditional, holder).await
    }

    #[test]
    fn record_has_the_documented_format() {
        let record = Record {
            coordinator: "a".to_owned(),
            address: "127.0.0.1:1".to_owned(),
            beats: 7,
            id: "00ff".to_owned(),
            is_gone: false,
            renewal_ms: 10_000,
        };
        let text = concat!(
            r#"{"coordinator":"a","address":"127.0.0.1:1","beats":7,"id":"00ff","is_gone":false,"#,
            r#""renewal_ms":10000}"#
        );
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        // Records of older coordinators have fewer fields.
        let old = r#"{"coordinator":"a","address":"127.0.0.1:1","beats":7}"#;
        let old: Record = serde_json::from_str(old).unwrap();
        assert_eq!((old.beats, old.id.as_str(), old.is_gone), (7, "", false));
        assert_eq!(expiry(Some(&old)), EXPIRY);
    }

    #[tokio::test(start_paused = true)]
    async fn takeover_is_noticed_without_conditional_writes() {
        let objects = direct(&Memory::new());
        let mut first = acquire_in(&objects, false, "a").await.unwrap();
        first.renew(RENEWAL).await.unwrap();
        let mut second = acquire_in(&objects, false, "b").await.unwrap();
        let lost = first.renew(RENEWAL).await;
        assert!(matches!(lost, Err(LeaseError::Superseded)));
        second.renew(RENEWAL).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn released_lease_is_acquired_without_waiting() {
        let objects = direct(&Memory::new());
        acquire(&objects, "a").await.unwrap().release().await;
        let began = tokio::time::Instant::now();
        let mut next = acquire(&objects, "b").await.unwrap();
        next.renew(RENEWAL).await.unwrap();
        assert!(began.elapsed() < EXPIRY);
    }

    #[tokio::test(start_paused = true)]
    async fn renewed_lease_cannot_be_acquired_by_another_coordinator() {
        let objects = direct(&Memory::new());
        let first = acquire(&objects, "a").await.unwrap();
        let heartbeat = Heartbeat::start(&Env::system(), first);
        let error = acquire(&objects, "b").await.err().unwrap();
        assert!(matches!(error, LeaseError::Held { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("the coordinator a at 127.0.0.1:1 holds the lease"),
            "{text}"
        );
        heartbeat.release().await;
        acquire(&objects, "b").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn expired_lease_is_taken_over_and_its_holder_notices() {
        // The two processes may have the same name.
        for name in ["host-2", "host-1"] {
            let objects = direct(&Memory::new());
            // The first lease is never renewed, as if its process were suspended.
            let mut first = acquire(&objects, "host-1").await.unwrap();
            let mut second = acquire(&objects, name).await.unwrap();
            let lost = first.renew(RENEWAL).await;
            assert!(matches!(lost, Err(LeaseError::Superseded)), "{name}");
            second.renew(RENEWAL).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn superseded_holder_does_not_release_the_lease_of_its_successor() {
        let objects = direct(&Memory::new());
        let first = acquire(&objects, "a").await.unwrap();
        let mut second = acquire(&objects, "b").await.unwrap();
        first.release().await;
        second.renew(RENEWAL).await.unwrap();
        let began = tokio::time::Instant::now();
        let _third = acquire(&objects, "c").await.unwrap();
        assert!(began.elapsed() >= EXPIRY);
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_with_a_lost_answer_keeps_the_lease() {
        let memory = Memory::new();
        let plan = Arc::new(Faults::default());
        let mut lease = acquire(&faulty(&memory, plan.clone()), "a").await.unwrap();
        plan.lose_answers();
        let lost = lease.renew(RENEWAL).await;
        assert!(matches!(lost, Err(LeaseError::Object(_))), "{lost:?}");
        plan.end();
        lease.renew(RENEWAL).await.unwrap();
        lease.renew(RENEWAL).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeat_ends_when_the_lease_is_lost() {
        let memory = Memory::new();
        let plan = Arc::new(Faults::default());
        let lease = acquire(&faulty(&memory, plan.clone()), "a").await.unwrap();
        let mut heartbeat = Heartbeat::start(&Env::system(), lease);
        let mut renewals = heartbeat.renewals();
        renewals.wait_for(|&count| count >= 2).await.unwrap();
        plan.fail_all();
        acquire(&direct(&memory), "b").await.unwrap();
        plan.end();
        let ended = heartbeat.ended().await.unwrap();
        assert!(matches!(ended, LeaseError::Superseded), "{ended}");
    }

    #[tokio::test(start_paused = true)]
    async fn heartbeat_gives_up_when_the_store_stays_unavailable() {
        let memory = Memory::new();
        let plan = Arc::new(Faults::default());
        let lease = acquire(&faulty(&memory, plan.clone()), "a").await.unwrap();
        plan.fail_all();
        let began = tokio::time::Instant::now();
        let mut heartbeat = Heartbeat::start(&Env::system(), lease);
        let ended = heartbeat.ended().await.unwrap();
        assert!(
            matches!(&ended, LeaseError::Object(error) if error.is_transient()),
            "{ended}"
        );
        assert!(began.elapsed() >= PATIENCE);
    }

    async fn renewals_within(heartbeat: &Heartbeat, time: Duration) -> u64 {
        let before = *heartbeat.renewals().borrow();
        tokio::time::sleep(time).await;
        *heartbeat.renewals().borrow() - before
    }

    #[tokio::test(start_paused = true)]
    async fn idle_lease_is_renewed_every_ten_seconds_and_immediately_when_a_run_begins() {
        let objects = direct(&Memory::new());
        let lease = acquire(&objects, "a").await.unwrap();
        let heartbeat = Heartbeat::start(&Env::system(), lease);
        let minute = Duration::from_millis(60_500);
        assert_eq!(renewals_within(&heartbeat, minute).await, 60);
        let busy = heartbeat.busy();
        busy.send_replace(false);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(renewals_within(&heartbeat, minute).await, 6);
        busy.send_replace(true);
        let instant = Duration::from_millis(1);
        assert_eq!(renewals_within(&heartbeat, instant).await, 1);
        assert_eq!(renewals_within(&heartbeat, minute).await, 60);
        heartbeat.release().await;
    }

    #[tokio::test(start_paused = true)]
    async fn idle_lease_is_taken_over_only_after_the_idle_interval() {
        let objects = direct(&Memory::new());
        let mut silent = acquire(&objects, "a").await.unwrap();
        silent.renew(IDLE_RENEWAL).await.unwrap();
        let began = tokio::time::Instant::now();
        let lease = acquire(&objects, "b").await.unwrap();
        assert_eq!(began.elapsed(), IDLE_RENEWAL + GRACE);
        let heartbeat = Heartbeat::start(&Env::system(), lease);
        let busy = heartbeat.busy();
        // A second coordinator is refused both before and after each change of the interval.
        for step in 0..40 {
            busy.send_replace(step % 3 == 0);
            tokio::time::sleep(Duration::from_millis(770)).await;
            let refused = acquire(&objects, "c").await.err();
            assert!(
                matches!(refused, Some(LeaseError::Held { .. })),
                "step {step}"
            );
        }
        heartbeat.release().await;
    }

    #[tokio::test(start_paused = true)]
    async fn failed_renewal_of_an_idle_lease_is_repeated_before_it_expires() {
        let memory = Memory::new();
        let plan = Arc::new(Faults::default());
        let lease = acquire(&faulty(&memory, plan.clone()), "a").await.unwrap();
        let heartbeat = Heartbeat::start(&Env::system(), lease);
        heartbeat.busy().send_replace(false);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let second = async {
            tokio::time::sleep(Duration::from_millis(8_500)).await;
            plan.fail_all();
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            plan.end();
        };
        let objects = direct(&memory);
        let (refused, ()) = tokio::join!(acquire(&objects, "b"), second);
        assert!(matches!(refused, Err(LeaseError::Held { .. })));
        heartbeat.release().await;
    }
}
