//! Connections between the members of a cluster, their authentication, and [HTTP within limits](http).
//!
//! Authentication has two parts. TLS with certificates on both sides proves that the other side belongs to the cluster. A
//! token proves that a caller may call. Members trust the cluster's own CA only. Every certificate is for [`NAME`] and not
//! for an address, because machines are rented and their addresses change. A certificate therefore proves membership and
//! nothing else. Certificates cannot be revoked: to exclude a member, make a new CA.
//!
//! Without TLS a server listens on the loopback only, unless the user allows otherwise ([`check_bind`]).

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

/// Maximum size of a message, to be set on every client and service. A batch of children has at most half a megabyte, and
/// the tables of 4096 shards about as much. A larger message is a fault, and must not make a peer allocate memory.
pub const MAX_MESSAGE: usize = 4 << 20;

/// Maximum size of an HTTP/2 frame: a batch of 100 kB takes two of them, and seven of the default size.
pub const MAX_FRAME: u32 = 64 << 10;
/// Bytes in flight on a stream: about ten batches, so that a sender does not wait for a round trip between two of them.
pub const STREAM_WINDOW: u32 = 1 << 20;
/// Bytes in flight on a connection.
pub const CONNECTION_WINDOW: u32 = 4 << 20;
/// Maximum number of concurrent calls on a connection. A worker makes one to each peer at a time, a client a few.
pub const MAX_CALLS: u32 = 256;

/// Maximum size of a call's headers.
const MAX_HEADERS: u32 = 16 << 10;
/// Maximum duration of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Silence after which the other side is pinged.
const PING_AFTER: Duration = Duration::from_secs(20);
/// Time in which the other side must answer a ping.
const PING_ANSWER: Duration = Duration::from_secs(20);
/// Interval of the operating system's own probes, for routers that forget idle connections.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Time limits of a connection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum time to connect. Without `lazy` it includes the handshake and the first answer.
    pub connect_timeout: Duration,
    /// Silence after which the server is pinged.
    pub ping_after: Duration,
    /// Time in which the server must answer a ping, or the connection is lost.
    pub ping_answer: Duration,
    /// Whether to connect at the first call, and again after a loss, instead of now. The first call then reports errors:
    /// see [`explain`].
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

/// Checks that a server may listen at an address: without TLS it may on the loopback only, or with `insecure_bind`.
///
/// # Errors
/// [`WireError::OpenBind`] names the remedies.
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
    // An IPv4 address may have the form of an IPv6 address.
    ip.to_canonical().is_loopback()
}

/// Returns a server that requires client certificates of the CA, if it has TLS, and closes silent connections. The caller
/// adds services, interceptors and the time limits of calls, and serves the connections of [`listen`].
///
/// # Errors
/// [`WireError`] names the invalid file of `tls`.
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

/// Listens at an address, for `serve_with_incoming`. With port 0 the operating system chooses the port: see
/// `local_addr`.
///
/// # Errors
/// [`WireError::Listen`].
pub fn listen(address: SocketAddr) -> Result<TcpIncoming, WireError> {
    // A server sets these options only for connections that it accepts itself.
    TcpIncoming::bind(address)
        .map(|incoming| {
            incoming
                .with_nodelay(Some(true))
                .with_keepalive(Some(TCP_KEEPALIVE))
        })
        .map_err(|reason| WireError::Listen { address, reason })
}

/// Connects to a server: `https://` with certificates, `http://` without.
///
/// Without `lazy` it returns once the server has answered. With TLS 1.3 a client completes the handshake before the server
/// has checked its certificate, so a completed handshake does not mean that the server accepts the client.
///
/// # Errors
/// [`WireError::Unreachable`] if a later attempt may work; other variants otherwise.
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

/// Parses an address. The port is required: there is no default port.
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
                "http:// does not use certificates: write https://{rest}"
            )));
        }
        (Some("https"), false) => {
            return Err(bad(format!(
                "https:// requires certificates: give them (`hatebeam certs` makes them), or write http://{rest}"
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
        tracing::warn!(
            "connecting to {uri} without TLS: anyone on the network path can read and change the messages"
        );
    }
}

/// Returns the host without the brackets of IPv6.
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

/// Makes the server answer: calls a method that no server has.
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
        // This side made a status that has a source: no answer arrived.
        Err(status) if std::error::Error::source(&status).is_some() => Err(status),
        _ => Ok(()),
    }
}

/// Whether a server does not answer because it uses TLS. HTTP/2 cannot tell: it meets a closed connection or an invalid
/// frame. This function sends only the preface of HTTP/2, which a server with TLS takes for a bad record and answers with
/// an alert.
async fn speaks_tls(host: &str, port: u16) -> bool {
    let answer = async {
        let mut stream = TcpStream::connect((host, port)).await?;
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await?;
        stream.read_u8().await
    };
    const ALERT: u8 = 21;
    matches!(tokio::time::timeout(HANDSHAKE, answer).await, Ok(Ok(ALERT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_allowed_without_tls() {
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
    fn scheme_of_address_matches_tls() {
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
