//! `hatebeam completions` and `hatebeam man`: generate shell completions and manual pages from the definition of the
//! command line.

use crate::args::folder_parser;
use crate::output;
use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use hatebeam_report::count;
use std::fs;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("completions"))]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = help!("man"))]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to this folder, created if necessary [default: print the page hatebeam(1)]
    #[arg(long, value_name = "DIR", value_parser = folder_parser())]
    out: Option<PathBuf>,
}

impl CompletionsArgs {
    /// Prints the script for the command line that `all` defines.
    pub(crate) fn run(&self, mut all: Command) -> anyhow::Result<()> {
        let mut script = Vec::new();
        let name = all.get_name().to_owned();
        clap_complete::generate(self.shell, &mut all, name, &mut script);
        output::print(String::from_utf8(script).context("the script is not valid UTF-8")?)
    }
}

impl ManArgs {
    /// Prints or writes the pages for the command line that `all` defines.
    pub(crate) fn run(&self, mut all: Command) -> anyhow::Result<()> {
        // `build` gives subcommands their full names.
        all.build();
        let Some(dir) = &self.out else {
            return output::print(page(&all)?);
        };
        fs::create_dir_all(dir)
            .with_context(|| format!("cannot create the folder {}", dir.display()))?;
        let mut written = 0;
        let mut pending = vec![&all];
        while let Some(command) = pending.pop() {
            let path = dir.join(format!("{}.1", title(command)));
            output::write_file(&path, page(command)?.as_bytes())?;
            written += 1;
            pending.extend(command.get_subcommands());
        }
        output::print(format_args!(
            "{} in {}\n",
            count(written, "page"),
            dir.display()
        ))
    }
}

/// Returns the title of a page, such as `hatebeam-runs-show`.
fn title(command: &Command) -> &str {
    let name = command.get_display_name();
    name.unwrap_or_else(|| command.get_name())
}

/// Returns the manual page of a command. The text that `--help` prints below the options becomes the description and the
/// examples.
fn page(command: &Command) -> anyhow::Result<String> {
    let man = Man::new(command.clone())
        .source(concat!("hatebeam ", env!("CARGO_PKG_VERSION")))
        .manual("hatebeam");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let (remarks, examples) = help.split_once("Examples:\n").unwrap_or((&help, ""));
    if !remarks.is_empty() {
        request("PP", &[]).to_writer(&mut page)?;
        paragraphs(remarks).to_writer(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if !examples.is_empty() {
        request("SH", &["EXAMPLES"]).to_writer(&mut page)?;
        paragraphs(examples).to_writer(&mut page)?;
    }
    String::from_utf8(page).context("the page is not valid UTF-8")
}

fn request(name: &str, words: &[&str]) -> Roff {
    let mut roff = Roff::new();
    roff.control(name, words.iter().copied());
    roff
}

/// Converts text to roff paragraphs. Indented lines keep their line breaks.
fn paragraphs(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_literal = false;
    let mut set_literal = |roff: &mut Roff, literal: bool| {
        if literal != is_literal {
            is_literal = literal;
            let requests = if literal { ["RS", "nf"] } else { ["fi", "RE"] };
            for name in requests {
                roff.control(name, []);
            }
        }
    };
    for line in text.lines() {
        set_literal(&mut roff, line.starts_with(' '));
        match line.trim() {
            "" => roff.control("PP", []),
            words => roff.text([roman(words)]),
        };
    }
    set_literal(&mut roff, false);
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_keep_indented_lines_literal() {
        let text = paragraphs("A remark\nof two lines.\n\n  one\n  .two\nEnd.").to_roff();
        let expected = "A remark\nof two lines.\n.PP\n.RS\n.nf\none\n\\&.two\n.fi\n.RE\nEnd.\n";
        assert_eq!(text, expected);
    }
}
