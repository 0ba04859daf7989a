//! The metadata service of an AWS machine (IMDSv2, which requires a session token for each request).

use aws_config::imds::Client;
use aws_config::imds::client::error::ImdsError;
use aws_config::provider_config::ProviderConfig;
use hatebeam_cost::Machine;
use std::time::Duration;

/// Maximum time to connect to the service and to wait for its response. The service runs on the same host and usually
/// responds immediately.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between requests for the spot interruption notice, which AWS publishes two minutes before the interruption.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Environment variable that disables the use of the service. The AWS tools use the same variable.
const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";
/// Environment variable with the address of the service.
const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

/// A client for the metadata service.
#[derive(Debug)]
pub struct Metadata {
    client: Client,
}

/// Returns whether this machine may have a metadata service. On other machines, a request would block until its
/// timeout.
pub fn is_aws() -> bool {
    let is_disabled = std::env::var(DISABLED).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    if is_disabled {
        return false;
    }
    let vendor = std::fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    std::env::var_os(ENDPOINT).is_some() || vendor.trim() == "Amazon EC2"
}

impl Metadata {
    /// Returns a client and the service's description of this machine, or `None` if there is no service or it does not
    /// respond.
    pub async fn find() -> Option<(Metadata, Machine)> {
        if !is_aws() {
            return None;
        }
        let http = aws_smithy_http_client::Builder::new().build_http();
        let config = ProviderConfig::without_region().with_http_client(http);
        let client = Client::builder()
            .configure(&config)
            .max_attempts(2)
            .connect_timeout(TIMEOUT)
            .read_timeout(TIMEOUT)
            .build();
        let metadata = Metadata { client };
        let kind = match metadata.get("instance-type").await {
            Ok(kind) => kind.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "cannot read the machine type from the metadata service");
                return None;
            }
        };
        let machine = Machine {
            kind,
            market: metadata.get_or_empty("instance-life-cycle").await,
            region: metadata.get_or_empty("placement/region").await,
            zone: metadata.get_or_empty("placement/availability-zone").await,
            id: metadata.get_or_empty("instance-id").await,
            ..Machine::default()
        };
        Some((metadata, machine))
    }

    /// Returns an entry, or `None` if the entry does not exist.
    async fn get(&self, name: &str) -> Result<Option<String>, ImdsError> {
        match self.client.get(format!("/latest/meta-data/{name}")).await {
            Ok(text) => Ok(Some(text.as_ref().trim().to_owned())),
            Err(ImdsError::ErrorResponse(error)) if error.response().status().as_u16() == 404 => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn get_or_empty(&self, name: &str) -> String {
        match self.get(name).await {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, name, "cannot read an entry from the metadata service");
                String::new()
            }
        }
    }

    /// Waits until AWS announces that it will reclaim the machine, and returns a description of the announcement.
    pub async fn reclaimed(&self) -> String {
        loop {
            match self.get("spot/instance-action").await {
                Ok(Some(notice)) => return reason(&notice),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "cannot read the interruption notice"),
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Returns a description of an interruption notice such as
/// `{"action": "terminate", "time": "2026-11-21T17:00:00Z"}`.
fn reason(notice: &str) -> String {
    let notice: serde_json::Value = serde_json::from_str(notice).unwrap_or_default();
    let text = |field: &str| notice[field].as_str().unwrap_or("?").to_owned();
    format!(
        "AWS reclaims the spot machine: {} at {}",
        text("action"),
        text("time")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_and_invalid_notices_are_described() {
        let notice = r#"{"action": "stop", "time": "2026-11-21T17:00:00Z"}"#;
        assert_eq!(
            reason(notice),
            "AWS reclaims the spot machine: stop at 2026-11-21T17:00:00Z"
        );
        assert!(reason("<html>").ends_with("? at ?"));
    }
}
