//! A webhook, which sends events as JSON over HTTP.

use crate::event::Event;
use crate::events::{HookError, Timing};
use bytes::Bytes;
use hatebeam_report::with_causes;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ring::hmac;
use rustls::crypto::ring::default_provider;
use std::fmt::Write as _;
use std::time::Duration;

/// Environment variable that contains the secret for signing requests. No command-line option accepts the
/// secret, because every user of the machine can read the arguments of processes.
pub const SECRET_VARIABLE: &str = "HATEBEAM_WEBHOOK_SECRET";
const SIGNATURE: &str = "x-hatebeam-signature";
const KIND: &str = "x-hatebeam-event";
/// Maximum number of attempts to send an event. The wait doubles after each attempt, so with the default
/// [`Timing::first_wait`] the waits add up to 15.5 seconds.
const MAX_ATTEMPTS: u32 = 6;
/// Interval between checks of whether a delivery must be aborted.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

type Sender = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

pub(crate) struct Webhook {
    uri: Uri,
    key: Option<hmac::Key>,
    timing: Timing,
    sender: Sender,
    runtime: tokio::runtime::Runtime,
}

/// Reason why an attempt failed.
enum Failure {
    /// A retry may succeed.
    Transient(String),
    /// A retry cannot succeed.
    Permanent(String),
}

impl Webhook {
    /// Creates a webhook that sends to the URL `address`. If `secret` is given, it signs the requests.
    pub(crate) fn new(
        address: &str,
        secret: Option<&str>,
        timing: Timing,
    ) -> Result<Webhook, HookError> {
        let bad = |reason: &str| HookError::Address(reason.to_owned());
        let uri: Uri = address
            .parse()
            .map_err(|_| bad("give a URL such as https://example.org/hook"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(bad(
                "it must not contain a user or a password: use HATEBEAM_WEBHOOK_SECRET",
            ));
        }
        if secret.is_some_and(str::is_empty) {
            return Err(HookError::EmptySecret);
        }
        let builder = match uri.scheme_str() {
            Some("http") => {
                // Plain HTTP needs no root certificates, and the machine may not have any.
                let tls = rustls::ClientConfig::builder_with_provider(default_provider().into())
                    .with_safe_default_protocol_versions()
                    .map_err(|error| HookError::Start(std::io::Error::other(error)))?
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth();
                HttpsConnectorBuilder::new().with_tls_config(tls)
            }
            Some("https") => HttpsConnectorBuilder::new()
                .with_provider_and_native_roots(default_provider())
                .map_err(HookError::Start)?,
            _ => return Err(bad("it must begin with http:// or https://")),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HookError::Start)?;
        let sender = Client::builder(TokioExecutor::new())
            // Keep no idle connections, because hours can pass between two events.
            .pool_max_idle_per_host(0)
            .build(builder.https_or_http().enable_http1().build());
        Ok(Webhook {
            uri,
            key: secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())),
            timing,
            sender,
            runtime,
        })
    }

    /// Returns the scheme and host for logs. The path is omitted, because it may contain a secret.
    pub(crate) fn label(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let host = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        format!("{scheme}://{host}")
    }

    /// Sends an event. Retries until the event is accepted, a failure is permanent, the maximum number of attempts is
    /// reached, or the delivery is aborted.
    pub(crate) fn deliver(
        &self,
        event: &Event,
        is_aborted: impl Fn() -> bool,
    ) -> Result<(), String> {
        let body = Bytes::from(event.json()?);
        self.runtime.block_on(async {
            let aborted = async {
                while !is_aborted() {
                    tokio::time::sleep(CHECK_INTERVAL).await;
                }
            };
            tokio::select! {
                biased;
                sent = self.send_with_retries(event.kind.name(), &body) => sent,
                () = aborted => Err("aborted at shutdown".to_owned()),
            }
        })
    }

    async fn send_with_retries(&self, kind: &str, body: &Bytes) -> Result<(), String> {
        let mut wait = self.timing.first_wait;
        let mut attempt = 1;
        loop {
            match self.send(kind, body).await {
                Ok(()) => return Ok(()),
                Err(Failure::Permanent(reason)) => return Err(reason),
                Err(Failure::Transient(reason)) if attempt == MAX_ATTEMPTS => {
                    return Err(format!("{reason} ({MAX_ATTEMPTS} attempts)"));
                }
                Err(Failure::Transient(reason)) => {
                    tracing::debug!(
                        hook = self.label(),
                        reason,
                        attempt,
                        "retrying to send event"
                    );
                }
            }
            attempt += 1;
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }

    async fn send(&self, kind: &str, body: &Bytes) -> Result<(), Failure> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::USER_AGENT,
                concat!("hatebeam/", env!("CARGO_PKG_VERSION")),
            )
            .header(KIND, kind);
        if let Some(key) = &self.key {
            request = request.header(SIGNATURE, signature(key, body));
        }
        let request = request
            .body(Full::new(body.clone()))
            .map_err(|error| Failure::Permanent(error.to_string()))?;
        let answered = tokio::time::timeout(self.timing.request, self.sender.request(request));
        let answer = match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(Failure::Transient(with_causes(&error))),
            Err(_) => {
                let limit = self.timing.request;
                return Err(Failure::Transient(format!("no response within {limit:?}")));
            }
        };
        let status = answer.status();
        let reason = format!("the response is {status}");
        match status {
            _ if status.is_success() => Ok(()),
            _ if status.is_redirection() => {
                // Following a redirect would let the server forward an event and its signature to any
                // address.
                Err(Failure::Permanent(format!(
                    "{reason}: redirects are not followed"
                )))
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(Failure::Transient(reason))
            }
            _ if status.is_server_error() => Err(Failure::Transient(reason)),
            _ => Err(Failure::Permanent(reason)),
        }
    }
}

/// Returns `sha256=` followed by the HMAC of the body in hexadecimal.
fn signature(key: &hmac::Key, body: &[u8]) -> String {
    let mut text = "sha256=".to_owned();
    for byte in hmac::sign(key, body).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses test case 2 of RFC 4231.
    #[test]
    fn signatures_are_hmac_sha256() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        assert_eq!(
            signature(&key, b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn invalid_urls_are_refused_and_labels_omit_the_path() {
        let new = |address, secret| Webhook::new(address, secret, Timing::default());
        for address in [
            "",
            "x",
            "/path",
            "ftp://host/x",
            "http://",
            "http:///x",
            "https://me:word@host/",
            "host:80",
        ] {
            assert!(new(address, None).is_err(), "{address}");
        }
        assert!(new("http://host/x", Some("")).is_err());
        let webhook = new("http://127.0.0.1:8080/secret/path?and=more", Some("s")).unwrap();
        assert_eq!(webhook.label(), "http://127.0.0.1:8080");
    }
}
