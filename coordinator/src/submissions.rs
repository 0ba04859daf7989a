//! Notes about submitted runs, stored as objects so that the active coordinator finds every run.
//!
//! A coordinator that has lost the lease without noticing may still accept a run. Its successor has already listed the
//! runs and would miss this one. Therefore a coordinator writes a note before it writes the manifest of a run that it
//! creates or reopens. The active coordinator lists the notes regularly and adds the open runs that are missing from
//! its queue. It deletes the notes after it has confirmed that it still holds the lease.
//!
//! At the same times, it reads the runs again whose manifests it could not read when it started.

use crate::parts::Parts;
use hatebeam_env::watch;
use hatebeam_objects::ObjectError;
use hatebeam_runs::{ManifestError, VersionedManifest};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Key prefix of the notes. After it, a key contains a slash, the name of the run, a dash and a random number.
const PREFIX: &str = "submissions";
/// Interval between two listings of the notes.
const INTERVAL: Duration = Duration::from_secs(60);
/// Number of listings after which a note without the manifest of an open run is deleted. A coordinator that retries to write
/// a manifest gives up long before.
const MAX_LISTINGS: u32 = 10;

impl Parts {
    /// Writes a note about a run that is going to be created or reopened.
    pub(crate) async fn announce(&self, run: &str) -> Result<(), ManifestError> {
        let key = format!("{PREFIX}/{run}-{:016x}", self.env.random());
        Ok(self.objects.put(&key, Vec::new().into()).await?)
    }

    /// Adds a run to the queue if it is open in the object store but not in the queue. Returns `false` if the object store
    /// has no manifest of the run, or if the run has ended: then another coordinator may still be about to create or reopen
    /// it.
    async fn adopt(&self, run: &str) -> Result<bool, ManifestError> {
        let _idle = self.idle_manifests.lock().await;
        let known = self.queue.manifest(run);
        if known.is_some_and(|manifest| manifest.is_open()) {
            return Ok(true);
        }
        let loaded = VersionedManifest::load(&self.objects, run, self.conditional).await;
        match loaded {
            Ok(versioned) if versioned.manifest.is_open() => {
                tracing::info!(run, "adopted run that another coordinator had accepted");
                self.queue.put(&versioned.manifest);
                self.queue.notify_updates();
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(ManifestError::Object(error)) if error.is_not_found() => Ok(false),
            Err(error) if error.is_transient() => Err(error),
            // The manifest cannot be read.
            Err(_) => Ok(true),
        }
    }

    /// Reads the manifest of an unread run again, and adds the run to the queue.
    async fn read_again(&self, run: &str) {
        // Reading may take long while the object store is slow, so it does not hold the lock.
        let loaded = VersionedManifest::load(&self.objects, run, self.conditional).await;
        let _idle = self.idle_manifests.lock().await;
        if !self.queue.is_unread(run) {
            return;
        }
        match loaded {
            Ok(versioned) => {
                tracing::info!(run, "read run that could not be read at the start");
                self.queue.put(&versioned.manifest);
                self.queue.notify_updates();
            }
            Err(error) if error.is_unreadable() => {
                tracing::warn!(run, %error, "skipped unreadable run");
                self.queue.remove_unread(run);
            }
            Err(error) => tracing::warn!(run, %error, "cannot read run: trying again later"),
        }
    }

    /// Adopts the run of each note. Returns the keys of the notes that are no longer needed. `waiting` contains the notes
    /// without the manifest of an open run, with the number of listings that found them.
    async fn adopt_all(
        &self,
        waiting: &mut BTreeMap<String, u32>,
    ) -> Result<Vec<String>, ManifestError> {
        let (mut keys, mut found) = (Vec::new(), BTreeMap::new());
        for note in self.objects.list(PREFIX).await? {
            let Some(run) = run_of(&note.key) else {
                continue;
            };
            let listings = waiting.get(&note.key).map_or(1, |listings| listings + 1);
            if self.adopt(run).await? || listings >= MAX_LISTINGS {
                keys.push(note.key);
            } else {
                found.insert(note.key, listings);
            }
        }
        *waiting = found;
        Ok(keys)
    }
}

/// Returns the name of the run in a note's key.
fn run_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix(PREFIX)?.strip_prefix('/')?;
    Some(name.rsplit_once('-')?.0)
}

/// Adopts submitted runs at regular intervals, and never returns. When the lease is lost, the sender of `renewals` is
/// dropped. After the next adoption, the function then waits forever.
pub(crate) async fn keep_adopting(
    parts: Arc<Parts>,
    mut renewals: watch::Receiver<u64>,
) -> Infallible {
    let mut waiting = BTreeMap::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        for run in parts.queue.unread() {
            parts.read_again(&run).await;
        }
        let keys = match parts.adopt_all(&mut waiting).await {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!(%error, "cannot adopt submitted runs");
                continue;
            }
        };
        // The request for the next renewal may have begun before the notes were listed. Only the second renewal from now
        // proves that this coordinator held the lease afterwards.
        let enough = *renewals.borrow() + 2;
        if renewals.wait_for(|&count| count >= enough).await.is_err() {
            return std::future::pending().await;
        }
        if let Err(error) = delete_all(&parts, keys).await {
            tracing::warn!(%error, "cannot delete notes of submitted runs");
        }
    }
}

async fn delete_all(parts: &Parts, keys: Vec<String>) -> Result<(), ObjectError> {
    for key in keys {
        parts.objects.delete(&key).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::run_of;

    #[test]
    fn run_name_is_parsed_from_the_key_of_a_note() {
        let key = "submissions/patterns-10-0123abcd-00000000000000ff";
        assert_eq!(run_of(key), Some("patterns-10-0123abcd"));
        assert_eq!(run_of("submissions/x"), None);
        assert_eq!(run_of("events/x-1"), None);
    }
}
