//! `hatebeam doctor`: check this machine and a cluster.

use super::cluster::CheckedClusterArgs;
use crate::output::{self, Failure};
use crate::state::StateArgs;
use hatebeam_doctor::{Check, Verdict, local};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("doctor"))]
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
