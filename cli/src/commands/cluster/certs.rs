//! `hatebeam certs`: create the certificates and tokens of a cluster.

use crate::args::folder_parser;
use crate::output::{self, Failure};
use anyhow::bail;
use hatebeam_net::certs::{CLIENT, MAX_DAYS, MEMBERS, Made, Options, make};
use hatebeam_report::count;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("certs"))]
pub(crate) struct CertsArgs {
    /// Folder for the files, created if necessary
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
    out: PathBuf,
    /// Validity of the certificates in days; the CA is valid for ten years
    #[arg(long, value_name = "N", default_value_t = 365)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DAYS)))]
    days: u32,
    /// Also make a certificate that is valid only for the worker with this name; can be repeated
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Make new certificates with the existing CA, for each --name of earlier calls too
    #[arg(long)]
    renew: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct CertsJson<'a> {
    dir: &'a Path,
    renewed: bool,
    expires_ms: u64,
    members: &'a [String],
    files: Vec<FileJson<'a>>,
}

#[derive(Debug, Serialize)]
struct FileJson<'a> {
    path: &'a Path,
    private: bool,
}

impl CertsArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        if self.out.as_os_str().is_empty() {
            return Err(Failure::Usage("--out is empty: name a folder".to_owned()).into());
        }
        let mut names = self.names.iter();
        if let Some(name) = names.find(|name| MEMBERS.contains(&name.as_str())) {
            bail!(
                "invalid certificate name '{name}': the certificate of this name is for the role {name}, so give the worker \
                 another name"
            );
        }
        let options = Options {
            dir: &self.out,
            names: &self.names,
            days: self.days,
            renew: self.renew,
        };
        let made = make(&options, SystemTime::now())?;
        for name in &made.skipped {
            output::warn(format_args!("not renewed: {name} (pass --name {name})"));
        }
        if self.json {
            output::print_json(&self.json(&made))
        } else {
            output::print(self.text(&made))
        }
    }

    fn json<'a>(&'a self, made: &'a Made) -> CertsJson<'a> {
        let since_1970 = made.expires.duration_since(UNIX_EPOCH).unwrap_or_default();
        let files = made.files.iter().map(|file| FileJson {
            path: &file.path,
            private: file.private,
        });
        CertsJson {
            dir: &self.out,
            renewed: self.renew,
            expires_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            members: &made.members,
            files: files.collect(),
        }
    }

    fn text(&self, made: &Made) -> String {
        let mut text = String::new();
        for file in &made.files {
            let kind = if file.private { "private" } else { "public" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{kind:<8}  {}", file.path.display());
        }
        let days = count(u64::from(self.days), "day");
        let _ = writeln!(
            text,
            "\nThe certificates are valid for {days}. Copy these files to the machines:"
        );
        let machines = made.members.iter().map(|member| machines_of(member));
        let width = machines.map(|machines| machines.len()).max().unwrap_or(0);
        for member in &made.members {
            let machines = machines_of(member);
            let _ = writeln!(
                text,
                "  {machines:<width$}  ca.pem {member}.pem {member}-key.pem{}",
                note_of(member)
            );
        }
        text.push_str(
            "Keep ca-key.pem secret: anyone who has it can make certificates. No machine of the cluster\n\
             needs it.\n",
        );
        text
    }
}

/// Returns the text after the names of a member's certificate files: the token files that it needs, or the names under which
/// a worker with a certificate of its own reads these files.
fn note_of(member: &str) -> &'static str {
    match member {
        "coordinator" => " token view-token",
        CLIENT => " token, or view-token for read-only access",
        "worker" => "",
        _ => ", renamed to worker.pem and worker-key.pem",
    }
}

/// Describes the machines that use a member's certificate.
fn machines_of(member: &str) -> String {
    match member {
        "worker" | CLIENT => format!("each {member}"),
        other => other.to_owned(),
    }
}
