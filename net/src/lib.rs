//! Connections between the members of a cluster, their authentication, and an [HTTP server with
//! limits](http).
//!
//! Authentication has two parts. TLS with certificates on both sides proves that both ends of a connection
//! are members of the cluster. A token proves that the caller is authorized. Members trust only the cluster's
//! own certificate authority (CA). Every certificate is issued for a [`Role`] instead of an address,
//! because machines are rented and their addresses change. All members with the same role can share a certificate.
//! Certificates cannot be revoked: to exclude a member, create a new CA.
//!
//! Without TLS, a server listens only on loopback addresses, unless the user allows other addresses
//! ([`check_bind`]).

#[cfg(feature = "certs")]
pub mod certs;
mod error;
mod files;
pub mod http;
mod incoming;
mod role;
mod tls;
mod token;

pub use error::{BadToken, WireError, explain};
pub use incoming::Incoming;
pub use role::{Role, check_worker_address, check_worker_name};
#[cfg(feature = "certs")]
pub(crate) use tls::Side;
pub use tls::Tls;
pub use token::{Access, Bearer, Guard, TOKEN_VARIABLE, Token, Tokens, VIEW_ONLY, check_full};

use incoming::MAX_CONNECTIONS;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server, Uri};
use tonic_prost::ProstCodec;

/// Maximum size of a message, in bytes. Every client and service must set this limit, except for [`MAX_ANSWER`]. The
/// largest valid messages are submissions with a network and the nodes of a game that was read back, with up to four
/// megabytes. A message above the limit indicates a fault, so the receiver must not allocate memory for it.
pub const MAX_MESSAGE: usize = 4 << 20;
/// Maximum size of a message from a worker to the coordinator, in bytes. The answer to an order `expand` has 21 bytes for
/// each of the worker's wells in which the loop rule changes the piece, so there can be 1.5 million of them. With 0.35 % of
/// the wells, that is a worker with 450 million wells.
pub const MAX_ANSWER: usize = 32 << 20;

/// Maximum size of an HTTP/2 frame, in bytes. A batch of 100 kB needs two frames of this size, or seven frames of the
/// default size.
const MAX_FRAME: u32 = 64 << 10;
/// Flow-control window of a stream, in bytes. It holds about ten batches, so a sender does not wait one round trip
/// per batch.
const STREAM_WINDOW: u32 = 1 << 20;
/// Flow-control window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Maximum number of concurrent calls per connection. A worker makes one call to each peer at a time; a
/// client makes a few.
const MAX_CALLS: u32 = 256;

/// Maximum total size of a call's headers, in bytes.
const MAX_HEADERS: u32 = 16 << 10;
/// Maximum duration of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time without data after which one side of a connection pings the other. An unanswered ping closes the connection after
/// the same time.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of TCP keepalive probes, which prevent routers from dropping idle connections.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);

/// Options of [`connect`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum time to connect. Unless `lazy` is set, this includes the TLS handshake and the first response.
    pub connect_timeout: Duration,
    /// Time without data after which the client pings the server. An unanswered ping closes the connection after the same
    /// time.
    pub ping_timeout: Duration,
    /// Whether to connect at the first call instead of immediately. The first call then reports connection errors:
    /// see [`explain`].
    pub lazy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            ping_timeout: PING_TIMEOUT,
            lazy: false,
        }
    }
}

/// Checks that a server may listen at `address`. Without TLS, only loopback addresses are allowed unless
/// `insecure_bind` is set.
///
/// # Errors
/// Returns [`WireError::OpenBind`] if the address is not allowed.
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
    // This also recognizes IPv4-mapped IPv6 addresses.
    ip.to_canonical().is_loopback()
}

/// Returns a server that closes unresponsive connections. If `tls` is given, the server presents a certificate for
/// `role` and requires client certificates issued by the CA. The server does not check the roles of callers: use a
/// [`Guard`].
///
/// The caller adds services, interceptors and call timeouts, and serves the connections from [`listen`].
///
/// # Errors
/// Returns a [`WireError`] if the files of `tls` are invalid.
pub fn server(tls: Option<&Tls>, role: Role) -> Result<Server, WireError> {
    let server = Server::builder()
        .tcp_nodelay(true)
        .tcp_keepalive(Some(TCP_KEEPALIVE))
        .http2_keepalive_interval(Some(PING_TIMEOUT))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_CALLS)
        .concurrency_limit_per_connection(MAX_CALLS as usize)
        .max_frame_size(MAX_FRAME)
        .http2_max_header_list_size(MAX_HEADERS);
    match tls {
        None => Ok(server),
        Some(tls) => server
            .tls_config(tls.server(role)?)
            .map_err(|error| WireError::setup(&error)),
    }
}

/// Listens at an address and returns the connections for `serve_with_incoming`. With port 0, the operating
/// system chooses the port; `local_addr` returns it.
///
/// # Errors
/// Returns [`WireError::Listen`] if the address cannot be bound.
pub fn listen(address: SocketAddr) -> Result<Incoming, WireError> {
    // The socket options in `server` apply only to connections that the server accepts itself, so set them here too.
    TcpIncoming::bind(address)
        .map(|incoming| {
            let incoming = incoming
                .with_nodelay(Some(true))
                .with_keepalive(Some(TCP_KEEPALIVE));
            Incoming::new(incoming, MAX_CONNECTIONS)
        })
        .map_err(|reason| WireError::Listen { address, reason })
}

/// Connects to a server. If `tls` is given, the URI must start with `https://`, and the server's certificate must be
/// for the role `server`. Otherwise, the URI must start with `http://`.
///
/// Unless `lazy` is set, returns after the server has responded to a call. A completed TLS 1.3 handshake does
/// not show that the server accepts the client, because the client completes the handshake before the server
/// has checked the client's certificate.
///
/// # Errors
/// Returns [`WireError::Unreachable`] if a later attempt may succeed, and another variant otherwise.
pub async fn connect(
    uri: &str,
    tls: Option<&Tls>,
    server: Role,
    limits: &Limits,
) -> Result<Channel, WireError> {
    let (address, port) = parse(uri, tls.is_some())?;
    if tls.is_none() {
        warn_if_plain(&address);
    }
    let host = host(&address).to_owned();
    let endpoint = endpoint(address, tls, server, limits)?;
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
            Some(tls) => match tls.refused_by(server, &host, port).await {
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
            reason: format!("no response within {:?}", limits.connect_timeout),
        }),
    }
}

/// Checks that other members of the cluster can pass a URI to [`connect`]. `has_tls` tells whether the members use TLS.
///
/// # Errors
/// Returns [`WireError::Address`] if the URI has another form, or the wrong scheme.
pub fn check_address(uri: &str, has_tls: bool) -> Result<(), WireError> {
    parse(uri, has_tls).map(|_| ())
}

/// Parses a URI, which must contain a port, and checks that its scheme matches `has_tls`. Returns the URI and the port.
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
        (Some("http"), false) => {}
        (Some("http"), true) => {
            return Err(bad(format!(
                "http:// does not use certificates: write https://{rest}"
            )));
        }
        (Some("https"), false) => {
            return Err(bad(format!(
                "https:// requires certificates: give them (`hatebeam certs` creates them), or write http://{rest}"
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

/// Returns the host without the brackets around an IPv6 address.
fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

fn endpoint(
    uri: Uri,
    tls: Option<&Tls>,
    server: Role,
    limits: &Limits,
) -> Result<Endpoint, WireError> {
    let endpoint = Endpoint::from(uri)
        .user_agent(concat!("hatebeam/", env!("CARGO_PKG_VERSION")))
        .map_err(|error| WireError::setup(&error))?
        .connect_timeout(limits.connect_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(TCP_KEEPALIVE))
        .http2_keep_alive_interval(limits.ping_timeout)
        .keep_alive_timeout(limits.ping_timeout)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        .http2_max_header_list_size(MAX_HEADERS);
    match tls {
        None => Ok(endpoint),
        Some(tls) => endpoint
            .tls_config(tls.client(server)?)
            .map_err(|error| WireError::setup(&error)),
    }
}

/// Calls a method that no server implements, and returns an error if no response arrives.
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
        // A status with a source was created locally, so no response has arrived.
        Err(status) if std::error::Error::source(&status).is_some() => Err(status),
        _ => Ok(()),
    }
}

/// Returns whether the server uses TLS.
///
/// The errors of the HTTP/2 client do not show this: they report a closed connection or an invalid frame. This
/// function sends only the HTTP/2 preface, which a TLS server treats as an invalid record and answers with an alert.
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
    fn only_loopback_addresses_are_allowed_without_tls() {
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
    fn address_scheme_must_match_tls() {
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
            let error = check_address(uri, has_tls).unwrap_err().to_string();
            assert!(error.contains(expected), "{uri}: {error}");
            assert!(error.contains(&format!("'{uri}'")), "{uri}: {error}");
        }
        for (uri, has_tls) in [
            ("http://localhost:7000", false),
            ("http://[::1]:7000/", false),
            ("https://far.example:7000", true),
        ] {
            check_address(uri, has_tls).unwrap();
        }
    }
}
