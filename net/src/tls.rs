//! TLS configurations from certificate files, which are checked before use. If a file is missing, or if a certificate
//! has expired or was issued by another certificate authority (CA), the error names the file. Without this check, the
//! user would see only an alert from the other side of a connection.

use super::{HANDSHAKE, Role, WireError, files};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// Upper bound on the remaining validity of a certificate, for the search in [`Tls::valid_until`].
const LONGEST: Duration = Duration::from_secs(200 * 366 * 86_400);

/// Paths of a cluster member's PEM files. The files are read when a server starts or a connection is configured, so a
/// running server does not notice changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Path of the CA's certificate, which is the same for all members.
    pub ca: PathBuf,
    /// Path of the member's certificate.
    pub cert: PathBuf,
    /// Path of the member's private key.
    pub key: PathBuf,
}

/// The side of a connection that presents a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// A server with this role.
    Server(Role),
    /// A client with any role.
    Client,
}

/// The contents of the files in [`Tls`].
struct Contents {
    ca: Vec<u8>,
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Returns the paths of a member's files in a folder that `hatebeam certs` created.
    pub fn in_dir(dir: &Path, name: &str) -> Self {
        Self {
            ca: dir.join("ca.pem"),
            cert: dir.join(format!("{name}.pem")),
            key: dir.join(format!("{name}-key.pem")),
        }
    }

    /// Returns the configuration of a server with this role. The server requires client certificates issued by the CA.
    ///
    /// # Errors
    /// Returns a [`WireError`] that names the file and the reason if a file is invalid.
    pub fn server(&self, role: Role) -> Result<ServerTlsConfig, WireError> {
        let contents = self.read(Side::Server(role))?;
        Ok(ServerTlsConfig::new()
            .identity(Identity::from_pem(contents.cert, contents.key))
            .client_ca_root(Certificate::from_pem(contents.ca))
            .timeout(HANDSHAKE))
    }

    /// Returns the configuration of a server for browsers, which have no client certificates. The server must
    /// therefore require a token.
    ///
    /// # Errors
    /// Returns a [`WireError`] that names the file and the reason if a file is invalid.
    pub fn https(&self) -> Result<ServerConfig, WireError> {
        let contents = self.read(Side::Server(Role::Coordinator))?;
        let chain = certificates(&self.cert, &contents.cert)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| WireError::setup(&error))?
            .with_no_client_auth()
            .with_single_cert(chain, self.private_key(&contents.key)?)
            .map_err(|error| WireError::setup(&error))?;
        config.alpn_protocols.push(b"http/1.1".to_vec());
        Ok(config)
    }

    /// Returns the configuration of a client that accepts only servers with a certificate issued by the CA for the role
    /// `server`.
    ///
    /// # Errors
    /// Returns a [`WireError`] that names the file and the reason if a file is invalid.
    pub fn client(&self, server: Role) -> Result<ClientTlsConfig, WireError> {
        let contents = self.read(Side::Client)?;
        Ok(ClientTlsConfig::new()
            .domain_name(server.domain())
            .identity(Identity::from_pem(contents.cert, contents.key))
            .ca_certificate(Certificate::from_pem(contents.ca))
            .timeout(HANDSHAKE))
    }

    /// Returns the time at which the certificate expires. The CA's own expiry is irrelevant, because the
    /// verifier does not check it.
    ///
    /// The function finds this time by a binary search that runs the verifier at different times. It therefore needs no
    /// certificate parser.
    ///
    /// # Errors
    /// Returns a [`WireError`] that names the file and the reason if a file is currently invalid.
    pub fn valid_until(&self) -> Result<SystemTime, WireError> {
        let now = UnixTime::now().as_secs();
        let contents = self.contents()?;
        let parts = [&contents.ca, &contents.cert, &contents.key].map(Vec::as_slice);
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let check = |side, seconds| self.check(parts, side, at(seconds));
        let side = match check(Side::Client, now) {
            Ok(()) => Side::Client,
            Err(error) => check(Side::Server(Role::Coordinator), now)
                .map(|()| Side::Server(Role::Coordinator))
                .map_err(|_| error)?,
        };
        let (mut valid, mut invalid) = (now, now + LONGEST.as_secs());
        while invalid - valid > 1 {
            let middle = valid + (invalid - valid) / 2;
            match check(side, middle) {
                Ok(()) => valid = middle,
                Err(_) => invalid = middle,
            }
        }
        Ok(UNIX_EPOCH + Duration::from_secs(valid))
    }

    /// Connects to a server and returns the error if either side rejects the other, or `None` if the server sends data.
    ///
    /// With TLS 1.3, a server checks the client's certificate after the client has completed the handshake. If the
    /// certificate is bad, the server sends an alert and closes the connection. If the client has sent data in the
    /// meantime, the operating system may discard the alert before it is read. This function therefore sends
    /// nothing after the handshake and waits for the alert.
    pub(super) async fn refused_by(
        &self,
        server: Role,
        host: &str,
        port: u16,
    ) -> io::Result<Option<io::Error>> {
        let connector = TlsConnector::from(Arc::new(self.listener().map_err(io::Error::other)?));
        let name = ServerName::try_from(server.domain()).map_err(io::Error::other)?;
        let stream = TcpStream::connect((host, port)).await?;
        let heard = async { connector.connect(name, stream).await?.read_u8().await };
        Ok(heard.await.err())
    }

    fn listener(&self) -> Result<ClientConfig, WireError> {
        let contents = self.read(Side::Client)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.ca, &contents.ca)?);
        let chain = certificates(&self.cert, &contents.cert)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| WireError::setup(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, self.private_key(&contents.key)?)
            .map_err(|error| WireError::setup(&error))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(config)
    }

    fn private_key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, WireError> {
        PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
            wrong(
                &self.key,
                "it contains no private key in PEM format".to_owned(),
            )
        })
    }

    /// Reads the files without checking them.
    fn contents(&self) -> Result<Contents, WireError> {
        Ok(Contents {
            ca: files::read(&self.ca)?,
            cert: files::read(&self.cert)?,
            key: files::read_private(&self.key)?,
        })
    }

    fn read(&self, side: Side) -> Result<Contents, WireError> {
        let contents = self.contents()?;
        self.check(
            [&contents.ca, &contents.cert, &contents.key],
            side,
            UnixTime::now(),
        )?;
        Ok(contents)
    }

    /// Checks that the certificate is valid for `side` at the time `now`, was issued by the CA, and belongs to the key.
    /// The contents may not have been written to the files yet.
    pub(crate) fn check(
        &self,
        [ca, cert, key]: [&[u8]; 3],
        side: Side,
        now: UnixTime,
    ) -> Result<(), WireError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.ca, ca)? {
            let unusable = |error| wrong(&self.ca, format!("it is not a CA certificate: {error}"));
            roots.add(root).map_err(unusable)?;
        }
        let chain = certificates(&self.cert, cert)?;
        let private = self.private_key(key)?;
        CertifiedKey::from_der(chain.clone(), private, &provider)
            .map_err(|error| self.key_error(error))?;
        verify(provider, roots, &chain, side, now)
            .map_err(|error| wrong(&self.cert, self.reason(&error, side)))
    }

    fn key_error(&self, error: rustls::Error) -> WireError {
        match error {
            rustls::Error::InconsistentKeys(_) => wrong(
                &self.key,
                format!("it is not the key of {}", self.cert.display()),
            ),
            rustls::Error::InvalidCertificate(_) => {
                wrong(&self.cert, "the certificate is damaged".to_owned())
            }
            other => wrong(&self.key, format!("the key cannot be used: {other}")),
        }
    }

    /// Describes why a certificate is invalid.
    fn reason(&self, error: &rustls::Error, side: Side) -> String {
        let rustls::Error::InvalidCertificate(error) = error else {
            return error.to_string();
        };
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired: create a new one with `hatebeam certs --renew`"
                    .to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet: check the system clock".to_owned()
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                format!(
                    "the certificate was not issued by the CA in {}",
                    self.ca.display()
                )
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let role = match side {
                    Side::Server(role) => format!("a {role}"),
                    Side::Client => "a member of a cluster".to_owned(),
                };
                format!(
                    "the certificate is not for {role}: use another one, or create new ones with `hatebeam certs --renew`"
                )
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                match side {
                    Side::Server(_) => "the certificate is for clients only",
                    Side::Client => "the certificate is not for clients",
                }
                .to_owned()
            }
            other => format!("the certificate is invalid: {other}"),
        }
    }
}

fn wrong(path: &Path, reason: String) -> WireError {
    WireError::File {
        path: path.to_owned(),
        reason,
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, WireError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong(
            path,
            "it contains no certificate in PEM format".to_owned(),
        )),
    }
}

/// Verifies a certificate as the other side of a connection would.
fn verify(
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
    chain: &[CertificateDer<'_>],
    side: Side,
    now: UnixTime,
) -> Result<(), rustls::Error> {
    let Some((own, others)) = chain.split_first() else {
        return Err(rustls::Error::NoCertificatesPresented);
    };
    let roots = Arc::new(roots);
    let unusable =
        |error: rustls::client::VerifierBuilderError| rustls::Error::General(error.to_string());
    match side {
        Side::Client => WebPkiClientVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(unusable)?
            .verify_client_cert(own, others, now)
            .map(|_| ()),
        Side::Server(role) => {
            let name = ServerName::try_from(role.domain())
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(unusable)?
                .verify_server_cert(own, others, &name, &[], now)
                .map(|_| ())
        }
    }
}
