//! `hatebeam demo`: run a small search in a cluster on this machine.

use crate::args::{folder_parser, parse_wells};
use crate::output::{self, Failure};
use hatebeam_demo::{Demo, DemoError, Message};
use hatebeam_host::stop_flag;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("demo"))]
pub(crate) struct DemoArgs {
    /// Width of the beam: the maximum number of wells kept per depth, such as 10000, 10k or 2.5M
    #[arg(long, short, value_name = "WELLS", default_value = "10k", value_parser = parse_wells)]
    width: u64,
    /// Folder for all files, created if necessary [default: a temporary folder]
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
    dir: Option<PathBuf>,
    /// Open the run's dashboard page in a browser
    #[arg(long)]
    open: bool,
    /// Do not offer to play the best game in the terminal
    #[arg(long)]
    no_play: bool,
    /// Exit when the run has ended [default: keep the coordinator running until Ctrl-C]
    #[arg(long)]
    exit: bool,
}

impl DemoArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        if self
            .dir
            .as_ref()
            .is_some_and(|dir| dir.as_os_str().is_empty())
        {
            return Err(Failure::Usage("--dir is empty: name a folder".to_owned()).into());
        }
        let demo = Demo {
            width: self.width,
            dir: self.dir.clone(),
            open: self.open,
            play: !self.no_play,
            stay: !self.exit,
            stop: stop_flag()?,
        };
        match demo.run(&mut report) {
            Err(DemoError::Interrupted) => Err(Failure::Interrupted.into()),
            result => Ok(result?),
        }
    }
}

fn report(message: Message) -> io::Result<()> {
    match message {
        Message::Note(text) => output::note(text),
        Message::Warning(text) => output::warn(text),
        Message::Replay(replay) => {
            let mut out = io::stdout().lock();
            write!(out, "\n{replay}\n")?;
            out.flush()?;
        }
    }
    Ok(())
}
