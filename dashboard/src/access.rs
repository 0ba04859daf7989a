//! Access control.
//!
//! The dashboard rejects two kinds of requests:
//!
//! - Requests from a client that does not have the token, if a token is configured. A client must send the token in a
//!   header (`Authorization: Bearer`), or exchange it once for a cookie.
//! - Requests that a page of another site makes in the browser of a signed-in user. Browsers send the origin of a
//!   request, and the dashboard rejects foreign origins. It also rejects host names that another site could point at this
//!   server (DNS rebinding). In addition, every request that changes something must have a JSON body: a browser sends JSON
//!   to another site only after a preflight request, which this server does not grant.

use crate::assets;
use crate::error::ApiError;
use crate::sessions::{SESSION_LIFETIME, Sessions};
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hatebeam_net::{Access, Guard, VIEW_ONLY};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Content security policy of the dashboard. It permits no files from other servers, and no inline scripts or styles.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Content security policy of the game pages, which may also run WebAssembly.
const GAMES_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Path prefix of the API.
pub(crate) const API: &str = "/api/";

/// The rules that decide which requests are admitted.
#[derive(Debug)]
pub(crate) struct AccessControl {
    guard: Guard,
    sessions: Sessions,
    scheme: &'static str,
    is_local: bool,
    /// Name of the cookie. It contains the port, because browsers share cookies between the ports of a machine and two
    /// coordinators may run on one machine.
    cookie: String,
}

impl AccessControl {
    pub(crate) fn new(guard: Guard, address: SocketAddr, has_tls: bool) -> AccessControl {
        // Browsers accept a cookie with this prefix only from this host itself, over HTTPS, and for all paths.
        let prefix = if has_tls { "__Host-" } else { "" };
        AccessControl {
            guard,
            sessions: Sessions::default(),
            scheme: if has_tls { "https" } else { "http" },
            is_local: address.ip().to_canonical().is_loopback(),
            cookie: format!("{prefix}hatebeam-{}", address.port()),
        }
    }

    pub(crate) fn requires_token(&self) -> bool {
        self.guard.requires_token()
    }

    /// Returns the access that a request's session or token grants, or the reason why access is denied.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<Access, &'static str> {
        let session = self.session(headers);
        if let Some(access) = session.and_then(|name| self.sessions.access(name, Instant::now())) {
            return Ok(access);
        }
        let header = headers.get(header::AUTHORIZATION);
        self.guard.admits(header.map(HeaderValue::as_bytes))
    }

    /// Starts a session and returns its cookie, or `None` if the token is wrong or no session can be started.
    pub(crate) fn sign_in(&self, token: &str) -> Option<HeaderValue> {
        let access = self.guard.accepts(token.trim().as_bytes())?;
        let name = self.sessions.start(access, Instant::now())?;
        self.set_cookie(&name, SESSION_LIFETIME.as_secs())
    }

    /// Ends the session, and returns an expired cookie, which makes the browser delete the session cookie.
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

    /// Returns whether the `Host` header is allowed. Another site can point its own domain at this server, but not an
    /// IP address or a name without a dot. If the server requires a token, any name is safe, because requests for
    /// another site's name do not contain the cookie. A server on a loopback address needs only loopback names, so it
    /// allows no others.
    fn is_allowed_host(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else {
            return false;
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(ip) => !self.is_local || ip.to_canonical().is_loopback(),
            Err(_) => !self.is_local && (self.requires_token() || !name.contains('.')),
        }
    }

    /// Returns an error if another site may have caused the request, and `None` otherwise.
    fn foreign(&self, uri: &Uri, headers: &HeaderMap) -> Option<ApiError> {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        let host = text(header::HOST).unwrap_or("");
        if !self.is_allowed_host(host) {
            return Some(ApiError::new(
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "the dashboard does not answer requests for host {host:?}: use its IP address, or an SSH tunnel \
                     and {}://localhost",
                    self.scheme
                ),
            ));
        }
        let forbidden = |reason: String| Some(ApiError::new(StatusCode::FORBIDDEN, reason));
        if let Some(origin) = text(header::ORIGIN)
            && !origin.eq_ignore_ascii_case(&format!("{}://{host}", self.scheme))
        {
            return forbidden(format!("requests from origin {origin:?} are rejected"));
        }
        // Other sites may link to the pages, but must not call the API.
        let site = text(HeaderName::from_static("sec-fetch-site"));
        if uri.path().starts_with(API) && matches!(site, Some("cross-site" | "same-site")) {
            return forbidden("requests from other sites are rejected".to_owned());
        }
        None
    }
}

/// Returns the host name without the port, or `None` if `host` is invalid.
fn host_name(host: &str) -> Option<&str> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_v6 = name.starts_with('[') && name.ends_with(']');
    let is_valid = !name.is_empty() && (is_v6 || !name.contains(':'));
    is_valid.then_some(name)
}

/// Middleware that rejects requests that another site may have caused.
pub(crate) async fn reject_foreign(
    access: &AccessControl,
    request: Request,
    next: Next,
) -> Response {
    match access.foreign(request.uri(), request.headers()) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

/// Path of the call that estimates a run. The call is a POST request, but it changes nothing.
pub(crate) const ESTIMATE: &str = "/api/v1/estimate";

/// Delay before the response to a wrong token, which slows down guessing.
pub(crate) const WRONG_TOKEN_DELAY: Duration = Duration::from_millis(500);

/// Middleware that rejects requests without a valid session or token. With view-only access, it also rejects requests
/// that change something.
pub(crate) async fn require_token(
    access: &AccessControl,
    request: Request,
    next: Next,
) -> Response {
    match access.check_token(request.headers()) {
        Ok(Access::View) if !(is_read(request.method()) || request.uri().path() == ESTIMATE) => {
            ApiError::new(StatusCode::FORBIDDEN, VIEW_ONLY).into_response()
        }
        Ok(_) => next.run(request).await,
        Err(reason) => {
            if request.headers().contains_key(header::AUTHORIZATION) {
                tracing::warn!("rejected dashboard request: wrong token");
                tokio::time::sleep(WRONG_TOKEN_DELAY).await;
            }
            ApiError::new(StatusCode::UNAUTHORIZED, reason).into_response()
        }
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Middleware that adds security headers to each response.
pub(crate) async fn security_headers(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_api = path.starts_with(API);
    let policy = match path.starts_with(assets::GAMES) {
        true => GAMES_POLICY,
        false => CONTENT_SECURITY_POLICY,
    };
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, policy),
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

    const TOKEN: &str = "correct-horse-battery";

    fn access(address: &str, token: Option<&str>) -> AccessControl {
        let token = token.map(|token| token.parse().unwrap());
        AccessControl::new(Guard::new(token), address.parse().unwrap(), false)
    }

    #[test]
    fn loopback_server_allows_only_loopback_names() {
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
                assert!(access.is_allowed_host(host), "{host}");
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
                assert!(!access.is_allowed_host(host), "{host}");
            }
        }
    }

    #[test]
    fn server_without_token_rejects_host_names_with_dots() {
        let open = access("0.0.0.0:7880", None);
        let closed = access("0.0.0.0:7880", Some("correct-horse-battery"));
        for host in [
            "10.0.0.1:7880",
            "coordinator:7880",
            "localhost:7880",
            "[2001:db8::1]",
        ] {
            assert!(
                open.is_allowed_host(host) && closed.is_allowed_host(host),
                "{host}"
            );
        }
        assert!(!open.is_allowed_host("beam.example:7880"));
        assert!(closed.is_allowed_host("beam.example:7880"));
    }

    #[test]
    fn session_cookie_is_found_among_other_cookies() {
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
        assert!(access.check_token(&good).is_ok());
        let other_port = pair.replace("7880", "7881");
        for cookie in ["a=b".to_owned(), format!("{pair}0"), other_port] {
            assert!(access.check_token(&with(cookie)).is_err());
        }
        assert!(access.sign_out(&good).is_some());
        assert!(access.check_token(&good).is_err());
    }

    #[test]
    fn cookie_of_https_server_is_bound_to_its_host() {
        let guard = Guard::new(Some(TOKEN.parse().unwrap()));
        let access = AccessControl::new(guard, "10.0.0.1:7880".parse().unwrap(), true);
        let set = access.sign_in(TOKEN).unwrap();
        let set = set.to_str().unwrap();
        assert!(set.starts_with("__Host-hatebeam-7880="), "{set}");
        assert!(
            set.contains("; Secure") && set.contains("; Path=/;"),
            "{set}"
        );
        assert!(!set.contains("Domain"), "{set}");
        let mut headers = HeaderMap::new();
        let pair = set.split(';').next().unwrap();
        headers.insert(header::COOKIE, pair.parse().unwrap());
        assert!(access.check_token(&headers).is_ok());
    }
}
