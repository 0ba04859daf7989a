//! Certificates, checked before they are used: that a file is missing, of another CA or expired is said at
//! start-up and by name, rather than by the other end as an alert.

use super::{HANDSHAKE, WireError, files};
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

/// The name in every certificate of a cluster.
pub const NAME: &str = "hatebeam";

/// Longer than any certificate is good for.
const LONGEST: Duration = Duration::from_secs(200 * 366 * 86_400);

/// The files of one member, all PEM. They are read when a server or a connection is made; new ones take a
/// new start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate of the CA that all members have in common.
    pub ca: PathBuf,
    /// The member's own certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What a certificate is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// What is in the files.
struct Contents {
    ca: Vec<u8>,
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// The files of a member as `hatebeam certs` names them.
    pub fn in_dir(dir: &Path, name: &str) -> Self {
        Self {
            ca: dir.join("ca.pem"),
            cert: dir.join(format!("{name}.pem")),
            key: dir.join(format!("{name}-key.pem")),
        }
    }

    /// TLS as a server has it: whoever connects must show a certificate of the CA.
    ///
    /// # Errors
    /// The file, and what is wrong with it.
    pub fn server(&self) -> Result<ServerTlsConfig, WireError> {
        let contents = self.read(Side::Server)?;
        Ok(ServerTlsConfig::new()
            .identity(Identity::from_pem(contents.cert, contents.key))
            .client_ca_root(Certificate::from_pem(contents.ca))
            .timeout(HANDSHAKE))
    }

    /// TLS as browsers have it, who have no certificate: whoever is served so must be asked for a token.
    ///
    /// # Errors
    /// The file, and what is wrong with it.
    pub fn https(&self) -> Result<ServerConfig, WireError> {
        let contents = self.read(Side::Server)?;
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

    /// TLS as a client has it: the server must have a certificate of the CA, for [`NAME`].
    ///
    /// # Errors
    /// The file, and what is wrong with it.
    pub fn client(&self) -> Result<ClientTlsConfig, WireError> {
        let contents = self.read(Side::Client)?;
        Ok(ClientTlsConfig::new()
            .domain_name(NAME)
            .identity(Identity::from_pem(contents.cert, contents.key))
            .ca_certificate(Certificate::from_pem(contents.ca))
            .timeout(HANDSHAKE))
    }

    /// Until when the files are good: the certificate, and the CA that vouches for it.
    ///
    /// The one who judges certificates is asked about one moment after the other, by halves: it knows all the
    /// reasons not to trust one, and no second reader of certificates is needed beside it.
    ///
    /// # Errors
    /// The file, and what is wrong with it now.
    pub fn valid_until(&self) -> Result<SystemTime, WireError> {
        let now = UnixTime::now().as_secs();
        let contents = Contents {
            ca: files::read(&self.ca)?,
            cert: files::read(&self.cert)?,
            key: files::read_private(&self.key)?,
        };
        let parts = [&contents.ca, &contents.cert, &contents.key].map(Vec::as_slice);
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let judge = |side, seconds| self.check(parts, side, at(seconds));
        let side = match judge(Side::Client, now) {
            Ok(()) => Side::Client,
            Err(error) => judge(Side::Server, now)
                .map(|()| Side::Server)
                .map_err(|_| error)?,
        };
        let (mut good, mut bad) = (now, now + LONGEST.as_secs());
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match judge(side, middle) {
                Ok(()) => good = middle,
                Err(_) => bad = middle,
            }
        }
        Ok(UNIX_EPOCH + Duration::from_secs(good))
    }

    /// What a connection to a server fails of for certain, or `None` if the server accepts this side.
    ///
    /// A server that does not accept a certificate says so after the client thinks that it is connected, and
    /// closes the connection on what the client has sent meanwhile: the system may then throw the alert away
    /// before it is read. So this side sends nothing, and listens.
    pub(super) async fn refused_by(&self, host: &str, port: u16) -> io::Result<Option<io::Error>> {
        let connector = TlsConnector::from(Arc::new(self.listener().map_err(io::Error::other)?));
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
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
        PrivateKeyDer::from_pem_slice(pem)
            .map_err(|_| wrong(&self.key, "it holds no private key in PEM".to_owned()))
    }

    fn read(&self, side: Side) -> Result<Contents, WireError> {
        let contents = Contents {
            ca: files::read(&self.ca)?,
            cert: files::read(&self.cert)?,
            key: files::read_private(&self.key)?,
        };
        self.check(
            [&contents.ca, &contents.cert, &contents.key],
            side,
            UnixTime::now(),
        )?;
        Ok(contents)
    }

    /// Checks what the files hold, or are to hold: CA, certificate and key.
    pub(crate) fn check(
        &self,
        [ca, cert, key]: [&[u8]; 3],
        side: Side,
        now: UnixTime,
    ) -> Result<(), WireError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.ca, ca)? {
            let unusable =
                |error| wrong(&self.ca, format!("it is no certificate of a CA: {error}"));
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
                wrong(&self.cert, "its certificate is damaged".to_owned())
            }
            other => wrong(&self.key, format!("its key cannot be used: {other}")),
        }
    }

    /// What is wrong with a certificate.
    fn reason(&self, error: &rustls::Error, side: Side) -> String {
        let rustls::Error::InvalidCertificate(error) = error else {
            return error.to_string();
        };
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate has expired: make a new one (`hatebeam certs --renew`)".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet: is the clock right?".to_owned()
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                format!("the certificate is not of the CA in {}", self.ca.display())
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("the certificate is not one for the name {NAME}")
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                match side {
                    Side::Server => "the certificate is one of a client: no server can have it",
                    Side::Client => "the certificate is not one that a client can have",
                }
                .to_owned()
            }
            other => format!("the certificate is no good: {other}"),
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
        _ => Err(wrong(path, "it holds no certificate in PEM".to_owned())),
    }
}

/// Looks at a certificate as the other end would.
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
        Side::Server => {
            let name = ServerName::try_from(NAME)
                .map_err(|error| rustls::Error::General(error.to_string()))?;
            WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(unusable)?
                .verify_server_cert(own, others, &name, &[], now)
                .map(|_| ())
        }
    }
}
