//! Runs on many machines: the servers (`serve`), and what a person asks of them (`client`).

mod client;
mod dashboard;
mod replays;
mod say;
mod serve;
mod stored;

pub(crate) use client::{
    CANCEL_EXAMPLES, CancelArgs, Client, DRAIN_EXAMPLES, DrainArgs, LIMIT_EXAMPLES, LimitArgs,
    STATUS_EXAMPLES, SUBMIT_EXAMPLES, StatusArgs, SubmitArgs, WAIT_EXAMPLES, WATCH_EXAMPLES,
    WaitArgs, WatchArgs, cancel, connect, drain, limit, status, submit, wait, watch,
};
pub(crate) use replays::{REPLAYS_EXAMPLES, ReplaysArgs, replays};
pub(crate) use serve::{
    COORDINATOR_EXAMPLES, CoordinatorArgs, WORKER_EXAMPLES, WorkerArgs, coordinator, worker,
};
pub(crate) use stored::{archived_game, list_stored, open_archive, show_stored};

use anyhow::Context;
use hatebeam_net::{Tls, Token};
use hatebeam_objects::{Encryption, Objects, Options};
use std::path::{Path, PathBuf};

/// Where the coordinator listens unless told otherwise.
pub(crate) const COORDINATOR: &str = "127.0.0.1:7800";

/// The object store.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    /// The object store that runs are kept in: a folder that all machines share, or s3://BUCKET/PREFIX.
    /// Credentials come from where AWS's own tools look: the environment, profiles, the machine
    #[arg(long, value_name = "PLACE", env = "HATEBEAM_STORE")]
    store: String,
    #[command(flatten)]
    s3: S3Args,
}

/// The object store to look into, where there is another place to look.
#[derive(Debug, clap::Args)]
pub(crate) struct FromStoreArgs {
    /// Look into this object store, where a coordinator keeps its runs, rather than at the runs of this
    /// machine: a folder, or s3://BUCKET/PREFIX. No coordinator is needed
    #[arg(long, value_name = "PLACE", conflicts_with = "state")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    s3: S3Args,
}

/// How S3 is spoken to.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct S3Args {
    /// An S3 server other than AWS, as http://host:port
    #[arg(long, value_name = "URL", env = "HATEBEAM_S3_ENDPOINT")]
    s3_endpoint: Option<String>,
    /// The region [default: that of the environment, the profile or the machine]
    #[arg(long, value_name = "REGION", env = "HATEBEAM_S3_REGION")]
    s3_region: Option<String>,
    /// Put the bucket into the path, as most servers other than AWS want it
    #[arg(long, env = "HATEBEAM_S3_PATH_STYLE")]
    s3_path_style: bool,
    /// How the server encrypts: AES256, aws:kms or aws:kms:KEY [default: as the bucket is set up]
    #[arg(long, value_name = "HOW", env = "HATEBEAM_S3_ENCRYPTION")]
    #[arg(value_parser = parse_encryption)]
    s3_encryption: Option<Encryption>,
    /// The storage class of tables, such as STANDARD_IA [default: the bucket's]
    #[arg(long, value_name = "CLASS", env = "HATEBEAM_S3_STORAGE_CLASS")]
    s3_storage_class: Option<String>,
}

fn parse_encryption(text: &str) -> Result<Encryption, String> {
    match text {
        "AES256" => Ok(Encryption::Aes256),
        "aws:kms" => Ok(Encryption::Kms { key_id: None }),
        _ => match text.strip_prefix("aws:kms:") {
            Some(key) if !key.is_empty() => Ok(Encryption::Kms {
                key_id: Some(key.to_owned()),
            }),
            _ => Err("give AES256, aws:kms or aws:kms:KEY".to_owned()),
        },
    }
}

impl StoreArgs {
    /// Whether it is AWS's, which charges for it.
    pub(crate) fn is_of_aws(&self) -> bool {
        self.store.starts_with("s3://") && self.s3.s3_endpoint.is_none()
    }

    pub(crate) async fn open(&self) -> anyhow::Result<Objects> {
        self.s3.open(&self.store).await
    }
}

impl S3Args {
    async fn open(&self, place: &str) -> anyhow::Result<Objects> {
        Objects::open(place, &self.options())
            .await
            .with_context(|| format!("the object store {place}"))
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            path_style: self.s3_path_style,
            encryption: self.s3_encryption.clone().unwrap_or_default(),
            storage_class: self.s3_storage_class.clone(),
            ..Options::default()
        }
    }
}

/// By what the members of a cluster know each other.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TlsArgs {
    /// The folder that `hatebeam certs` made, or what of it belongs on this machine
    #[arg(long, value_name = "DIR", env = "HATEBEAM_TLS")]
    tls: Option<PathBuf>,
    /// The file with the token [default: the variable HATEBEAM_TOKEN, or `token` in the folder of --tls]
    #[arg(long, value_name = "FILE", env = "HATEBEAM_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl TlsArgs {
    /// The folder with certificates, if there is one.
    pub(crate) fn dir(&self) -> Option<&Path> {
        self.tls.as_deref()
    }

    /// The certificate of this name.
    pub(crate) fn tls(&self, name: &str) -> Option<Tls> {
        self.tls.as_ref().map(|dir| Tls::in_dir(dir, name))
    }

    /// What a client shows. On a machine of the cluster that has no client's certificate, its own does.
    pub(crate) fn client(&self) -> Option<Tls> {
        let members = ["client", "worker", "coordinator"].map(|name| self.tls(name));
        let there = members.iter().flatten().find(|tls| tls.cert.exists());
        there.cloned().or_else(|| self.tls("client"))
    }

    pub(crate) fn token(&self) -> anyhow::Result<Option<Token>> {
        let beside = self.tls.as_ref().map(|dir| dir.join("token"));
        let named = self.token_file.clone();
        let found = match (named, Token::from_env()?) {
            (Some(file), _) => Some(Token::from_file(&file)?),
            (None, Some(token)) => Some(token),
            (None, None) => match beside.filter(|file| file.exists()) {
                Some(file) => Some(Token::from_file(&file)?),
                None => None,
            },
        };
        Ok(found)
    }
}

/// A runtime to wait in.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads to wait in")?
        .block_on(work)
}
