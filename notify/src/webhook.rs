//! A webhook: events as JSON, sent by HTTP.

use crate::event::Event;
use crate::events::{HookError, Timing};
use bytes::Bytes;
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

/// The environment variable with the secret that requests are signed with. There is no option for one: what
/// processes were started with is there for everybody to see.
pub const SECRET_VARIABLE: &str = "HATEBEAM_WEBHOOK_SECRET";
const SIGNATURE: &str = "x-hatebeam-signature";
const KIND: &str = "x-hatebeam-event";
/// Tries an event gets: with waits that double, the last one is about a quarter of a minute after the first.
const TRIES: u32 = 6;
/// How often somebody who waits looks whether he should.
const LOOK: Duration = Duration::from_millis(50);

type Sender = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Where events are sent.
pub(crate) struct Webhook {
    uri: Uri,
    key: Option<hmac::Key>,
    timing: Timing,
    sender: Sender,
    runtime: tokio::runtime::Runtime,
}

/// Why an event was not taken in.
enum Refused {
    /// It may be next time.
    ForNow(String),
    /// It never will.
    ForGood(String),
}

impl Webhook {
    /// Of an address, with the secret that requests are signed with.
    pub(crate) fn new(
        address: &str,
        secret: Option<&str>,
        timing: Timing,
    ) -> Result<Webhook, HookError> {
        let bad = |reason: &str| HookError::Address(reason.to_owned());
        let uri: Uri = address.parse().map_err(|_| bad("it is no address"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(bad("it names no host"));
        }
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(bad(
                "names and passwords have no place in it: use HATEBEAM_WEBHOOK_SECRET",
            ));
        }
        if secret.is_some_and(str::is_empty) {
            return Err(HookError::EmptySecret);
        }
        let builder = match uri.scheme_str() {
            Some("http") => {
                // No certificate is looked at: the machine need not have any.
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
            _ => return Err(bad("it begins with neither http:// nor https://")),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HookError::Start)?;
        let sender = Client::builder(TokioExecutor::new())
            // Hours may pass between two events.
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

    /// Where events go, as it can be logged: the path may be a secret.
    pub(crate) fn shown(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let host = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        format!("{scheme}://{host}")
    }

    /// Sends an event until it is taken in, cannot be, or all tries are made.
    pub(crate) fn deliver(
        &self,
        event: &Event,
        is_given_up: impl Fn() -> bool,
    ) -> Result<(), String> {
        let body = Bytes::from(event.json()?);
        self.runtime.block_on(async {
            let given_up = async {
                while !is_given_up() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::select! {
                told = self.tell(event.what.name(), &body) => told,
                () = given_up => Err("it was broken off, as this program ends".to_owned()),
            }
        })
    }

    async fn tell(&self, kind: &str, body: &Bytes) -> Result<(), String> {
        let mut wait = self.timing.first_wait;
        let mut made = 1;
        loop {
            match self.send(kind, body).await {
                Ok(()) => return Ok(()),
                Err(Refused::ForGood(reason)) => return Err(reason),
                Err(Refused::ForNow(reason)) if made == TRIES => {
                    return Err(format!("{reason}, and so {TRIES} times"));
                }
                Err(Refused::ForNow(reason)) => {
                    tracing::debug!(hook = self.shown(), reason, made, "an event is sent again");
                }
            }
            made += 1;
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }

    async fn send(&self, kind: &str, body: &Bytes) -> Result<(), Refused> {
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
            .map_err(|error| Refused::ForGood(error.to_string()))?;
        let answered = tokio::time::timeout(self.timing.request, self.sender.request(request));
        let answer = match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(Refused::ForNow(whole(&error))),
            Err(_) => {
                let seconds = self.timing.request;
                return Err(Refused::ForNow(format!(
                    "there is no answer within {seconds:?}"
                )));
            }
        };
        let status = answer.status();
        let reason = format!("it answers {status}");
        match status {
            _ if status.is_success() => Ok(()),
            _ if status.is_redirection() => {
                // Whoever can redirect could have an event, and its signature, sent anywhere.
                Err(Refused::ForGood(format!(
                    "{reason}, and redirects are not followed"
                )))
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(Refused::ForNow(reason))
            }
            _ if status.is_server_error() => Err(Refused::ForNow(reason)),
            _ => Err(Refused::ForGood(reason)),
        }
    }
}

/// An error with what caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}

/// `sha256=` and the HMAC of the body in hex.
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

    /// The second case of RFC 4231.
    #[test]
    fn signatures_are_hmac_sha256() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        assert_eq!(
            signature(&key, b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn addresses_are_checked_and_shown_without_what_may_be_secret() {
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
        assert_eq!(webhook.shown(), "http://127.0.0.1:8080");
    }
}
