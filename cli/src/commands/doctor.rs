//! `hatebeam doctor`: check this machine and a cluster.

use super::cluster::CheckedClusterArgs;
use crate::output::{self, Failure};
use crate::state::StateArgs;
use hatebeam_doctor::{Check, Verdict, local};
use serde::Serialize;
use std::path::PathBuf;

const HELP: &str = "\
Prints one line per check: its verdict (ok, warning or failed), what was found, and a remedy. The exit code is 1 if a check
failed; warnings do not change it. Each check has a time limit. The checks write some tens of megabytes to the disk and to
the object store, and remove them afterwards.

Without options, checks whether this machine is ready for `hatebeam run`. Also checks an object store, a coordinator and
certificates if the command line, the environment or the configuration file names them.

With --json, prints one object with ok and checks (each with check, verdict, found, and advice if there is any).

Examples:
  hatebeam doctor
  hatebeam doctor --dir /mnt/nvme --json
  hatebeam doctor --store s3://bucket/hatebeam
  hatebeam doctor --coordinator https://10.0.0.1:7800 --tls tls";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    /// Folder whose disk to check, such as a worker's scratch directory [default: the folder of --state]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    cluster: CheckedClusterArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct ChecksJson {
    ok: bool,
    checks: Vec<Check>,
}

impl DoctorArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let dir = match &self.dir {
            Some(dir) if dir.as_os_str().is_empty() => {
                return Err(Failure::Usage("--dir is empty: name a folder".to_owned()).into());
            }
            Some(dir) => std::path::absolute(dir)?,
            None => self.state.state()?.root().to_owned(),
        };
        let mut examinations = local(dir);
        examinations.extend(self.cluster.examinations()?);
        let mut checks = Vec::new();
        for examination in examinations {
            let found = examination.run();
            if !self.json {
                found
                    .iter()
                    .try_for_each(|check| output::print(format_args!("{check}\n")))?;
            }
            checks.extend(found);
        }
        let ok = checks.iter().all(|check| check.verdict != Verdict::Failed);
        if self.json {
            output::print_json(&ChecksJson { ok, checks })?;
        }
        if ok {
            Ok(())
        } else {
            Err(Failure::Printed.into())
        }
    }
}
