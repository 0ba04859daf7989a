//! Tells what happens to runs to whoever wants to know, and does not forget how they ended.
//!
//! Before a manifest says that a run has ended, the event that tells so is put into the object store, under
//! `events/`, and it is removed when all hooks have taken it in. A coordinator that starts tells what still lies
//! there of runs that have ended. So the end of a run is told at least once, and again only if a coordinator
//! dies between telling it and removing it, or if a hook did not take it in.

use hatebeam_notify::{Event, EventKind, Events};
use hatebeam_objects::Objects;
use hatebeam_runs::Manifest;
use hatebeam_store::DepthRecord;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Where events lie that are still to be told.
const OUTBOX: &str = "events";
/// How long what is still to be told keeps a coordinator that is to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long a removal in the object store may keep it besides.
const FORGET: Duration = Duration::from_secs(5);

/// Whom to tell, and how often.
#[derive(Clone, Debug, Default)]
pub struct NotifierSettings {
    /// The hooks; none if nobody wants to know.
    pub events: Option<Events>,
    /// Depths between two milestones.
    pub every: u32,
}

/// Tells what happens to runs.
pub(crate) struct Notifier {
    events: Option<Events>,
    every: u32,
    objects: Objects,
    /// The most lines of each run's games, as far as they were told.
    best: Mutex<HashMap<String, u16>>,
    /// Runs whose end is told. Unbounded, but no run comes twice while its end is on its way.
    told: Mutex<Option<mpsc::UnboundedSender<String>>>,
}

/// The last depth that counts, and the most lines of any game.
fn standing(manifest: &Manifest) -> (u32, u32) {
    let depth = manifest.last().map_or(0, |last| last.record.depth);
    (depth, manifest.best_lines())
}

fn key(run: &str) -> String {
    format!("{OUTBOX}/{run}.json")
}

impl Notifier {
    /// A notifier, and what removes what has been told.
    pub(crate) fn new(
        notifications: &NotifierSettings,
        objects: &Objects,
    ) -> (Arc<Notifier>, JoinHandle<()>) {
        let (tell, mut told) = mpsc::unbounded_channel::<String>();
        let notifier = Notifier {
            events: notifications.events.clone(),
            every: notifications.every.max(1),
            objects: objects.clone(),
            best: Mutex::default(),
            told: Mutex::new(Some(tell)),
        };
        let objects = objects.clone();
        let forgetting = tokio::spawn(async move {
            while let Some(run) = told.recv().await {
                if let Err(error) = objects.delete(&key(&run)).await {
                    tracing::warn!(run, %error, "its end may be told once more");
                }
            }
        });
        (Arc::new(notifier), forgetting)
    }

    /// Tells that something happens to a run.
    pub(crate) fn tell(&self, manifest: &Manifest, what: EventKind) {
        if let Some(events) = &self.events {
            let standing = standing(manifest);
            events.send(Event::new(
                &manifest.name,
                standing,
                what,
                SystemTime::now(),
            ));
        }
    }

    /// Tells that a run is begun or gone on with.
    pub(crate) fn started(&self, manifest: &Manifest) {
        let lines = standing(manifest).1 as u16;
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        best.insert(manifest.name.clone(), lines);
        drop(best);
        let width = manifest.spec.width;
        self.tell(manifest, EventKind::Started { width });
    }

    /// Tells what there is to tell of a depth that counts now.
    pub(crate) fn committed(&self, manifest: &Manifest, record: &DepthRecord) {
        let is_better = {
            let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
            let best = best.entry(manifest.name.clone()).or_default();
            let is_better = record.best_lines > *best;
            *best = record.best_lines.max(*best);
            is_better
        };
        if is_better {
            self.tell(manifest, EventKind::BestScore {});
        }
        if record.depth.is_multiple_of(self.every) {
            let what = EventKind::Depth {
                wells: record.count,
                children: record.children,
                seconds: record.seconds,
            };
            self.tell(manifest, what);
        }
    }

    /// Writes down that the end of a run is to be told; to be called before the manifest says that it has
    /// ended, and the event to be told after that.
    pub(crate) async fn stage(&self, manifest: &Manifest, what: EventKind) -> Option<Event> {
        self.events.as_ref()?;
        let (depth, lines) = standing(manifest);
        let score = manifest
            .result
            .as_ref()
            .map_or(lines, |result| result.lines);
        let event = Event::new(&manifest.name, (depth, score), what, SystemTime::now());
        let text = serde_json::to_vec(&event).unwrap_or_default();
        if let Err(error) = self.objects.put(&key(&manifest.name), text.into()).await {
            tracing::warn!(run = manifest.name, %error, "its end will be told only if nothing comes between");
        }
        Some(event)
    }

    /// Tells the end of a run.
    pub(crate) fn deliver(&self, event: Option<Event>) {
        let (Some(events), Some(event)) = (&self.events, event) else {
            return;
        };
        let told = self
            .told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let run = event.run.clone();
        events.send_then(event, move |by_all| {
            if let Some(told) = told.filter(|_| by_all) {
                // If nobody listens any more, it is told once more at the next start.
                let _ = told.send(run);
            }
        });
    }

    /// Tells the ends of runs that an earlier coordinator has not told, or not to all.
    pub(crate) async fn replay_outbox(&self, manifest: impl Fn(&str) -> Option<Arc<Manifest>>) {
        if self.events.is_none() {
            return;
        }
        let owed = match self.objects.list(OUTBOX).await {
            Ok(owed) => owed,
            Err(error) => {
                tracing::warn!(%error, "what is still to be told is not known");
                return;
            }
        };
        for entry in owed {
            let Ok((bytes, _)) = self.objects.get(&entry.key).await else {
                continue;
            };
            let Ok(event) = serde_json::from_slice::<Event>(&bytes) else {
                tracing::warn!(key = entry.key, "this is no event");
                continue;
            };
            // Of a run that goes on it was written too early: the coordinator died before the run had ended.
            let has_ended = manifest(&event.run).is_some_and(|run| !run.is_open());
            if has_ended {
                self.deliver(Some(event));
            }
        }
    }

    /// Waits a while until all is told and taken note of.
    pub(crate) async fn close(&self, forgetting: JoinHandle<()>) {
        if let Some(events) = self.events.clone() {
            let closing = tokio::task::spawn_blocking(move || events.close(DRAIN));
            let _ = closing.await;
        }
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let _ = tokio::time::timeout(FORGET, forgetting).await;
    }
}
