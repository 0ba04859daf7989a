//! Who is let in.
//!
//! There are two kinds of callers to be kept out. One reaches the port: of him the token is asked, in a header
//! (`Authorization: Bearer`) or once, for a cookie. The other is a page of another site, open in the browser of
//! somebody who is let in: browsers say where a request comes from, and what comes from elsewhere is refused, as
//! are names under which another site could pass itself off as this one (DNS rebinding). All that changes something
//! must be JSON besides, which no page can send elsewhere without being asked about it first.

use crate::error::ApiError;
use crate::sessions::{LIFE, Sessions};
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hatebeam_net::Guard;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Nothing but what is served here, and nothing that is written into a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Where the interface is.
pub(crate) const API: &str = "/api/";

/// Who is let in, and under which names.
#[derive(Debug)]
pub(crate) struct Access {
    guard: Guard,
    sessions: Sessions,
    scheme: &'static str,
    is_local: bool,
    /// Cookies know no ports, and there may be two coordinators.
    cookie: String,
}

impl Access {
    pub(crate) fn new(guard: Guard, address: SocketAddr, has_tls: bool) -> Access {
        Access {
            guard,
            sessions: Sessions::default(),
            scheme: if has_tls { "https" } else { "http" },
            is_local: address.ip().to_canonical().is_loopback(),
            cookie: format!("hatebeam-{}", address.port()),
        }
    }

    pub(crate) fn wants_token(&self) -> bool {
        self.guard.wants_token()
    }

    /// Whether somebody has shown the token, if there is one; if not, why not.
    pub(crate) fn admits(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        if let Some(name) = self.session(headers)
            && self.sessions.has(name, Instant::now())
        {
            return Ok(());
        }
        let header = headers.get(header::AUTHORIZATION);
        self.guard.admits(header.map(HeaderValue::as_bytes))
    }

    /// The cookie for somebody who says the token; `None` if it is another.
    pub(crate) fn sign_in(&self, token: &str) -> Option<HeaderValue> {
        if !self.guard.knows(token.trim().as_bytes()) {
            return None;
        }
        let name = self.sessions.begin(Instant::now())?;
        self.set_cookie(&name, LIFE.as_secs())
    }

    /// Ends the session, and gives the cookie that has the browser forget it.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if let Some(name) = self.session(headers) {
            self.sessions.end(name);
        }
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, value: &str, seconds: u64) -> Option<HeaderValue> {
        let name = &self.cookie;
        let secure = if self.scheme == "https" {
            "; Secure"
        } else {
            ""
        };
        let text =
            format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn session<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs
            .find(|(name, _)| *name == self.cookie)
            .map(|(_, value)| value)
    }

    /// Whether the server may be called so. Another site can have its own name lead to this address; it
    /// cannot make a name of what is none, nor of one without a dot. With a token it would come without the
    /// cookie, so that any name will do, but on the loopback there is no need for any.
    fn may_be_called(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else {
            return false;
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(ip) => !self.is_local || ip.to_canonical().is_loopback(),
            Err(_) => !self.is_local && (self.wants_token() || !name.contains('.')),
        }
    }

    /// Why a request is none of this site's own, if it is not.
    fn foreign(&self, uri: &Uri, headers: &HeaderMap) -> Option<ApiError> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        let host = text(header::HOST).unwrap_or("");
        if !self.may_be_called(host) {
            return Some(ApiError::new(
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "this dashboard does not go by the name {host:?}: use its address, or an SSH tunnel and \
                     {}://localhost",
                    self.scheme
                ),
            ));
        }
        let forbidden = |what: String| Some(ApiError::new(StatusCode::FORBIDDEN, what));
        if let Some(origin) = text(header::ORIGIN)
            && !origin.eq_ignore_ascii_case(&format!("{}://{host}", self.scheme))
        {
            return forbidden(format!("requests from {origin:?} are not answered here"));
        }
        // Links from elsewhere to the pages are fine.
        let site = text(HeaderName::from_static("sec-fetch-site"));
        if uri.path().starts_with(API) && matches!(site, Some("cross-site" | "same-site")) {
            return forbidden("requests from other sites are not answered here".to_owned());
        }
        None
    }
}

/// A host without its port.
fn host_name(host: &str) -> Option<&str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_v6 = name.starts_with('[') && name.ends_with(']');
    let is_fine = !name.is_empty() && (is_v6 || !name.contains(':'));
    is_fine.then_some(name)
}

/// Lets pass what is meant for this site and comes from it.
pub(crate) async fn from_here(access: &Access, request: Request, next: Next) -> Response {
    match access.foreign(request.uri(), request.headers()) {
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    }
}

/// Lets pass who has shown the token.
pub(crate) async fn signed_in(access: &Access, request: Request, next: Next) -> Response {
    match access.admits(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => ApiError::new(StatusCode::UNAUTHORIZED, why).into_response(),
    }
}

/// Tells browsers to be strict.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with(API);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            header::CACHE_CONTROL,
            if is_api { "no-store" } else { "no-cache" },
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str, token: Option<&str>) -> Access {
        let token = token.map(|token| token.parse().unwrap());
        Access::new(Guard::new(token), address.parse().unwrap(), false)
    }

    #[test]
    fn on_the_loopback_only_its_own_names_are_good() {
        for token in [None, Some("correct-horse-battery")] {
            let access = access("127.0.0.1:7880", token);
            for host in [
                "localhost",
                "LOCALHOST:7880",
                "localhost:9",
                "127.0.0.1:7880",
                "127.3.2.1",
                "[::1]:7880",
                "[::ffff:127.0.0.1]",
            ] {
                assert!(access.may_be_called(host), "{host}");
            }
            for host in [
                "",
                ":7880",
                "evil.example",
                "localhost.evil.example",
                "127.0.0.1.evil.example:7880",
                "10.0.0.1:7880",
                "[2001:db8::1]:7880",
                "::1",
                "localhost:x",
                "coordinator",
            ] {
                assert!(!access.may_be_called(host), "{host}");
            }
        }
    }

    #[test]
    fn elsewhere_a_name_with_a_dot_takes_a_token() {
        let open = access("0.0.0.0:7880", None);
        let closed = access("0.0.0.0:7880", Some("correct-horse-battery"));
        for host in [
            "10.0.0.1:7880",
            "coordinator:7880",
            "localhost:7880",
            "[2001:db8::1]",
        ] {
            assert!(
                open.may_be_called(host) && closed.may_be_called(host),
                "{host}"
            );
        }
        assert!(!open.may_be_called("beam.example:7880"));
        assert!(closed.may_be_called("beam.example:7880"));
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let access = access("127.0.0.1:7880", Some("correct-horse-battery"));
        assert!(access.sign_in("correct-horse-batter").is_none());
        let set = access.sign_in(" correct-horse-battery\n").unwrap();
        let set = set.to_str().unwrap().to_owned();
        for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
            assert!(set.contains(part), "{set}");
        }
        assert!(!set.contains("Secure") && !set.contains("horse"), "{set}");
        let pair = set.split(';').next().unwrap();
        let with = |cookie: String| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            headers
        };
        let good = with(format!("a=b; {pair}; c"));
        assert!(access.admits(&good).is_ok());
        let other_port = pair.replace("7880", "7881");
        for cookie in ["a=b".to_owned(), format!("{pair}0"), other_port] {
            assert!(access.admits(&with(cookie)).is_err());
        }
        assert!(access.sign_out(&good).is_some());
        assert!(access.admits(&good).is_err());
    }
}
