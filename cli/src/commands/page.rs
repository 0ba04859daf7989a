//! `hatebeam page`: web pages on which the games are played.

use crate::output;
use anyhow::Context;
use std::path::PathBuf;

const HELP: &str = "\
HATETRIS with the enemy's reasons, scores of placements, replays and a beam search; perfect clears with their chances;
matches of agents in Nintendo Tetris and with dropped pieces. Everything runs in the browser. The coordinator's dashboard
serves the same pages under /play/.

Any web server can serve the folder. Browsers do not run the pages from files.

Examples:
  hatebeam page --out games && python3 -m http.server --directory games";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct PageArgs {
    /// Folder for the files, which replace files of the same names. Prints the path of the first page
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl PageArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.out.display();
        hatebeam_page::write_files(&self.out)
            .with_context(|| format!("cannot write the pages to {folder}"))?;
        output::print(format_args!("{folder}/index.html\n"))
    }
}
