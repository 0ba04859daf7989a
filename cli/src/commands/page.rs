//! `hatebeam page`: write web pages for playing the games.

use crate::args::folder_parser;
use crate::output;
use anyhow::Context;
use hatebeam_page::FILES;
use std::fs;
use std::path::PathBuf;

const HELP: &str = "\
With the pages, you can play HATETRIS, see why the enemy chooses each piece, score placements, play replays and run a beam
search. The pages also find perfect clears with their chances, and show matches of agents in Nintendo Tetris and dropped
pieces. All code runs in the browser. The coordinator's dashboard serves the same pages under /play/.

Any web server can serve the folder. The pages do not work if a browser opens them as local files.

Examples:
  hatebeam page --out games && python3 -m http.server --directory games";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct PageArgs {
    /// Folder for the files; existing files with the same names are overwritten
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
    out: PathBuf,
}

impl PageArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let folder = self.out.display();
        self.write()
            .with_context(|| format!("cannot write the pages to {folder}"))?;
        output::print(format_args!("{folder}/index.html\n"))
    }

    /// Replaces each file atomically, because a web server may already serve the folder.
    fn write(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.out)?;
        for file in FILES.iter() {
            output::write_file(&self.out.join(file.name), file.bytes)?;
        }
        Ok(())
    }
}
