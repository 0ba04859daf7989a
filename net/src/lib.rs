//! How the members of a cluster reach each other, and whom they let in; and [HTTP within limits](http).
//!
//! There are two locks. TLS with certificates on both sides says that whoever is at the other end belongs to
//! the cluster; a token says that whoever calls may. What is trusted is the cluster's own CA and nothing
//! else, and every certificate is one for [`NAME`], whatever the machine's address: machines are rented,
//! and what they are called tomorrow is not known today. So a certificate proves membership and nothing more.
//! Nothing is revoked; who is to be shut out is shut out by a new CA.
//!
//! Without TLS a server listens on the loopback only, unless somebody said in so many words that it may do
//! otherwise ([`check_bind`]).

#[cfg(feature = "certs")]
pub mod certs;
mod error;
mod files;
pub mod http;
mod tls;
mod token;

pub use error::{BadToken, WireError, explain};
#[cfg(feature = "certs")]
pub(crate) use tls::Side;
pub use tls::{NAME, Tls};
pub use token::{Bearer, Guard, TOKEN_VARIABLE, Token};

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server, Uri};
use tonic_prost::ProstCodec;

/// The most bytes of a message, to be set on every client and every service made. A batch of children takes
/// half a megabyte at most and the tables of 4096 shards about as much; more than this is no message of
/// ours, and must not make a peer set memory aside.
pub const MAX_MESSAGE: usize = 4 << 20;

/// The most bytes of an HTTP/2 frame: a batch of 100 KB makes two of them, where the default makes seven.
pub const MAX_FRAME: u32 = 64 << 10;
/// Bytes that a stream may have under way unread: some ten batches, so that nobody waits for a round trip
/// between two of them.
pub const STREAM_WINDOW: u32 = 1 << 20;
/// Bytes that a connection may have under way unread.
pub const CONNECTION_WINDOW: u32 = 4 << 20;
/// The most calls of a connection at once. A worker makes one for each run, a client a few.
pub const MAX_CALLS: u32 = 256;

/// The most bytes of a call's headers.
const MAX_HEADERS: u32 = 16 << 10;
/// How long the other end may take over the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// After this long without a word the other end is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(20);
/// It is gone if it has not answered after this long.
const PING_ANSWER: Duration = Duration::from_secs(20);
/// The same by the operating system, for what is between the two ends and forgets connections.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// How a connection is made, and when it is given up.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long it may take to connect. Without `lazy` this is for all of it: connection, handshake and the first
    /// answer.
    pub connect_timeout: Duration,
    /// After this long without a word the server is asked whether it is there.
    pub ping_after: Duration,
    /// The connection is lost if it has not answered after this long.
    pub ping_answer: Duration,
    /// Connect when the first call is made, and again whenever the connection is lost, rather than now. What is
    /// wrong is then said by the first call: see [`explain`].
    pub lazy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            ping_after: PING_AFTER,
            ping_answer: PING_ANSWER,
            lazy: false,
        }
    }
}

/// Whether a server may listen there: without TLS on the loopback only, unless it was told to all the same.
///
/// # Errors
/// [`WireError::OpenBind`] says what can be done about it.
pub fn check_bind(
    address: SocketAddr,
    has_tls: bool,
    insecure_bind: bool,
) -> Result<(), WireError> {
    if has_tls || insecure_bind || is_loopback(address.ip()) {
        Ok(())
    } else {
        Err(WireError::OpenBind { address })
    }
}

fn is_loopback(ip: std::net::IpAddr) -> bool {
    // An IPv4 address may come as an IPv6 address.
    ip.to_canonical().is_loopback()
}

/// A server that asks for a certificate of the CA, if it has TLS, and gives up connections whose other end is
/// silent. Services, interceptors and the time that a call may take are the caller's.
///
/// It is best served with the connections of [`listen`].
///
/// # Errors
/// What is wrong with the files of `tls`.
pub fn server(tls: Option<&Tls>) -> Result<Server, WireError> {
    let server = Server::builder()
        .tcp_nodelay(true)
        .tcp_keepalive(Some(TCP_KEEPALIVE))
        .http2_keepalive_interval(Some(PING_AFTER))
        .http2_keepalive_timeout(Some(PING_ANSWER))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_CALLS)
        .concurrency_limit_per_connection(MAX_CALLS as usize)
        .max_frame_size(MAX_FRAME)
        .http2_max_header_list_size(MAX_HEADERS);
    match tls {
        None => Ok(server),
        Some(tls) => server
            .tls_config(tls.server()?)
            .map_err(|error| WireError::setup(&error)),
    }
}

/// Connections to an address, for `serve_with_incoming`. With port 0 the system chooses the port;
/// `local_addr` tells.
///
/// # Errors
/// [`WireError::Listen`].
pub fn listen(address: SocketAddr) -> Result<TcpIncoming, WireError> {
    // A server sets these options only on connections that it accepts itself.
    TcpIncoming::bind(address)
        .map(|incoming| {
            incoming
                .with_nodelay(Some(true))
                .with_keepalive(Some(TCP_KEEPALIVE))
        })
        .map_err(|reason| WireError::Listen { address, reason })
}

/// A connection to a server: `https://` with certificates, `http://` without.
///
/// Without `lazy` it returns when the server has answered. TLS 1.3 has it that a client is done with the
/// handshake before the server has looked at its certificate: that it is connected does not mean that
/// it is let in.
///
/// # Errors
/// [`WireError::Unreachable`] if it may come right by itself; otherwise what is wrong.
pub async fn connect(uri: &str, tls: Option<&Tls>, limits: &Limits) -> Result<Channel, WireError> {
    let (address, port) = parse(uri, tls.is_some())?;
    let host = host(&address).to_owned();
    let endpoint = endpoint(address, tls, limits)?;
    if limits.lazy {
        return Ok(endpoint.connect_lazy());
    }
    let attempt = async {
        let connected = endpoint.connect().await;
        let channel = connected.map_err(|error| WireError::connection(uri, &error))?;
        let Err(status) = prove(channel.clone()).await else {
            return Ok(channel);
        };
        let failed = WireError::connection(uri, &status);
        Err(match tls {
            _ if !failed.is_transient() => failed,
            Some(tls) => match tls.refused_by(&host, port).await {
                Ok(Some(error)) => WireError::connection(uri, &error),
                _ => failed,
            },
            None if speaks_tls(&host, port).await => WireError::no_plain(uri),
            None => failed,
        })
    };
    match tokio::time::timeout(limits.connect_timeout, attempt).await {
        Ok(connected) => connected,
        Err(_) => Err(WireError::Unreachable {
            uri: uri.to_owned(),
            reason: format!("no answer within {:?}", limits.connect_timeout),
        }),
    }
}

/// An address and its port, which must be said: ours have none that goes without saying.
fn parse(uri: &str, has_tls: bool) -> Result<(Uri, u16), WireError> {
    let bad = |reason: String| WireError::Address {
        uri: uri.to_owned(),
        reason,
    };
    let schemes = "write http://HOST:PORT, or https://HOST:PORT with certificates";
    let parsed: Uri = uri
        .parse()
        .map_err(|error| bad(format!("{error}; {schemes}")))?;
    let rest = uri.split_once("://").map_or("", |(_, rest)| rest);
    match (parsed.scheme_str(), has_tls) {
        (Some("https"), true) => {}
        (Some("http"), false) => warn_if_plain(&parsed),
        (Some("http"), true) => {
            return Err(bad(format!(
                "it is without TLS, but certificates are given; write https://{rest}"
            )));
        }
        (Some("https"), false) => {
            return Err(bad(format!(
                "it is with TLS: give certificates (`hatebeam certs` makes them), or write http://{rest}"
            )));
        }
        _ => return Err(bad(schemes.to_owned())),
    }
    let is_root = matches!(parsed.path(), "" | "/") && parsed.query().is_none();
    match parsed.port_u16() {
        Some(port) if is_root => Ok((parsed, port)),
        _ => Err(bad(schemes.to_owned())),
    }
}

fn warn_if_plain(uri: &Uri) {
    let host = host(uri);
    if host != "localhost" && !host.parse().is_ok_and(is_loopback) {
        tracing::warn!("{uri} is without TLS: anyone on the way can read and change what is said");
    }
}

/// The host without the brackets of IPv6.
fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

fn endpoint(uri: Uri, tls: Option<&Tls>, limits: &Limits) -> Result<Endpoint, WireError> {
    let endpoint = Endpoint::from(uri)
        .user_agent(concat!("hatebeam/", env!("CARGO_PKG_VERSION")))
        .map_err(|error| WireError::setup(&error))?
        .connect_timeout(limits.connect_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(TCP_KEEPALIVE))
        .http2_keep_alive_interval(limits.ping_after)
        .keep_alive_timeout(limits.ping_answer)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        .http2_max_header_list_size(MAX_HEADERS);
    match tls {
        None => Ok(endpoint),
        Some(tls) => endpoint
            .tls_config(tls.client()?)
            .map_err(|error| WireError::setup(&error)),
    }
}

/// Has the server answer anything at all: a call of what no server has.
async fn prove(channel: Channel) -> Result<(), tonic::Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client
        .ready()
        .await
        .map_err(|error| tonic::Status::from_error(error.into()))?;
    let path = PathAndQuery::from_static("/hatebeam.v1.Nothing/Nothing");
    let codec = ProstCodec::<(), ()>::default();
    let answer = client.unary(tonic::Request::new(()), path, codec).await;
    match answer {
        // A status with a source was made on this side, because no answer came.
        Err(status) if std::error::Error::source(&status).is_some() => Err(status),
        _ => Ok(()),
    }
}

/// Whether it is for its TLS that a server does not answer. HTTP/2 cannot tell: it sees a closed connection
/// or a strange frame, whichever is first. So the beginning of HTTP/2 is sent once more, and nothing after it; a
/// server that has TLS takes it for a bad record, and answers with an alert.
async fn speaks_tls(host: &str, port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect((host, port)).await?;
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await?;
        stream.read_u8().await
    };
    const ALERT: u8 = 21;
    matches!(tokio::time::timeout(HANDSHAKE, ask).await, Ok(Ok(ALERT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_the_loopback_is_open() {
        for (address, loopback) in [
            ("127.0.0.1:7000", true),
            ("127.9.9.9:7000", true),
            ("[::1]:7000", true),
            ("[::ffff:127.0.0.1]:7000", true),
            ("0.0.0.0:7000", false),
            ("[::]:7000", false),
            ("10.0.0.1:7000", false),
            ("[::ffff:10.0.0.1]:7000", false),
            ("[fe80::1]:7000", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(check_bind(address, false, false).is_ok(), loopback);
            check_bind(address, true, false).unwrap();
            check_bind(address, false, true).unwrap();
        }
        let refused = check_bind("0.0.0.0:7000".parse().unwrap(), false, false).unwrap_err();
        let text = refused.to_string();
        for part in ["0.0.0.0:7000", "hatebeam certs", "--insecure-bind"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn addresses_fit_the_certificates() {
        for (uri, has_tls, expected) in [
            (
                "http://127.0.0.1:7000",
                true,
                "write https://127.0.0.1:7000",
            ),
            ("https://far:7000/", false, "write http://far:7000"),
            ("far:7000", false, "write http://HOST:PORT"),
            ("/far", false, "write http://HOST:PORT"),
            ("ftp://far:7000", true, "write http://HOST:PORT"),
            ("http://far:7000/path", false, "write http://HOST:PORT"),
            ("http://far", false, "write http://HOST:PORT"),
            ("http://far:7000/?a=b", false, "write http://HOST:PORT"),
            ("http://fa r", false, "invalid uri"),
            ("", false, "empty string"),
        ] {
            let error = parse(uri, has_tls).unwrap_err().to_string();
            assert!(error.contains(expected), "{uri}: {error}");
            assert!(error.contains(&format!("'{uri}'")), "{uri}: {error}");
        }
        for (uri, has_tls) in [
            ("http://localhost:7000", false),
            ("http://[::1]:7000/", false),
            ("https://far.example:7000", true),
        ] {
            parse(uri, has_tls).unwrap();
        }
    }
}
