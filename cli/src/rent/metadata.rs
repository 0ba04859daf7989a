//! What a machine of AWS says of itself: its metadata service, version 2, which wants a session for each question.

use aws_config::imds::Client;
use aws_config::imds::client::error::ImdsError;
use aws_config::provider_config::ProviderConfig;
use hatebeam_cost::Machine;
use std::time::Duration;

/// The service is on the machine itself: who does not answer at once is not there.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks whether the machine is to be taken away; AWS says so two minutes before.
const EVERY: Duration = Duration::from_secs(5);
/// With any value that means yes the service is not asked, as with AWS's own tools.
const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";
/// Where the service is, if not where AWS has it.
const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

/// The metadata service.
#[derive(Debug)]
pub(crate) struct Metadata {
    client: Client,
}

/// Whether there can be such a service: elsewhere it would be waited for in vain.
pub(crate) fn may_be_here() -> bool {
    let is_off = std::env::var(DISABLED).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    if is_off {
        return false;
    }
    let read = |name: &str| std::fs::read_to_string(format!("/sys/class/dmi/id/{name}"));
    let vendor = read("sys_vendor").unwrap_or_default();
    std::env::var_os(ENDPOINT).is_some() || vendor.trim() == "Amazon EC2"
}

impl Metadata {
    /// The service, and the machine it tells of.
    pub(crate) async fn find() -> Option<(Metadata, Machine)> {
        if !may_be_here() {
            return None;
        }
        let http = aws_smithy_http_client::Builder::new().build_http();
        let config = ProviderConfig::without_region().with_http_client(http);
        let client = Client::builder()
            .configure(&config)
            .max_attempts(2)
            .connect_timeout(PATIENCE)
            .read_timeout(PATIENCE)
            .build();
        let metadata = Metadata { client };
        let kind = match metadata.get("instance-type").await {
            Ok(kind) => kind.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "the machine's metadata service does not answer");
                return None;
            }
        };
        let machine = Machine {
            kind,
            market: metadata.or_empty("instance-life-cycle").await,
            region: metadata.or_empty("placement/region").await,
            zone: metadata.or_empty("placement/availability-zone").await,
            id: metadata.or_empty("instance-id").await,
            ..Machine::default()
        };
        Some((metadata, machine))
    }

    /// What it says under this name; none if it knows no such thing.
    async fn get(&self, name: &str) -> Result<Option<String>, ImdsError> {
        match self.client.get(format!("/latest/meta-data/{name}")).await {
            Ok(text) => Ok(Some(text.as_ref().trim().to_owned())),
            Err(ImdsError::ErrorResponse(error)) if error.response().status().as_u16() == 404 => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn or_empty(&self, name: &str) -> String {
        match self.get(name).await {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, name, "the machine's metadata service does not answer");
                String::new()
            }
        }
    }

    /// Waits until the machine is about to be taken away, and says so.
    pub(crate) async fn is_to_go(&self) -> String {
        loop {
            match self.get("spot/instance-action").await {
                Ok(Some(notice)) => return reason(&notice),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "whether the machine is to go is not known"),
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

/// A notice such as `{"action": "terminate", "time": "2026-11-21T17:00:00Z"}`, in words.
fn reason(notice: &str) -> String {
    let notice: serde_json::Value = serde_json::from_str(notice).unwrap_or_default();
    let text = |field: &str| notice[field].as_str().unwrap_or("?").to_owned();
    format!(
        "the machine is taken away (spot): {} at {}",
        text("action"),
        text("time")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_read_whatever_it_is() {
        let notice = r#"{"action": "stop", "time": "2026-11-21T17:00:00Z"}"#;
        assert_eq!(
            reason(notice),
            "the machine is taken away (spot): stop at 2026-11-21T17:00:00Z"
        );
        assert!(reason("<html>").ends_with("? at ?"));
    }
}
