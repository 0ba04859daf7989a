//! Notes of submitted runs in the object store.
//!
//! A coordinator that has lost the lease without noticing may still accept a run. Its successor has listed the runs before,
//! and would not learn of this one. Therefore a note is written before the manifest of a run that is created or reopened.
//! The active coordinator lists the notes regularly, takes up the runs that it does not know as open, and deletes the notes
//! once it has confirmed that it still holds the lease.

use crate::parts::Parts;
use hatebeam_env::watch;
use hatebeam_objects::ObjectError;
use hatebeam_runs::{ManifestError, VersionedManifest};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Prefix of the notes. A key ends with the name of the run, a dash and a random number.
const PREFIX: &str = "submissions";
/// Interval between two listings.
const INTERVAL: Duration = Duration::from_secs(60);

impl Parts {
    /// Writes a note that a run is about to be created or reopened.
    pub(crate) async fn announce(&self, run: &str) -> Result<(), ManifestError> {
        let key = format!("{PREFIX}/{run}-{:016x}", self.env.random());
        Ok(self.objects.put(&key, Vec::new().into()).await?)
    }

    /// Takes up the run of a note, if it is open in the object store and not here.
    async fn adopt(&self, run: &str) -> Result<(), ManifestError> {
        let _idle = self.idle_manifests.lock().await;
        let known = self.queue.manifest(run);
        if known.is_some_and(|manifest| manifest.is_open()) {
            return Ok(());
        }
        let loaded = VersionedManifest::load(&self.objects, run, self.conditional).await;
        match loaded {
            Ok(versioned) if versioned.manifest.is_open() => {
                tracing::info!(run, "adopted run that another coordinator had accepted");
                self.queue.put(&versioned.manifest);
                self.queue.notify_updates();
                Ok(())
            }
            // The manifest was not written, or the run has ended.
            Ok(_) => Ok(()),
            Err(error) if error.is_transient() => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// Adopts the runs of all notes and returns the keys of the notes.
    async fn adopt_all(&self) -> Result<Vec<String>, ManifestError> {
        let mut keys = Vec::new();
        for note in self.objects.list(PREFIX).await? {
            if let Some(run) = run_of(&note.key) {
                self.adopt(run).await?;
                keys.push(note.key);
            }
        }
        Ok(keys)
    }
}

/// Returns the run of a note.
fn run_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix(PREFIX)?.strip_prefix('/')?;
    Some(name.rsplit_once('-')?.0)
}

/// Adopts submitted runs forever. Ends if the lease is lost, of which `renewals` tells.
pub(crate) async fn keep_adopting(
    parts: Arc<Parts>,
    mut renewals: watch::Receiver<u64>,
) -> Infallible {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let keys = match parts.adopt_all().await {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!(%error, "cannot list submitted runs");
                continue;
            }
        };
        // A renewal that is under way may have been sent before the notes were listed.
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
    fn notes_name_their_runs() {
        let key = "submissions/patterns-10-0123abcd-00000000000000ff";
        assert_eq!(run_of(key), Some("patterns-10-0123abcd"));
        assert_eq!(run_of("submissions/x"), None);
        assert_eq!(run_of("events/x-1"), None);
    }
}
