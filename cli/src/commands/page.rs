//! `hatebeam page`: write web pages for playing the games.

use crate::args::folder_parser;
use crate::output;
use anyhow::Context;
use hatebeam_page::FILES;
use std::fs;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("page"))]
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
