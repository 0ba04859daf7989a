//! Which coordinator works with an object store: `coordinator.json`.
//!
//! The object is written again every second. A coordinator that starts and finds one looks whether it changes;
//! if it does not, its writer is gone, and the new one takes its place. Should two of them be mistaken about
//! each other nonetheless, the conditions on the manifests decide: one of them stops. A coordinator that ends
//! in order writes that it is gone, on the condition that the object is still its own: one that was stopped
//! for a while, and finds another in its place, must not take that one's sign away.

use bytes::Bytes;
use hatebeam_objects::{Condition, ObjectError, Objects, Version};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const KEY: &str = "coordinator.json";
/// Between two signs of life.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Who gives no sign for so long is gone.
const SILENCE: Duration = Duration::from_millis(3300);

#[derive(Debug, Serialize, Deserialize)]
struct Sign {
    coordinator: String,
    address: String,
    beats: u64,
    /// It has ended in order: nobody need wait for it.
    #[serde(default)]
    is_gone: bool,
}

/// The right to work with an object store.
pub(crate) struct Lease {
    objects: Objects,
    conditional: bool,
    sign: Sign,
    version: Option<Version>,
}

/// Why there is no right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(
        "the coordinator {name} at {address} works with this object store; stop it, or wait until it is gone"
    )]
    Taken { name: String, address: String },
    #[error("another coordinator has taken over")]
    WorkerError,
}

impl Lease {
    /// Takes the place of whoever had it before, if that one is gone.
    pub(crate) async fn take(
        objects: &Objects,
        conditional: bool,
        coordinator: &str,
        address: &str,
    ) -> Result<Lease, LeaseError> {
        let mut lease = Lease {
            objects: objects.clone(),
            conditional,
            sign: Sign {
                coordinator: coordinator.to_owned(),
                address: address.to_owned(),
                beats: 0,
                is_gone: false,
            },
            version: None,
        };
        if let Some((bytes, version)) = lease.read().await? {
            let sign: Option<Sign> = serde_json::from_slice(&bytes).ok();
            if !sign.as_ref().is_some_and(|sign| sign.is_gone) {
                tracing::info!("another coordinator was here: looking whether it still is");
                tokio::time::sleep(SILENCE).await;
            }
            if let Some((_, now)) = lease.read().await? {
                if now != version {
                    let sign = sign.map(|sign| (sign.coordinator, sign.address));
                    let (name, address) = sign.unwrap_or_default();
                    return Err(LeaseError::Taken { name, address });
                }
                lease.version = Some(version);
            }
        }
        lease.beat().await?;
        Ok(lease)
    }

    async fn read(&self) -> Result<Option<(Bytes, Version)>, ObjectError> {
        match self.objects.get(KEY).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a sign of life.
    pub(crate) async fn beat(&mut self) -> Result<(), LeaseError> {
        self.sign.beats += 1;
        let text = serde_json::to_vec(&self.sign).unwrap_or_default();
        if !self.conditional {
            self.objects.put(KEY, Bytes::from(text)).await?;
            return Ok(());
        }
        let condition = match &self.version {
            Some(version) => Condition::Is(version.clone()),
            None => Condition::Absent,
        };
        match self
            .objects
            .put_if(KEY, Bytes::from(text), &condition)
            .await
        {
            Ok(version) => {
                self.version = Some(version);
                Ok(())
            }
            Err(error) if error.is_changed() => Err(LeaseError::WorkerError),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the place up, so that the next need not wait.
    pub(crate) async fn give_up(mut self) {
        self.sign.is_gone = true;
        match self.beat().await {
            Ok(()) | Err(LeaseError::WorkerError) => {}
            Err(error) => {
                tracing::warn!(%error, "the next coordinator will have to wait for a sign of this one");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_objects::Options;

    async fn store(dir: &tempfile::TempDir) -> Objects {
        let at = dir.path().display().to_string();
        Objects::open(&at, &Options::default()).await.unwrap()
    }

    async fn take(objects: &Objects, name: &str) -> Result<Lease, LeaseError> {
        Lease::take(objects, true, name, "127.0.0.1:1").await
    }

    #[tokio::test]
    async fn who_ends_in_order_need_not_be_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let objects = store(&dir).await;
        take(&objects, "a").await.unwrap().give_up().await;
        let began = std::time::Instant::now();
        let mut next = take(&objects, "b").await.unwrap();
        next.beat().await.unwrap();
        assert!(began.elapsed() < SILENCE);
    }

    #[tokio::test]
    async fn who_lives_keeps_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let objects = store(&dir).await;
        let mut first = take(&objects, "a").await.unwrap();
        let rival = take(&objects, "b");
        let beat = async {
            tokio::time::sleep(BEAT).await;
            first.beat().await
        };
        let (rival, beat) = tokio::join!(rival, beat);
        beat.unwrap();
        let taken = rival.err().unwrap().to_string();
        assert!(
            taken.starts_with("the coordinator a at 127.0.0.1:1"),
            "{taken}"
        );
    }

    #[tokio::test]
    async fn who_was_superseded_leaves_the_other_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let objects = store(&dir).await;
        let first = take(&objects, "a").await.unwrap();
        let mut second = take(&objects, "b").await.unwrap();
        first.give_up().await;
        second.beat().await.unwrap();
    }
}
