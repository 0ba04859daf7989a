//! `hatebeam replay`: verify, convert and show replays.

mod convert;
mod judge;
mod show;
mod verify;

use clap::Subcommand;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("replay"), arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    command: ReplayCommand,
}

#[derive(Debug, Subcommand)]
enum ReplayCommand {
    /// Play a replay by the rules and print its score
    Verify(verify::VerifyArgs),
    /// Convert a replay to another encoding, to JSON with every well, or to a picture
    Convert(convert::ConvertArgs),
    /// Play a replay in the terminal
    Show(show::ShowArgs),
}

impl ReplayArgs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.command {
            ReplayCommand::Verify(args) => args.run(),
            ReplayCommand::Convert(args) => args.run(),
            ReplayCommand::Show(args) => args.run(),
        }
    }
}
