//! Delivery of run events to the hooks (webhooks and commands that users configure), and the outbox for end-of-run
//! events.
//!
//! An end-of-run event is staged in the object store, under `events/`, before the manifest is saved with the run's
//! final state. It is deleted once all hooks have received it. When a coordinator starts, it replays the staged
//! events of runs that have ended. Each staged event is therefore delivered at least once. It may be delivered again,
//! for example if a coordinator dies between the delivery and the deletion, or if a hook failed.
//!
//! Each staged event has its own key. A run may be submitted again and end again while a hook is still receiving the
//! event of its previous end. Deleting that event must not delete the new one.

use hatebeam_env::Env;
use hatebeam_notify::{Event, EventKind, Events, Milestones, Progress};
use hatebeam_objects::{Entry, Objects};
use hatebeam_runs::Manifest;
use hatebeam_search::DepthRecord;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Key prefix of staged events.
const OUTBOX: &str = "events";
/// Maximum time for which shutdown waits for the delivery of queued events.
const DELIVERY_LIMIT: Duration = Duration::from_secs(10);
/// Maximum time for which shutdown waits for the deletion of delivered events, after it has waited for the delivery.
const DELETION_LIMIT: Duration = Duration::from_secs(5);

/// A receiver of events.
pub trait EventSink: fmt::Debug + Send + Sync {
    /// Queues an event. Calls `done` after each hook has received the event or failed, with `true` if all hooks have
    /// received it.
    fn send(&self, event: Event, done: Option<Box<dyn FnOnce(bool) + Send>>);

    /// Stops accepting events, and blocks until the queued ones are delivered or `limit` has passed.
    fn close(&self, limit: Duration);
}

impl EventSink for Events {
    fn send(&self, event: Event, done: Option<Box<dyn FnOnce(bool) + Send>>) {
        match done {
            Some(done) => self.send_then(event, done),
            None => Events::send(self, event),
        }
    }

    fn close(&self, limit: Duration) {
        Events::close(self, limit);
    }
}

/// Settings for the delivery of events.
#[derive(Clone, Debug, Default)]
pub struct NotifierSettings {
    /// Receiver of all events; `None` if there are no hooks.
    pub events: Option<Arc<dyn EventSink>>,
    /// Number of depths between two milestone events.
    pub every: u32,
}

pub(crate) struct Notifier {
    env: Env,
    events: Option<Arc<dyn EventSink>>,
    every: u32,
    objects: Objects,
    /// Selection of milestone events, by run name.
    milestones: Mutex<BTreeMap<String, Milestones>>,
    /// Keys of staged events, by run name. Each of these events reports an end that the run's manifest does not
    /// contain. The events are deleted when the next end of the run is staged.
    obsolete: Mutex<BTreeMap<String, Vec<String>>>,
    /// Channel to the task that deletes staged events by key. `None` after shutdown. The channel is unbounded, but
    /// each end of a run adds only a few keys.
    to_delete: Mutex<Option<mpsc::UnboundedSender<String>>>,
}

struct StagedEvent {
    key: String,
    event: Event,
}

/// An event that is staged but not delivered yet, or `None` if there are no hooks.
#[must_use = "a staged event must be delivered after the manifest is saved"]
pub(crate) struct Staged(Option<StagedEvent>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn progress(manifest: &Manifest) -> Progress {
    Progress {
        depth: manifest.last().map_or(0, |last| last.record.depth),
        lines: manifest.best_lines(),
    }
}

impl Notifier {
    /// Creates the notifier, and starts the task that deletes delivered events from the outbox.
    pub(crate) fn start(
        env: &Env,
        settings: &NotifierSettings,
        objects: &Objects,
    ) -> (Arc<Notifier>, JoinHandle<()>) {
        let (to_delete, mut keys) = mpsc::unbounded_channel::<String>();
        let notifier = Notifier {
            env: env.clone(),
            events: settings.events.clone(),
            every: settings.every,
            objects: objects.clone(),
            milestones: Mutex::default(),
            obsolete: Mutex::default(),
            to_delete: Mutex::new(Some(to_delete)),
        };
        let objects = objects.clone();
        let deletion = env.spawn(async move {
            while let Some(key) = keys.recv().await {
                if let Err(error) = objects.delete(&key).await {
                    tracing::warn!(key, %error, "cannot delete staged event: the next start delivers it again");
                }
            }
        });
        (Arc::new(notifier), deletion)
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.env.wall_ms())
    }

    /// Sends an event of a run, without staging it.
    pub(crate) fn send(&self, manifest: &Manifest, kind: EventKind) {
        if let Some(events) = &self.events {
            let event = Event::new(&manifest.name, progress(manifest), kind, self.now());
            events.send(event, None);
        }
    }

    /// Sends the start event of a run. Also called when the search is resumed.
    pub(crate) fn started(&self, manifest: &Manifest) {
        let milestones = Milestones::new(self.every, progress(manifest));
        lock(&self.milestones).insert(manifest.name.clone(), milestones);
        let width = manifest.spec.width;
        self.send(manifest, EventKind::Started { width });
    }

    /// Sends an event if a committed depth contains a better game, and another if the depth is a milestone.
    pub(crate) fn committed(&self, manifest: &Manifest, record: &DepthRecord) {
        let events = {
            let mut runs = lock(&self.milestones);
            let milestones = runs
                .entry(manifest.name.clone())
                .or_insert_with(|| Milestones::new(self.every, Progress::default()));
            milestones.committed(record)
        };
        for event in events {
            self.send(manifest, event);
        }
    }

    /// Puts an end-of-run event into the outbox. Must be called before the manifest is saved with the run's final
    /// state. After that, pass the result to [`deliver`](Notifier::deliver).
    pub(crate) async fn stage(&self, manifest: &Manifest, kind: EventKind) -> Staged {
        if self.events.is_none() {
            return Staged(None);
        }
        let mut progress = progress(manifest);
        if let Some(result) = &manifest.result {
            progress.lines = result.lines;
        }
        let event = Event::new(&manifest.name, progress, kind, self.now());
        let key = format!("{OUTBOX}/{}-{:016x}.json", manifest.name, self.env.random());
        let text = serde_json::to_vec(&event).unwrap_or_default();
        if let Err(error) = self.objects.put(&key, text.into()).await {
            tracing::warn!(run = manifest.name, %error, "cannot stage event: it will be lost if this process dies");
        }
        // This event counts as obsolete until it is delivered, since the manifest may not be saved.
        let obsolete = lock(&self.obsolete).insert(manifest.name.clone(), vec![key.clone()]);
        for key in obsolete.into_iter().flatten() {
            self.delete(key);
        }
        Staged(Some(StagedEvent { key, event }))
    }

    /// Queues the deletion of a staged event. Does nothing after shutdown: the event stays staged.
    fn delete(&self, key: String) {
        if let Some(to_delete) = &*lock(&self.to_delete) {
            let _ = to_delete.send(key);
        }
    }

    pub(crate) fn deliver(&self, staged: Staged) {
        let (Some(events), Some(StagedEvent { key, event })) = (&self.events, staged.0) else {
            return;
        };
        lock(&self.obsolete).remove(&event.run);
        let to_delete = lock(&self.to_delete).clone();
        let done = move |by_all: bool| {
            if let Some(to_delete) = to_delete.filter(|_| by_all) {
                // An error means that the deletion task has ended. The next start then delivers the event again.
                let _ = to_delete.send(key);
            }
        };
        events.send(event, Some(Box::new(done)));
    }

    /// Delivers the staged event of a run whose end was saved although the object store reported an error.
    pub(crate) async fn deliver_saved(&self, manifest: &Manifest) {
        let keys = lock(&self.obsolete).remove(&manifest.name);
        for key in keys.into_iter().flatten() {
            let Ok((bytes, _)) = self.objects.get(&key).await else {
                // The event stays in the outbox. The next start delivers it.
                continue;
            };
            match serde_json::from_slice::<Event>(&bytes) {
                Ok(event) if event.kind.name() == manifest.state.name() => {
                    self.deliver(Staged(Some(StagedEvent { key, event })));
                }
                _ => self.delete(key),
            }
        }
    }

    /// Delivers the staged events of runs that have ended. `manifest` returns the manifest of a run.
    pub(crate) async fn replay_outbox(&self, manifest: impl Fn(&str) -> Option<Arc<Manifest>>) {
        if self.events.is_none() {
            return;
        }
        let staged = match self.objects.list(OUTBOX).await {
            Ok(staged) => staged,
            Err(error) => {
                tracing::warn!(%error, "cannot list the outbox: events staged by earlier coordinators are not delivered");
                return;
            }
        };
        let mut ended = Vec::new();
        for Entry { key, .. } in staged {
            let Ok((bytes, _)) = self.objects.get(&key).await else {
                continue;
            };
            let Ok(event) = serde_json::from_slice::<Event>(&bytes) else {
                tracing::warn!(key, "skipped object that is not an event");
                continue;
            };
            match manifest(&event.run) {
                Some(run) if !run.is_open() => ended.push(StagedEvent { key, event }),
                // A coordinator staged the event and died before it saved the manifest, or the run was submitted again.
                Some(_) => {
                    let mut obsolete = lock(&self.obsolete);
                    obsolete.entry(event.run).or_default().push(key);
                }
                None => {}
            }
        }
        ended.sort_by(|one, other| one.event.time.cmp(&other.event.time));
        for staged in ended {
            self.deliver(Staged(Some(staged)));
        }
    }

    /// Waits for a limited time until queued events are delivered and deleted from the outbox.
    pub(crate) async fn close(&self, deletion: JoinHandle<()>) {
        if let Some(events) = self.events.clone() {
            let closing = self.env.run_blocking(move || events.close(DELIVERY_LIMIT));
            if let Err(error) = closing.await {
                tracing::warn!(%error, "cannot close the hooks");
            }
        }
        lock(&self.to_delete).take();
        if tokio::time::timeout(DELETION_LIMIT, deletion)
            .await
            .is_err()
        {
            tracing::warn!(
                "stopped before all delivered events were deleted: the next start delivers them again"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::cluster::Hooks;
    use crate::tests::support::{Faults, direct, faulty, manifest};
    use hatebeam_objects::Memory;
    use hatebeam_runs::RunState;

    fn start<H: EventSink + 'static>(
        hooks: &Arc<H>,
        objects: &Objects,
    ) -> (Arc<Notifier>, JoinHandle<()>) {
        let settings = NotifierSettings {
            events: Some(hooks.clone()),
            every: 2,
        };
        Notifier::start(&Env::system(), &settings, objects)
    }

    type Done = Box<dyn FnOnce(bool) + Send>;

    /// An event sink that keeps the `done` callbacks, so that a test decides when the hooks answer.
    #[derive(Default)]
    struct SlowHooks(Mutex<Vec<Done>>);

    impl fmt::Debug for SlowHooks {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("SlowHooks")
        }
    }

    impl EventSink for SlowHooks {
        fn send(&self, _: Event, done: Option<Done>) {
            lock(&self.0).extend(done);
        }

        fn close(&self, _: Duration) {}
    }

    async fn staged(objects: &Objects) -> usize {
        objects.list(OUTBOX).await.unwrap().len()
    }

    #[tokio::test(start_paused = true)]
    async fn event_is_staged_at_the_documented_key() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(Hooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        let kind = EventKind::Cancelled {};
        let staged = notifier.stage(&manifest("r", 3), kind.clone()).await;
        let key = objects.list(OUTBOX).await.unwrap().remove(0).key;
        let id = key.strip_prefix("events/r-").unwrap();
        let id = id.strip_suffix(".json").unwrap();
        assert!(
            id.len() == 16 && u64::from_str_radix(id, 16).is_ok(),
            "{key}"
        );
        let (text, _) = objects.get(&key).await.unwrap();
        let event: Event = serde_json::from_slice(&text).unwrap();
        assert_eq!((event.run.as_str(), event.kind), ("r", kind));
        drop(staged);
        notifier.close(deletion).await;
    }

    #[tokio::test(start_paused = true)]
    async fn delivered_event_is_deleted_from_the_outbox() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(Hooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        let event = notifier
            .stage(&manifest("r", 3), EventKind::Cancelled {})
            .await;
        assert_eq!(staged(&objects).await, 1);
        assert!(hooks.names().is_empty());
        notifier.deliver(event);
        notifier.close(deletion).await;
        assert_eq!(hooks.names(), ["cancelled"]);
        assert_eq!(staged(&objects).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn late_delivery_does_not_delete_the_event_of_the_next_end() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(SlowHooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        let run = manifest("r", 3);
        let cancelled = notifier.stage(&run, EventKind::Cancelled {}).await;
        notifier.deliver(cancelled);
        // The run is submitted again, and ends again before the hook has received the first event.
        let reason = "no space".to_owned();
        let failed = notifier.stage(&run, EventKind::Failed { reason }).await;
        notifier.deliver(failed);
        let first = lock(&hooks.0).remove(0);
        first(true);
        notifier.close(deletion).await;
        let left = objects.list(OUTBOX).await.unwrap();
        let (text, _) = objects.get(&left[0].key).await.unwrap();
        let event: Event = serde_json::from_slice(&text).unwrap();
        assert_eq!((left.len(), event.kind.name()), (1, "failed"));
    }

    #[tokio::test(start_paused = true)]
    async fn staged_event_is_delivered_if_the_run_turns_out_to_have_ended() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(Hooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        let mut ended = manifest("r", 3);
        ended.state = RunState::Cancelled;
        drop(notifier.stage(&ended, EventKind::Cancelled {}).await);
        let mut failed = manifest("other", 3);
        failed.state = RunState::Failed;
        drop(notifier.stage(&failed, EventKind::Cancelled {}).await);
        for manifest in [&ended, &failed, &ended] {
            notifier.deliver_saved(manifest).await;
        }
        notifier.close(deletion).await;
        assert_eq!(hooks.names(), ["cancelled"]);
        assert_eq!(staged(&objects).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn event_of_an_unsaved_end_is_deleted_when_the_run_ends() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(Hooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        let open = Arc::new(manifest("r", 3));
        let kind = || EventKind::Cancelled {};
        drop(notifier.stage(&open, kind()).await);
        notifier.close(deletion).await;

        let (notifier, deletion) = start(&hooks, &objects);
        notifier.replay_outbox(|_| Some(Arc::clone(&open))).await;
        drop(notifier.stage(&open, kind()).await);
        let event = notifier.stage(&open, kind()).await;
        notifier.deliver(event);
        notifier.close(deletion).await;
        assert_eq!(hooks.names(), ["cancelled"]);
        assert_eq!(staged(&objects).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn event_that_a_hook_did_not_receive_is_replayed_at_the_next_start() {
        let objects = direct(&Memory::new());
        let failing = Arc::new(Hooks {
            fails: true,
            ..Hooks::default()
        });
        let (notifier, deletion) = start(&failing, &objects);
        let mut ended = manifest("r", 3);
        let event = notifier.stage(&ended, EventKind::Cancelled {}).await;
        notifier.deliver(event);
        notifier.close(deletion).await;
        assert_eq!(staged(&objects).await, 1);

        ended.state = RunState::Cancelled;
        let ended = Arc::new(ended);
        let hooks = Arc::new(Hooks::default());
        let (notifier, deletion) = start(&hooks, &objects);
        notifier.replay_outbox(|_| Some(Arc::clone(&ended))).await;
        notifier.close(deletion).await;
        assert_eq!(hooks.names(), ["cancelled"]);
        assert_eq!(staged(&objects).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn end_event_of_an_open_run_is_not_replayed() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(Hooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        let open = Arc::new(manifest("r", 3));
        let event = notifier.stage(&open, EventKind::Cancelled {}).await;
        drop(event);
        notifier.replay_outbox(|_| Some(Arc::clone(&open))).await;
        notifier.replay_outbox(|_| None).await;
        notifier.close(deletion).await;
        assert!(hooks.names().is_empty());
        assert_eq!(staged(&objects).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn event_is_delivered_even_if_it_cannot_be_staged() {
        let memory = Memory::new();
        let plan = Arc::new(Faults::default());
        let (objects, hooks) = (faulty(&memory, plan.clone()), Arc::new(Hooks::default()));
        let (notifier, deletion) = start(&hooks, &objects);
        plan.fail_all();
        let event = notifier
            .stage(&manifest("r", 3), EventKind::Cancelled {})
            .await;
        notifier.deliver(event);
        notifier.close(deletion).await;
        assert_eq!(hooks.names(), ["cancelled"]);
    }

    #[tokio::test(start_paused = true)]
    async fn better_games_and_milestones_are_sent_once() {
        let (objects, hooks) = (direct(&Memory::new()), Arc::new(Hooks::default()));
        let (notifier, _deletion) = start(&hooks, &objects);
        let manifest = manifest("r", 1);
        notifier.started(&manifest);
        for (depth, best_lines) in [(1, 0), (2, 1), (3, 1), (4, 3)] {
            let record = DepthRecord {
                depth,
                best_lines,
                ..manifest.depths[0].record.clone()
            };
            notifier.committed(&manifest, &record);
        }
        let expected = ["started", "best-score", "depth", "best-score", "depth"];
        assert_eq!(hooks.names(), expected);
    }
}
