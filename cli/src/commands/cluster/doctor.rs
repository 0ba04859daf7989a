//! The parts of a cluster that `hatebeam doctor` checks.

use super::args::{S3Args, TlsArgs};
use hatebeam_doctor::{Cluster, Coordinator, Examination};

/// The parts of a cluster to check.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckedClusterArgs {
    /// Object store to check: a folder that all machines share, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE", env = "HATEBEAM_STORE")]
    store: Option<String>,
    #[command(flatten)]
    s3: S3Args,
    /// Address of the coordinator to check, in the form http://host:port, or https://host:port if it uses certificates
    #[arg(long, value_name = "URI", env = "HATEBEAM_COORDINATOR")]
    coordinator: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
}

impl CheckedClusterArgs {
    /// Returns the checks for the parts that the arguments name.
    pub(crate) fn examinations(&self) -> anyhow::Result<Vec<Examination>> {
        let store = self.store.clone();
        let coordinator = match &self.coordinator {
            Some(uri) => Some(Coordinator {
                endpoint: self.tls.endpoint(uri)?,
                version: env!("CARGO_PKG_VERSION"),
            }),
            None => None,
        };
        let cluster = Cluster {
            store: store.map(|location| (location, self.s3.options())),
            certificates: self.tls.dir().map(ToOwned::to_owned),
            coordinator,
        };
        Ok(cluster.examinations())
    }
}
