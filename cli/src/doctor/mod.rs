//! `hatebeam doctor`: what may stand in a search's way, found out before it does.

mod check;
#[cfg(feature = "s3")]
mod cloud;
#[cfg(feature = "cluster")]
mod cluster;
mod knock;
mod machine;
mod ports;

use crate::output::{self, Failure};
use crate::state::StateArgs;
use check::{Check, Verdict, within};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const DOCTOR_EXAMPLES: &str = "\
A line for each thing that was looked at: ok, warning or failed, and what to do. The exit code is 1 if
something failed; a warning is no failure. Each check has a time after which it has failed. EventKind is written to
disk and object store for this is a few tens of megabytes, and removed.

Without options it looks at this machine, as `hatebeam run` would use it. An object store, a coordinator and
certificates are looked at where the command line, the environment or the configuration file names them.

With --json one object: ok, checks (each with check, verdict, found, and advice where there is some).

Examples:
  hatebeam doctor
  hatebeam doctor --dir /mnt/nvme --json
  hatebeam doctor --store s3://bucket/hatebeam
  hatebeam doctor --coordinator https://10.0.0.1:7800 --tls tls";

/// What to look at.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The folder whose disk is meant, such as a worker's [default: that of --state]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: cluster::ClusterArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

/// Runs `hatebeam doctor`.
pub(crate) fn doctor(args: &DoctorArgs) -> anyhow::Result<()> {
    let dir = match &args.dir {
        Some(dir) if dir.as_os_str().is_empty() => {
            return Err(Failure::Usage("--dir names no folder".to_owned()).into());
        }
        Some(dir) => std::path::absolute(dir)?,
        None => args.state.state()?.root().to_owned(),
    };
    let mut checks = Vec::new();
    let mut tell = |found: Vec<Check>| -> anyhow::Result<()> {
        if !args.json {
            found
                .iter()
                .try_for_each(|check| output::print(&format_args!("{check}\n")))?;
        }
        checks.extend(found);
        Ok(())
    };
    tell(vec![machine::processor(), machine::memory()])?;
    tell(machine::open_files().into_iter().collect())?;
    tell(within("disk", Duration::from_secs(30), move || {
        machine::disk(&dir)
    }))?;
    tell(within("ports", Duration::from_secs(15), ports::ports))?;
    #[cfg(feature = "s3")]
    tell(within("machine", Duration::from_secs(10), cloud::machine))?;
    #[cfg(feature = "cluster")]
    cluster::look(&args.cluster, &mut tell)?;
    let ok = checks.iter().all(|check| check.verdict != Verdict::Failed);
    if args.json {
        let report = serde_json::to_string(&Report { ok, checks })?;
        output::print(&format_args!("{report}\n"))?;
    }
    match ok {
        true => Ok(()),
        false => Err(Failure::Printed.into()),
    }
}
