//! Groups of arguments that the cluster commands share.

use crate::args::folder_parser;
use anyhow::Context;
use hatebeam_client::Endpoint;
use hatebeam_cost::Micros;
use hatebeam_metrics::{CertificateMetrics, Registry};
use hatebeam_net::{Tls, Token, Tokens};
use hatebeam_objects::{Encryption, Objects, Options};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::time::{Duration, UNIX_EPOCH};

/// Default address of the coordinator.
pub(super) const COORDINATOR: &str = "127.0.0.1:7800";

/// The address of a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct CoordinatorAddressArgs {
    /// Address of the coordinator, in the form http://host:port, or https://host:port if it uses certificates
    #[arg(long, value_name = "URI", env = "HATEBEAM_COORDINATOR")]
    #[arg(default_value = "http://127.0.0.1:7800")]
    pub(super) coordinator: String,
}

/// The object store.
#[derive(Debug, clap::Args)]
pub(super) struct StoreArgs {
    /// Object store for the runs: a folder that all machines share, or s3://BUCKET/PREFIX. S3 credentials come from the same
    /// sources as those of the AWS tools: environment variables, profiles, or the machine's role
    #[arg(long, value_name = "PLACE", env = "HATEBEAM_STORE")]
    store: String,
    #[command(flatten)]
    s3: S3Args,
}

impl StoreArgs {
    /// Returns whether the store is on AWS, which charges for requests and storage.
    pub(super) fn is_aws(&self) -> bool {
        self.store.starts_with("s3://") && self.s3.s3_endpoint.is_none()
    }

    pub(super) async fn open(&self) -> anyhow::Result<Objects> {
        self.s3.open(&self.store).await
    }

    /// Opens the store for a command that only reads, which does not create the folder.
    pub(super) async fn open_existing(&self) -> anyhow::Result<Objects> {
        self.s3.open_existing(&self.store).await
    }
}

/// Options for access to S3.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct S3Args {
    /// URL of an S3 server other than AWS, in the form http://host:port
    #[arg(long, value_name = "URL", env = "HATEBEAM_S3_ENDPOINT")]
    s3_endpoint: Option<String>,
    /// AWS region [default: from the environment, the profile or the machine]
    #[arg(long, value_name = "REGION", env = "HATEBEAM_S3_REGION")]
    s3_region: Option<String>,
    /// Put the bucket name into the URL path instead of the host name, as most servers other than AWS require
    #[arg(long, env = "HATEBEAM_S3_PATH_STYLE")]
    s3_path_style: bool,
    /// Server-side encryption: AES256, aws:kms or aws:kms:KEY [default: the bucket's setting]
    #[arg(long, value_name = "HOW", env = "HATEBEAM_S3_ENCRYPTION")]
    s3_encryption: Option<Encryption>,
    /// Storage class for tables (the files with the wells of a run), such as STANDARD_IA [default: the bucket's setting]
    #[arg(long, value_name = "CLASS", env = "HATEBEAM_S3_STORAGE_CLASS")]
    s3_storage_class: Option<String>,
    /// Seconds to wait for the answer to a request before the request is retried. A request is sent at most six times. A
    /// worker uploads 64 MiB at once, so a slow connection requires more time
    #[arg(long, value_name = "SECONDS", env = "HATEBEAM_S3_TIMEOUT", default_value = "60",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    s3_timeout: u64,
}

impl S3Args {
    async fn open(&self, location: &str) -> anyhow::Result<Objects> {
        let objects = Objects::open(location, &self.options()).await;
        objects.with_context(|| format!("cannot open the object store {location}"))
    }

    pub(super) async fn open_existing(&self, location: &str) -> anyhow::Result<Objects> {
        let objects = Objects::open_existing(location, &self.options()).await;
        objects.with_context(|| format!("cannot open the object store {location}"))
    }

    pub(super) fn options(&self) -> Options {
        Options {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            path_style: self.s3_path_style,
            encryption: self.s3_encryption.clone().unwrap_or_default(),
            storage_class: self.s3_storage_class.clone(),
            timeout: Duration::from_secs(self.s3_timeout),
            ..Options::default()
        }
    }
}

/// Certificates and token for a coordinator, a worker or a client.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TlsArgs {
    /// Folder with the certificates from `hatebeam certs`; only this machine's own files are needed
    #[arg(long, value_name = "DIR", env = "HATEBEAM_TLS", value_parser = folder_parser())]
    tls: Option<PathBuf>,
    /// File with the token [default: the variable HATEBEAM_TOKEN, or else the file `token` in the folder of --tls]
    #[arg(long, value_name = "FILE", env = "HATEBEAM_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl TlsArgs {
    pub(super) fn dir(&self) -> Option<&Path> {
        self.tls.as_deref()
    }

    /// Sets the metric for the time at which the certificate of the member `name` expires. Without --tls, registers the
    /// metric but does not set it.
    pub(super) fn watch_expiry(&self, registry: &Registry, name: &str) -> anyhow::Result<()> {
        let metrics = CertificateMetrics::register(registry);
        if let Some(tls) = self.member(name) {
            let until = tls.valid_until()?.duration_since(UNIX_EPOCH);
            metrics.expiry.set(until.unwrap_or_default().as_secs());
        }
        Ok(())
    }

    /// Returns the certificate files of the member `name`, or `None` without --tls.
    pub(super) fn member(&self, name: &str) -> Option<Tls> {
        self.tls.as_ref().map(|dir| Tls::in_dir(dir, name))
    }

    /// Returns the client's certificate files, or the coordinator's if only those exist.
    fn client(&self) -> Option<Tls> {
        let members = ["client", "coordinator"].map(|name| self.member(name));
        let mut existing = members
            .into_iter()
            .flatten()
            .filter(|tls| tls.cert.exists());
        existing.next().or_else(|| self.member("client"))
    }

    /// Returns the connection settings for the coordinator at this address.
    pub(super) fn endpoint(&self, uri: &str) -> anyhow::Result<Endpoint> {
        Ok(Endpoint {
            uri: uri.to_owned(),
            tls: self.client(),
            token: self.token()?,
        })
    }

    /// Returns the tokens that a server accepts: one for full access, and one for read-only access.
    pub(super) fn tokens(&self) -> anyhow::Result<Tokens> {
        let file = self.tls.as_ref().map(|dir| dir.join("view-token"));
        let file = file.filter(|file| file.exists());
        let view = file.map(|file| Token::from_file(&file)).transpose()?;
        let full = self.token()?;
        // Without a full token, the view token is ignored, because the server would refuse every change.
        let view = view.filter(|_| full.is_some());
        Ok(Tokens { full, view })
    }

    pub(super) fn token(&self) -> anyhow::Result<Option<Token>> {
        if let Some(file) = &self.token_file {
            return Ok(Some(Token::from_file(file)?));
        }
        if let Some(token) = Token::from_env()? {
            return Ok(Some(token));
        }
        let file = self.tls.as_ref().map(|dir| dir.join("token"));
        let file = file.filter(|file| file.exists());
        Ok(file.map(|file| Token::from_file(&file)).transpose()?)
    }
}

/// Parses a cost limit, which must be greater than zero.
pub(super) fn parse_dollars(text: &str) -> Result<Micros, String> {
    match text.parse() {
        Ok(Micros::ZERO) | Err(_) => {
            Err("give a number of dollars from 0.000001 to 1000000000".to_owned())
        }
        Ok(dollars) => Ok(dollars),
    }
}

/// Runs a future to completion on a new tokio runtime.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    // The runtime is compiled for each type of future, so this one erases the type.
    let work: Pin<&mut dyn Future<Output = _>> = pin!(work);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads of the tokio runtime")?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        s3: S3Args,
    }

    #[test]
    fn s3_timeout_can_be_set_and_defaults_to_store_timeout() {
        let timeout = |args: &[&str]| {
            let args = ["x"].iter().chain(args);
            Command::try_parse_from(args).map(|command| command.s3.options().timeout)
        };
        assert_eq!(timeout(&[]).unwrap(), Options::default().timeout);
        let long = timeout(&["--s3-timeout", "600"]).unwrap();
        assert_eq!(long, Duration::from_secs(600));
        assert!(timeout(&["--s3-timeout", "0"]).is_err());
    }
}
