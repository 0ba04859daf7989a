//! `hatebeam certs`: what the members of a cluster know each other by.

use crate::output::{self, Failure};
use hatebeam_net::certs::{CLIENT, MAX_DAYS, Made, Options, make};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const CERTS_EXAMPLES: &str = "\
Makes a CA, a certificate and a key for `coordinator`, `worker`, `client` and each further --name,
and a token. Members of a cluster talk to whoever has a certificate of its CA, whatever the address
of the machine: one certificate does for all workers. That of `client` is good for clients only.
Keys and the token can be read by their owner alone. No file that is there is written over.

With --renew the CA and the token stay, and certificates and keys are made in place of the old.
Those stay good until they run out. Nothing is revoked: to shut somebody out, make everything anew
in another folder.

With --json one object: dir, renewed, expires_ms (since 1970), members, files (each with path and
private).

Examples:
  hatebeam certs --out tls
  hatebeam certs --out tls --days 30 --name gpu --name bench
  hatebeam certs --out tls --renew --json";

#[derive(Debug, clap::Args)]
pub(crate) struct CertsArgs {
    /// The folder for the files, made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Days that the certificates are valid (the CA: ten years)
    #[arg(long, value_name = "N", default_value_t = 365)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DAYS)))]
    days: u32,
    /// Make a certificate of this name too, one that servers and clients can have; may be repeated
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Make new certificates with the CA that is there
    #[arg(long)]
    renew: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    dir: &'a Path,
    renewed: bool,
    expires_ms: u64,
    members: &'a [String],
    files: Vec<ReportFile<'a>>,
}

#[derive(Debug, Serialize)]
struct ReportFile<'a> {
    path: &'a Path,
    private: bool,
}

/// Runs `hatebeam certs`.
pub(crate) fn certs(args: &CertsArgs) -> anyhow::Result<()> {
    if args.out.as_os_str().is_empty() {
        return Err(Failure::Usage("--out names no folder".to_owned()).into());
    }
    let options = Options {
        dir: &args.out,
        names: &args.names,
        days: args.days,
        renew: args.renew,
    };
    let made = make(&options, SystemTime::now())?;
    if args.json {
        let report = serde_json::to_string(&report(args, &made))?;
        output::print(&format_args!("{report}\n"))
    } else {
        output::print(&text(args, &made))
    }
}

fn report<'a>(args: &'a CertsArgs, made: &'a Made) -> Report<'a> {
    let since_1970 = made.expires.duration_since(UNIX_EPOCH).unwrap_or_default();
    Report {
        dir: &args.out,
        renewed: args.renew,
        expires_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
        members: &made.members,
        files: made
            .files
            .iter()
            .map(|file| ReportFile {
                path: &file.path,
                private: file.private,
            })
            .collect(),
    }
}

fn text(args: &CertsArgs, made: &Made) -> String {
    let mut text = String::new();
    for file in &made.files {
        let kind = if file.private { "private" } else { "public" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{kind:<8}  {}", file.path.display());
    }
    let days = output::count(args.days as usize, "day");
    let _ = writeln!(text, "\nThe certificates are valid for {days}. Give");
    let whos = made.members.iter().map(|member| who(member));
    let width = whos.map(|who| who.len()).max().unwrap_or(0);
    for member in &made.members {
        let who = who(member);
        let _ = writeln!(
            text,
            "  {who:<width$}  ca.pem {member}.pem {member}-key.pem token"
        );
    }
    text.push_str(
        "Keep ca-key.pem to yourself: who has it can make certificates, and no machine of the\n\
         cluster needs it, neither the workers nor the coordinator.\n",
    );
    text
}

fn who(member: &str) -> String {
    match member {
        "coordinator" => "coordinator".to_owned(),
        "worker" | CLIENT => format!("each {member}"),
        other => other.to_owned(),
    }
}
