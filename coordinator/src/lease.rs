//! Which coordinator works with an object store: `coordinator.json`.
//!
//! The object is written again every second. A coordinator that starts and finds one looks whether it changes;
//! if it does not, its writer is gone, and the new one takes its place. Should two of them be mistaken about
//! each other nonetheless, the conditions on the manifests decide: one of them stops.

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
    Lost,
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
            },
            version: None,
        };
        if let Some((bytes, version)) = lease.read().await? {
            let sign: Option<Sign> = serde_json::from_slice(&bytes).ok();
            tracing::info!("another coordinator was here: looking whether it still is");
            tokio::time::sleep(SILENCE).await;
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
            Err(error) if error.is_changed() => Err(LeaseError::Lost),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the place up, so that the next need not wait.
    pub(crate) async fn give_up(self) {
        if let Err(error) = self.objects.delete(KEY).await {
            tracing::warn!(%error, "the sign of this coordinator stays");
        }
    }
}
