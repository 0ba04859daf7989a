//! The command line: every command, every option, and what `--help` says of it.

#[cfg(feature = "cluster")]
use crate::certs::{CERTS_EXAMPLES, CertsArgs};
#[cfg(feature = "cluster")]
use crate::cluster::{CANCEL_EXAMPLES, DRAIN_EXAMPLES, LIMIT_EXAMPLES, LimitArgs, WAIT_EXAMPLES};
#[cfg(feature = "cluster")]
use crate::cluster::{
    COORDINATOR_EXAMPLES, CancelArgs, CoordinatorArgs, DrainArgs, REPLAYS_EXAMPLES, ReplaysArgs,
    STATUS_EXAMPLES, SUBMIT_EXAMPLES, StatusArgs, SubmitArgs, WATCH_EXAMPLES, WORKER_EXAMPLES,
    WaitArgs, WatchArgs, WorkerArgs,
};
use crate::config::{CONFIG_EXAMPLES, ConfigArgs};
#[cfg(feature = "cluster")]
use crate::demo::{DEMO_EXAMPLES, DemoArgs};
use crate::doctor::{DOCTOR_EXAMPLES, DoctorArgs};
use crate::endgame::{ENDGAME_EXAMPLES, EndgameArgs};
use crate::keyframes::{KEYFRAMES_EXAMPLES, KeyframesArgs};
use crate::manual::{COMPLETIONS_EXAMPLES, CompletionsArgs, MAN_EXAMPLES, ManArgs};
#[cfg(feature = "cluster")]
use crate::plan::{PLAN_EXAMPLES, PlanArgs};
use crate::run::{RESUME_EXAMPLES, RUN_EXAMPLES, ResumeArgs, RunArgs};
use crate::runs::{RUNS_EXAMPLES, RunsArgs};
use crate::solve::{SOLVE_EXAMPLES, SolveArgs};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use hatebeam_game::{Encoding, Enemy, Geometry, Rules};
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  hatebeam demo
  hatebeam doctor
  hatebeam run --width 100k
  hatebeam runs report patterns-100000
  hatebeam keyframes patterns-100000 --replay
  hatebeam replay show --file game.txt
  hatebeam plan --width 25M --count 1..64
  hatebeam solve --width 10 --height 6

Exit codes: 0 done, 1 the input is bad (for `replay verify`: the replay is not valid) or something
failed, 2 the command line is wrong, 130 interrupted.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  hatebeam replay verify --file game.txt
  hatebeam replay convert --to raw --file game.txt
  hatebeam replay show --file game.txt";

const VERIFY_EXAMPLES: &str = "\
A replay is valid if it can be read and makes sense as a game against the enemy. Keys after the
game's end are ignored, with a warning. A game that is not over is valid too if it stops between two
pieces, and this is said; a replay that stops in the middle of a piece is taken to be truncated.
(Up to two keys into a piece are let pass: encodings pad.) A replay that makes sense only against
another enemy is not valid, and it is said at which piece the two games part.

Examples:
  hatebeam replay verify --file game.txt
  hatebeam replay verify --enemy mild --expect-score 165 --file loop.txt
  hatebeam replay verify --json - < game.txt";

const CONVERT_EXAMPLES: &str = "\
Hex and the two bases hold whole pairs only: an odd key or run is followed by one more key (D in hex,
L in the bases), which a game that is over ignores.

As json or svg it is the game that is written, played as --enemy, --width, --height and --clear-above-bar say.

Examples:
  hatebeam replay convert --to raw --file game.txt
  hatebeam replay convert --to svg --file game.txt > game.svg
  echo DDDDDDRDDLD | hatebeam replay convert --to base2048";

const SHOW_EXAMPLES: &str = "\
Keys: space pauses; right and left (n and p) go to the next and the previous piece, . and , one key
on and back; + and - change the speed; g and a number jump to a piece, home and end to the start and
the end; q quits.

Where the output is no terminal, the wells are written out as text. NO_COLOR is respected.

Examples:
  hatebeam replay show --file game.txt
  hatebeam replay show --well 57 --file game.txt
  hatebeam replay show --every 10 --file game.txt | less";

const WELL_EXAMPLES: &str = "\
A well is its rows below the bar from the top down as hex digits, three a row at 10 columns, bit 0
the leftmost column. The piece is the one that HATETRIS gives to a well it has no memory of.

With --json each well makes one line: {\"well\":\"...\",\"piece\":\"S\",\"children\":[...],\"can_die\":false};
the children are sorted, with \"+n\" where n lines were cleared. The first bad line ends the run.

Examples:
  hatebeam well 00000000000000000000000000000000000000000001800c
  hatebeam well --height 4 00000000000c
  hatebeam well --json < wells.txt";

const PERFT_EXAMPLES: &str = "\
Counts the distinct (well, score) pairs of live wells after each number of pieces, from the empty
well and under HATETRIS Mild (which gives what HATETRIS gives until a well comes back).

Examples:
  hatebeam perft --depth 6
  hatebeam perft --depth 12 --height 4 --json";

/// Beam search for HATETRIS records.
#[derive(Debug, Parser)]
#[command(name = "hatebeam", bin_name = "hatebeam", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    // Not a variable of clap's: a command that shows its help when it is told nothing would be told something.
    /// Take what is not said from this TOML file; none for no file [default: HATEBEAM_CONFIG, or
    /// ~/.config/hatebeam/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a small search on this machine, as it is on many: coordinator, workers, replay
    #[cfg(feature = "cluster")]
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Find out what may stand in a search's way on this machine
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Search for a game by beam search, and go on with a search that was interrupted
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Go on with a run by its name
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(ResumeArgs),
    /// Read a game back from a run, by look-ups
    #[command(after_help = KEYFRAMES_EXAMPLES)]
    Keyframes(KeyframesArgs),
    /// List, show, report and remove runs
    #[command(after_help = RUNS_EXAMPLES, disable_help_subcommand = true)]
    Runs(RunsArgs),
    /// Tell what a search on many machines would take: time, dollars, and what limits it
    #[cfg(feature = "cluster")]
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Make the certificates and the token of a cluster
    #[cfg(feature = "cluster")]
    #[command(after_help = CERTS_EXAMPLES)]
    Certs(CertsArgs),
    /// Coordinate a search over many machines
    #[cfg(feature = "cluster")]
    #[command(after_help = COORDINATOR_EXAMPLES)]
    Coordinator(CoordinatorArgs),
    /// Work for a coordinator
    #[cfg(feature = "cluster")]
    #[command(after_help = WORKER_EXAMPLES)]
    Worker(WorkerArgs),
    /// Have a coordinator search a run
    #[cfg(feature = "cluster")]
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(SubmitArgs),
    /// Tell how a coordinator's runs and workers stand
    #[cfg(feature = "cluster")]
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Watch a coordinator's run to its end
    #[cfg(feature = "cluster")]
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Wait for a coordinator's run to end
    #[cfg(feature = "cluster")]
    #[command(after_help = WAIT_EXAMPLES)]
    Wait(WaitArgs),
    /// Give a coordinator's run another budget, or none
    #[cfg(feature = "cluster")]
    #[command(after_help = LIMIT_EXAMPLES)]
    Limit(LimitArgs),
    /// Stop a coordinator's run; what is committed stays
    #[cfg(feature = "cluster")]
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(CancelArgs),
    /// Have a worker hand over its shards and go
    #[cfg(feature = "cluster")]
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainArgs),
    /// List and bring home replays from the object store
    #[cfg(feature = "cluster")]
    #[command(after_help = REPLAYS_EXAMPLES, disable_help_subcommand = true)]
    Replays(ReplaysArgs),
    /// Search the whole game tree of a small well
    #[command(after_help = SOLVE_EXAMPLES)]
    Solve(SolveArgs),
    /// Search the last moves of a game to the end
    #[command(after_help = ENDGAME_EXAMPLES)]
    Endgame(EndgameArgs),
    /// Verify, convert and show replays
    #[command(after_help = REPLAY_EXAMPLES)]
    #[command(arg_required_else_help = true, disable_help_subcommand = true)]
    Replay {
        #[command(subcommand)]
        command: ReplayCommand,
    },
    /// Tell all about a well: picture, piece, children, parents
    #[command(after_help = WELL_EXAMPLES)]
    Well(WellArgs),
    /// Count wells by number of pieces
    #[command(after_help = PERFT_EXAMPLES)]
    Perft(PerftArgs),
    /// Check, show and begin the configuration file
    #[command(after_help = CONFIG_EXAMPLES)]
    #[command(arg_required_else_help = true, disable_help_subcommand = true)]
    Config(ConfigArgs),
    /// Print the script that completes commands in a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Play a replay by the rules and tell what it comes to
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Write a replay in another encoding, as JSON with every well, or as a picture
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Watch a replay in the terminal
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
}

/// Where a replay comes from.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayInput {
    /// The replay in any encoding; `-` or nothing reads standard input
    #[arg(value_name = "REPLAY", conflicts_with = "file")]
    pub(crate) replay: Option<String>,
    /// Read the replay from this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Take the replay to be in this encoding, rather than find out
    #[arg(long, value_name = "ENCODING", value_parser = encoding_parser(), ignore_case = true)]
    pub(crate) from: Option<Encoding>,
}

/// What is played, and against whom.
#[derive(Debug, clap::Args)]
pub(crate) struct MatchArgs {
    /// Who chose the pieces
    #[arg(long, value_name = "ENEMY", default_value = Enemy::Hatetris.name())]
    #[arg(value_parser = enemy_parser(), ignore_case = true)]
    pub(crate) enemy: Enemy,
    #[command(flatten)]
    pub(crate) variant: VariantArgs,
}

/// The size of the well, and the rules.
#[derive(Debug, clap::Args)]
pub(crate) struct VariantArgs {
    /// Columns of the well, 4 to 16
    #[arg(long, value_name = "W", default_value = "10", value_parser = parse_width)]
    width: usize,
    /// Rows of the well below the bar, 1 to 16
    #[arg(long, value_name = "H", default_value = "16", value_parser = parse_height)]
    height: usize,
    /// Clear full rows even where the piece reaches above the bar, as an emulator of 2022 did
    #[arg(long)]
    clear_above_bar: bool,
}

impl VariantArgs {
    pub(crate) fn geometry(&self) -> anyhow::Result<Geometry> {
        Ok(Geometry::new(self.width, self.height)?)
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            clear_above_bar: self.clear_above_bar,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) input: ReplayInput,
    #[command(flatten)]
    pub(crate) game: MatchArgs,
    /// The replay is not valid unless it scores this many lines
    #[arg(long, value_name = "LINES")]
    pub(crate) expect_score: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) input: ReplayInput,
    /// What to write: the keys in an encoding, json with every well and piece, or svg, which is a picture
    #[arg(long, value_name = "FORM", value_parser = form_parser(), ignore_case = true)]
    pub(crate) to: Form,
    #[command(flatten)]
    pub(crate) game: MatchArgs,
}

/// What a replay can be written as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Its keys.
    Keys(Encoding),
    /// Every well and piece of the game.
    Json,
    /// A picture of the game.
    Svg,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) input: ReplayInput,
    #[command(flatten)]
    pub(crate) game: MatchArgs,
    /// Print well number N as text: the one that piece N comes into
    #[arg(long, value_name = "N", conflicts_with = "every")]
    pub(crate) well: Option<NonZeroUsize>,
    /// Print every Nth well as text, and the last
    #[arg(long, value_name = "N")]
    pub(crate) every: Option<NonZeroUsize>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WellArgs {
    /// The well in hex, 48 digits at 10x16; `-` or nothing reads wells from standard input, one a line
    #[arg(value_name = "HEX")]
    pub(crate) well: Option<String>,
    #[command(flatten)]
    pub(crate) variant: VariantArgs,
    /// Print a line of JSON for each well: piece and children
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PerftArgs {
    /// The number of pieces to count to, at most 1000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) depth: u32,
    #[command(flatten)]
    pub(crate) variant: VariantArgs,
    /// Memory to use at most, in MiB; the count stops with an error where it does not suffice
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
    pub(crate) memory: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn enemy_parser() -> impl TypedValueParser<Value = Enemy> {
    PossibleValuesParser::new(Enemy::ALL.map(Enemy::name)).try_map(|name| name.parse::<Enemy>())
}

fn encoding_parser() -> impl TypedValueParser<Value = Encoding> {
    PossibleValuesParser::new(Encoding::ALL.map(Encoding::name))
        .try_map(|name| name.parse::<Encoding>())
}

fn form_parser() -> impl TypedValueParser<Value = Form> {
    let names = Encoding::ALL.map(Encoding::name).into_iter();
    PossibleValuesParser::new(names.chain(["json", "svg"])).try_map(|name| {
        match name.to_ascii_lowercase().as_str() {
            "json" => Ok(Form::Json),
            "svg" => Ok(Form::Svg),
            name => name.parse().map(Form::Keys),
        }
    })
}

fn parse_width(text: &str) -> anyhow::Result<usize> {
    Ok(Geometry::new(text.parse()?, Geometry::STANDARD.height())?.width())
}

fn parse_height(text: &str) -> anyhow::Result<usize> {
    Ok(Geometry::new(Geometry::STANDARD.width(), text.parse()?)?.height())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    /// All commands, with what they are called from above.
    #[cfg(feature = "cluster")]
    fn commands() -> Vec<(String, clap::Command)> {
        let mut found = Vec::new();
        let mut left = vec![("hatebeam".to_owned(), Args::command())];
        while let Some((name, command)) = left.pop() {
            for below in command.get_subcommands() {
                left.push((format!("{name} {}", below.get_name()), below.clone()));
            }
            found.push((name, command));
        }
        found
    }

    /// The words of a line for a shell.
    #[cfg(feature = "cluster")]
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for letter in line.chars() {
            match (quote, letter) {
                (Some(open), letter) if letter == open => quote = None,
                (None, '\'' | '"') => quote = Some(letter),
                (None, ' ') => words.push(std::mem::take(&mut word)),
                (_, letter) => word.push(letter),
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    /// What of a line for a shell is ours: without what is piped, and without redirections.
    #[cfg(feature = "cluster")]
    fn own_words(line: &str) -> Vec<String> {
        let words = words(line);
        let mut parts = words.split(|word| word == "|" || word == "&&");
        let ours = |part: &&[String]| part.first().is_some_and(|word| word == "hatebeam");
        let part = parts.find(ours).unwrap_or_default();
        let is_ours = |word: &&String| !matches!(word.as_str(), "<" | ">" | ">>");
        part.iter().take_while(is_ours).cloned().collect()
    }

    /// Some speak of what is not there without the feature.
    #[cfg(feature = "cluster")]
    #[test]
    fn every_help_has_examples_that_are_right() {
        for (name, command) in commands() {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let (_, examples) = help
                .split_once("Examples:\n")
                .unwrap_or_else(|| panic!("{name} has no examples"));
            assert!(examples.contains(&name), "{name}: {examples}");
            // Those in the text before count as well.
            let lines = help.lines().filter(|line| line.starts_with("  "));
            for line in lines.filter(|line| line.contains("hatebeam ")) {
                let parsed = Args::try_parse_from(own_words(line));
                assert!(parsed.is_ok(), "{name}: {line}: {}", parsed.unwrap_err());
            }
        }
    }
}
