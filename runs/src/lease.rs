//! Read access to the lease, the object with which a coordinator shows that it is active.

use hatebeam_objects::{ObjectError, Objects};
use serde::Deserialize;

/// Key of the lease.
pub const LEASE: &str = "coordinator.json";

#[derive(Deserialize)]
struct Holder {
    address: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    is_gone: bool,
}

/// Returns the URI of the coordinator that holds the lease. Returns `None` if no coordinator holds it, if the coordinator
/// advertises no URI, or if the object store is unavailable.
pub async fn coordinator_uri(objects: &Objects) -> Option<String> {
    let (bytes, _) = objects
        .get(LEASE)
        .await
        .inspect_err(|error| tracing::debug!(%error, "cannot read the coordinator's lease"))
        .ok()?;
    let holder: Holder = serde_json::from_slice(&bytes).ok()?;
    let is_uri = ["http://", "https://"]
        .iter()
        .any(|scheme| holder.address.starts_with(scheme));
    (is_uri && !holder.is_gone).then_some(holder.address)
}

/// Returns the identifier of the lease, which differs for each coordinator process. Returns an empty text if the object
/// store contains no lease that can be parsed.
///
/// # Errors
/// Returns an error if the lease cannot be read.
pub async fn lease_id(objects: &Objects) -> Result<String, ObjectError> {
    match objects.get(LEASE).await {
        Ok((bytes, _)) => {
            let holder: Result<Holder, _> = serde_json::from_slice(&bytes);
            Ok(holder.map(|holder| holder.id).unwrap_or_default())
        }
        Err(error) if error.is_not_found() => Ok(String::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_objects::{Memory, Options};

    #[tokio::test]
    async fn lease_id_is_empty_without_lease() {
        let objects = Objects::in_memory(&Memory::new(), &Options::default()).unwrap();
        assert_eq!(lease_id(&objects).await.unwrap(), "");
        for (record, expected) in [
            (r#"{"coordinator":"c","address":"a","id":"12ab"}"#, "12ab"),
            (r#"{"coordinator":"c","address":"a"}"#, ""),
            ("?", ""),
        ] {
            objects.put(LEASE, record.into()).await.unwrap();
            assert_eq!(lease_id(&objects).await.unwrap(), expected, "{record}");
        }
    }

    #[tokio::test]
    async fn coordinator_uri_requires_uri_and_active_coordinator() {
        let objects = Objects::in_memory(&Memory::new(), &Options::default()).unwrap();
        assert_eq!(coordinator_uri(&objects).await, None);
        for (record, expected) in [
            (
                r#"{"coordinator":"c","address":"https://10.0.0.9:7800","beats":3}"#,
                Some("https://10.0.0.9:7800"),
            ),
            (
                r#"{"coordinator":"c","address":"https://10.0.0.9:7800","beats":3,"is_gone":true}"#,
                None,
            ),
            (
                r#"{"coordinator":"c","address":"0.0.0.0:7800","beats":3}"#,
                None,
            ),
            ("?", None),
        ] {
            objects.put(LEASE, record.into()).await.unwrap();
            assert_eq!(
                coordinator_uri(&objects).await.as_deref(),
                expected,
                "{record}"
            );
        }
    }
}
