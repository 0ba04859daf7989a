//! The queue of runs. It contains the last saved manifest of each run (the object with the run's state), and the client
//! updates that are not saved yet.

use crate::update::RunUpdate;
use hatebeam_env::watch;
use hatebeam_runs::{Manifest, RunState};
use hatebeam_search::Fingerprint;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Entry {
    manifest: Arc<Manifest>,
    /// Reason why the run is delayed. Empty if it makes progress.
    note: String,
    /// The client update that has not been applied yet.
    update: Option<RunUpdate>,
}

#[derive(Default)]
struct Runs {
    entries: BTreeMap<String, Entry>,
    current: Option<String>,
    /// Name of the run whose search began most recently. The run may have ended.
    searched: Option<String>,
    /// Runs whose manifests could not be read at the start, but may be intact.
    unread: BTreeSet<String>,
}

/// Position of a run in lists, which are sorted in descending order: the most recently submitted run comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListPosition {
    submitted_ms: u64,
    name: String,
}

impl ListPosition {
    pub(crate) fn of(manifest: &Manifest) -> ListPosition {
        ListPosition {
            submitted_ms: manifest.submitted_ms,
            name: manifest.name.clone(),
        }
    }

    /// Parses the text that [`Display`](fmt::Display) writes.
    pub(crate) fn parse(text: &str) -> Option<ListPosition> {
        let (submitted, name) = text.split_once('/')?;
        Some(ListPosition {
            submitted_ms: submitted.parse().ok()?,
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.submitted_ms, self.name)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct QueuedRun {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) note: String,
}

/// All runs that the coordinator manages, including those that have ended.
#[derive(Default)]
pub(crate) struct RunQueue {
    runs: Mutex<Runs>,
    changes: watch::Sender<u64>,
    updates: watch::Sender<u64>,
    /// Fingerprint of this program's search. Runs with a different fingerprint are not searched.
    search: Fingerprint,
}

impl RunQueue {
    pub(crate) fn new(search: Fingerprint) -> RunQueue {
        RunQueue {
            search,
            ..RunQueue::default()
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified when any run changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns a receiver that is notified when a client updates or submits a run, or when a run that another
    /// coordinator accepted is added.
    pub(crate) fn updates(&self) -> watch::Receiver<u64> {
        self.updates.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn notify_updates(&self) {
        self.updates.send_modify(|count| *count += 1);
    }

    pub(crate) fn put(&self, manifest: &Manifest) {
        let mut runs = self.runs();
        if manifest.state == RunState::Running {
            runs.searched = Some(manifest.name.clone());
        }
        runs.unread.remove(&manifest.name);
        let manifest = Arc::new(manifest.clone());
        match runs.entries.get_mut(&manifest.name) {
            Some(entry) => {
                if !manifest.is_open() {
                    // The note describes a delay or progress before the end of the run.
                    entry.note = String::new();
                }
                entry.manifest = manifest;
            }
            None => {
                let entry = Entry {
                    note: String::new(),
                    update: None,
                    manifest: Arc::clone(&manifest),
                };
                runs.entries.insert(manifest.name.clone(), entry);
            }
        }
        drop(runs);
        self.changed();
    }

    pub(crate) fn remove(&self, run: &str) {
        self.runs().entries.remove(run);
        self.changed();
    }

    /// Remembers that the manifest of a run could not be read, but may be intact.
    pub(crate) fn add_unread(&self, run: String) {
        self.runs().unread.insert(run);
    }

    pub(crate) fn remove_unread(&self, run: &str) {
        self.runs().unread.remove(run);
        self.changed();
    }

    pub(crate) fn is_unread(&self, run: &str) -> bool {
        self.runs().unread.contains(run)
    }

    /// Returns the runs whose manifests could not be read, but may be intact.
    pub(crate) fn unread(&self) -> Vec<String> {
        self.runs().unread.iter().cloned().collect()
    }

    /// Marks a run as failed in the queue because its stored manifest cannot be read. Does not change the stored
    /// manifest.
    pub(crate) fn set_unreadable(&self, run: &str, reason: &str) {
        let Some(manifest) = self.manifest(run) else {
            return;
        };
        let mut manifest = Manifest::clone(&manifest);
        manifest.state = RunState::Failed;
        manifest.note = format!("its manifest cannot be read: {reason}");
        self.put(&manifest);
    }

    /// Sets the note that shows clients what delays a run. An empty text clears the note.
    pub(crate) fn note(&self, run: &str, note: String) {
        let mut runs = self.runs();
        let entry = runs.entries.get_mut(run);
        if let Some(entry) = entry.filter(|entry| entry.note != note) {
            entry.note = note;
            drop(runs);
            self.changed();
        }
    }

    /// Merges a client's update into the pending update of a run. Values of the new update take precedence.
    pub(crate) fn update(&self, run: &str, update: RunUpdate) {
        if let Some(entry) = self.runs().entries.get_mut(run) {
            entry.update = Some(update.or(entry.update.unwrap_or_default()));
        }
        self.notify_updates();
    }

    /// Puts back an update that could not be saved. Values of later client updates take precedence.
    pub(crate) fn put_back_update(&self, run: &str, update: RunUpdate) {
        if let Some(entry) = self.runs().entries.get_mut(run) {
            entry.update = Some(entry.update.unwrap_or_default().or(update));
        }
        self.notify_updates();
    }

    /// Takes the pending update of a run. The caller must apply and save it, or put it back.
    pub(crate) fn take_update(&self, run: &str) -> Option<RunUpdate> {
        let mut runs = self.runs();
        let entry = runs.entries.get_mut(run)?;
        entry.update.take()
    }

    /// Waits until a client's pending update withdraws the end of the search of a run: it cancels the run, or raises the
    /// limit that has ended the search. `saved` is the manifest while the best game is read back.
    pub(crate) async fn until_end_is_withdrawn(&self, saved: &Manifest) {
        let mut updates = self.updates();
        loop {
            updates.mark_unchanged();
            let update = {
                let runs = self.runs();
                runs.entries.get(&saved.name).and_then(|entry| entry.update)
            };
            if let Some(update) = update {
                let mut updated = saved.clone();
                update.put(&mut updated);
                if updated.reading_back().is_none() {
                    return;
                }
            }
            let _ = updates.changed().await;
        }
    }

    pub(crate) fn has_update(&self, run: &str) -> bool {
        let runs = self.runs();
        let entry = runs.entries.get(run);
        entry.is_some_and(|entry| entry.update.is_some())
    }

    pub(crate) fn manifest(&self, run: &str) -> Option<Arc<Manifest>> {
        let runs = self.runs();
        let entry = runs.entries.get(run)?;
        Some(Arc::clone(&entry.manifest))
    }

    /// Whether this program can search a run: both have the same search fingerprint.
    pub(crate) fn can_search(&self, manifest: &Manifest) -> bool {
        manifest.spec.search == self.search
    }

    /// Returns the run to search next: the running one, or else the open run that was submitted first. Skips runs
    /// that this program cannot search.
    pub(crate) fn next(&self) -> Option<String> {
        let runs = self.runs();
        let manifests = runs.entries.values().map(|entry| &entry.manifest);
        let open = manifests.filter(|manifest| manifest.is_open() && self.can_search(manifest));
        let order = |manifest: &&Arc<Manifest>| {
            let is_begun = manifest.state == RunState::Running;
            (!is_begun, manifest.submitted_ms, manifest.name.clone())
        };
        let next = open.min_by_key(order)?;
        Some(next.name.clone())
    }

    pub(crate) fn begin_next(&self) -> Option<String> {
        let next = self.next();
        self.runs().current.clone_from(&next);
        next
    }

    pub(crate) fn end_current(&self) {
        self.runs().current = None;
    }

    /// Whether a run is the current one or the next one to search.
    pub(crate) fn is_current_or_next(&self, run: &str) -> bool {
        let is_current = self.runs().current.as_deref() == Some(run);
        is_current || self.next().as_deref() == Some(run)
    }

    /// Returns the run whose search began most recently.
    pub(crate) fn last_searched(&self) -> Option<Arc<Manifest>> {
        let name = self.runs().searched.clone()?;
        self.manifest(&name)
    }

    pub(crate) fn get(&self, run: &str) -> Option<QueuedRun> {
        let runs = self.runs();
        runs.entries.get(run).map(|entry| entry.run(&self.search))
    }

    /// Returns all runs, most recently submitted first.
    pub(crate) fn all(&self) -> Vec<QueuedRun> {
        self.list(None, |_| true)
    }

    /// Returns the runs that satisfy `filter` and come after the list position `after`, most recently submitted
    /// first.
    pub(crate) fn list(
        &self,
        after: Option<&ListPosition>,
        filter: impl Fn(&Manifest) -> bool,
    ) -> Vec<QueuedRun> {
        let runs = self.runs();
        let wanted = runs.entries.values().filter(|entry| {
            let position = ListPosition::of(&entry.manifest);
            after.is_none_or(|after| position < *after) && filter(&entry.manifest)
        });
        let mut list: Vec<QueuedRun> = wanted.map(|entry| entry.run(&self.search)).collect();
        list.sort_by_key(|run| Reverse(ListPosition::of(&run.manifest)));
        list
    }

    /// Returns the number of open runs.
    pub(crate) fn open(&self) -> usize {
        let runs = self.runs();
        let manifests = runs.entries.values().map(|entry| &entry.manifest);
        manifests.filter(|manifest| manifest.is_open()).count()
    }

    /// Returns the epoch (the current period with a fixed set of workers) of the run in the state
    /// [`RunState::Running`] that this program can search. Returns 0 if there is no such run.
    pub(crate) fn epoch(&self) -> u64 {
        let runs = self.runs();
        let mut manifests = runs.entries.values().map(|entry| &entry.manifest);
        let running = manifests
            .find(|manifest| manifest.state == RunState::Running && self.can_search(manifest));
        running.map_or(0, |manifest| manifest.epoch)
    }
}

impl Entry {
    /// Returns the run with the note for clients. If the run's search fingerprint prevents its search, the note says
    /// so. Otherwise it is the queue's note, or the manifest's note if the queue's note is empty.
    fn run(&self, search: &Fingerprint) -> QueuedRun {
        let manifest = &self.manifest;
        let note = match (manifest.spec.check_search(search), self.note.as_str()) {
            (Err(error), _) if manifest.is_open() => error.to_string(),
            (_, "") => manifest.note.clone(),
            (_, note) => note.to_owned(),
        };
        QueuedRun {
            manifest: Arc::clone(manifest),
            note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::manifest;
    use crate::update::LimitsChange;
    use std::time::Duration;

    fn put(queue: &RunQueue, name: &str, submitted_ms: u64, state: RunState) {
        let mut manifest = manifest(name, 1);
        manifest.submitted_ms = submitted_ms;
        manifest.state = state;
        queue.put(&manifest);
    }

    #[test]
    fn next_run_is_the_running_one_or_the_one_submitted_first() {
        let queue = RunQueue::default();
        assert_eq!(queue.next(), None);
        put(&queue, "late", 2, RunState::Queued);
        put(&queue, "early", 1, RunState::Queued);
        put(&queue, "ended", 0, RunState::Finished);
        assert_eq!(queue.next().as_deref(), Some("early"));
        put(&queue, "late", 2, RunState::Running);
        assert_eq!(queue.next().as_deref(), Some("late"));
        assert_eq!(queue.open(), 2);
        let all: Vec<_> = queue
            .all()
            .iter()
            .map(|run| run.manifest.name.clone())
            .collect();
        assert_eq!(all, ["late", "early", "ended"]);
    }

    #[test]
    fn unreadable_and_removed_runs_are_not_searched() {
        let queue = RunQueue::default();
        put(&queue, "a", 1, RunState::Queued);
        put(&queue, "b", 2, RunState::Queued);
        queue.set_unreadable("a", "it names no format");
        assert_eq!(queue.next().as_deref(), Some("b"));
        let note = queue.get("a").unwrap().note;
        assert_eq!(note, "its manifest cannot be read: it names no format");
        queue.remove("b");
        assert_eq!(queue.next(), None);
        assert!(queue.get("b").is_none());
    }

    #[test]
    fn run_with_different_search_fingerprint_is_not_searched() {
        let queue = RunQueue::default();
        let mut other = manifest("r", 1);
        other.spec.search = Fingerprint::from_text("2-a-b");
        queue.put(&other);
        assert_eq!(queue.next(), None);
        let note = queue.get("r").unwrap().note;
        let expected = format!(
            "the run has search fingerprint 2-a-b, and this program has {}: use the program that began the run",
            Fingerprint::current()
        );
        assert_eq!(note, expected);
        let upgraded = RunQueue::new(Fingerprint::from_text("2-a-b"));
        upgraded.put(&other);
        assert_eq!(upgraded.next().as_deref(), Some("r"));
    }

    #[test]
    fn updates_are_merged_until_they_are_taken() {
        let queue = RunQueue::default();
        put(&queue, "r", 1, RunState::Running);
        let limits = |depth| LimitsChange {
            max_depth: Some(Some(depth)),
            max_cost: Some(None),
            ..LimitsChange::default()
        };
        let update = |depth| RunUpdate::limits(limits(depth));
        let mut updates = queue.updates();
        updates.mark_unchanged();
        queue.update("r", update(5));
        queue.update("r", RunUpdate::STOP);
        assert!(updates.has_changed().unwrap());
        let taken = queue.take_update("r").unwrap();
        let joined = RunUpdate {
            limits: limits(5),
            stop_requested: Some(true),
        };
        assert_eq!(taken, joined);
        assert!(!queue.has_update("r"));
        // A client changes the limits before the taken update is put back.
        let deeper = LimitsChange {
            max_depth: Some(Some(9)),
            max_time: Some(Some(Duration::from_secs(60))),
            ..LimitsChange::default()
        };
        queue.update("r", RunUpdate::limits(deeper));
        queue.put_back_update("r", taken);
        // Limits that the later client does not change keep their values.
        let joined = RunUpdate {
            limits: LimitsChange {
                max_cost: Some(None),
                ..deeper
            },
            ..joined
        };
        assert_eq!(queue.take_update("r"), Some(joined));
    }

    #[test]
    fn queue_note_hides_the_manifest_note_until_it_is_cleared() {
        let queue = RunQueue::default();
        let mut failed = manifest("r", 1);
        failed.note = "depth 4 failed".to_owned();
        queue.put(&failed);
        queue.note("r", "waiting for workers: 0 of 1".to_owned());
        assert_eq!(queue.get("r").unwrap().note, "waiting for workers: 0 of 1");
        queue.note("r", String::new());
        assert_eq!(queue.get("r").unwrap().note, "depth 4 failed");
    }

    #[test]
    fn end_of_run_clears_queue_note() {
        let queue = RunQueue::default();
        let mut manifest = manifest("r", 1);
        queue.put(&manifest);
        queue.note("r", "reading back the best game".to_owned());
        queue.put(&manifest);
        assert_eq!(queue.get("r").unwrap().note, "reading back the best game");
        manifest.state = RunState::Finished;
        queue.put(&manifest);
        assert_eq!(queue.get("r").unwrap().note, "");
    }
}
