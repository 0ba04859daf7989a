//! `hatebeam completions` and `hatebeam man`: the command line told to shells and to `man`, both made of
//! its own definition.

use crate::args::Args;
use crate::output;
use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use hatebeam_store::write_whole;
use std::fs;
use std::path::PathBuf;

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
The script goes where the shell looks for such; a new shell then knows all commands and options.

Examples:
  hatebeam completions bash > ~/.local/share/bash-completion/completions/hatebeam
  hatebeam completions zsh > ~/.zfunc/_hatebeam
  hatebeam completions fish > ~/.config/fish/completions/hatebeam.fish";

pub(crate) const MAN_EXAMPLES: &str = "\
Each command has a page of its own: hatebeam-run(1), hatebeam-runs-show(1) …

Examples:
  hatebeam man | man -l -
  hatebeam man --out ~/.local/share/man/man1";

/// The shell to complete for.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Where manual pages go.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this folder, made if it is not there, rather than the first
    /// to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `hatebeam completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::print(&String::from_utf8(script).context("the script is no text")?)
}

/// Runs `hatebeam man`.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<()> {
    let mut all = Args::command();
    // Only now do the commands below know what they are called from above.
    all.build();
    let Some(dir) = &args.out else {
        return output::print(&page(&all)?);
    };
    fs::create_dir_all(dir).with_context(|| format!("the folder {}", dir.display()))?;
    let mut written = 0;
    let mut left = vec![&all];
    while let Some(command) = left.pop() {
        let path = dir.join(format!("{}.1", title(command)));
        write_whole(&path, page(command)?.as_bytes())?;
        written += 1;
        left.extend(command.get_subcommands());
    }
    let written = output::count(written, "page");
    output::print(&format_args!("{written} in {}\n", dir.display()))
}

/// `hatebeam-runs-show`.
fn title(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

/// A page, with what stands below the options in `--help` where readers of manuals look for it.
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
    String::from_utf8(page).context("the page is no text")
}

fn request(name: &str, words: &[&str]) -> Roff {
    let mut roff = Roff::new();
    roff.control(name, words.iter().copied());
    roff
}

/// Running text, but for indented lines, which stay as they are.
fn paragraphs(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut literal = false;
    for line in text.lines() {
        if line.starts_with(' ') != literal {
            literal = !literal;
            let requests: &[&str] = if literal {
                &["RS", "nf"]
            } else {
                &["fi", "RE"]
            };
            for name in requests {
                roff.control(*name, []);
            }
        }
        match line.trim() {
            "" => roff.control("PP", []),
            words => roff.text([roman(words)]),
        };
    }
    if literal {
        roff.control("fi", []);
        roff.control("RE", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let text = paragraphs("A remark\nof two lines.\n\n  one\n  .two\nEnd.").to_roff();
        let expected = "A remark\nof two lines.\n.PP\n.RS\n.nf\none\n\\&.two\n.fi\n.RE\nEnd.\n";
        assert_eq!(text, expected);
    }
}
