//! `hatebeam replay verify`: play a replay by the rules and print its score.

use super::judge::PlayedReplay;
use crate::args::{MatchArgs, ReplayInput};
use crate::input::Replay;
use crate::output::{self, Failure};
use anyhow::bail;
use hatebeam_game::Enemy;
use serde::Serialize;

#[derive(Debug, clap::Args)]
#[command(after_help = help!("replay-verify"))]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    input: ReplayInput,
    #[command(flatten)]
    game: MatchArgs,
    /// Fail unless the replay scores this many lines
    #[arg(long, value_name = "LINES")]
    expect_score: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct VerdictJson {
    valid: bool,
    enemy: &'static str,
    score: u32,
    /// Number of pieces, including the falling piece if the game is not over.
    pieces: usize,
    /// Number of keys up to the end of the game, without ignored keys.
    keys: usize,
    over: bool,
    /// Name of the encoding, or null if the text cannot be decoded.
    encoding: Option<&'static str>,
    /// Number of keys in the replay, including ignored ones.
    keys_given: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl VerdictJson {
    fn of(played: &PlayedReplay, verdict: &anyhow::Result<()>) -> VerdictJson {
        let PlayedReplay { replay, record } = played;
        VerdictJson {
            valid: verdict.is_ok(),
            enemy: record.enemy.name(),
            score: record.score,
            pieces: record.turns.len(),
            keys: record.keys_used,
            over: record.over,
            encoding: Some(replay.encoding.name()),
            keys_given: replay.keys.len(),
            error: verdict.as_ref().err().map(|error| format!("{error:#}")),
        }
    }

    /// Returns the verdict on a text that cannot be decoded as a replay.
    fn unreadable(enemy: Enemy, error: &anyhow::Error) -> VerdictJson {
        VerdictJson {
            valid: false,
            enemy: enemy.name(),
            score: 0,
            pieces: 0,
            keys: 0,
            over: false,
            encoding: None,
            keys_given: 0,
            error: Some(format!("{error:#}")),
        }
    }

    fn print(&self) -> anyhow::Result<()> {
        output::print_json(self)?;
        if self.valid {
            Ok(())
        } else {
            Err(Failure::Printed.into())
        }
    }
}

impl VerifyArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let replay = match Replay::read(&self.input) {
            Err(error) if self.json && !error.is::<Failure>() => {
                return VerdictJson::unreadable(self.game.enemy, &error).print();
            }
            replay => replay?,
        };
        let played = PlayedReplay::play(replay, &self.game)?;
        let judged = played.judge(&self.game);
        let verdict = judged.and_then(|()| self.check_score(played.record.score));
        if verdict.is_ok() {
            played.remark();
        }
        if self.json {
            return VerdictJson::of(&played, &verdict).print();
        }
        verdict?;
        output::print(text(&played))
    }

    fn check_score(&self, score: u32) -> anyhow::Result<()> {
        match self.expect_score {
            Some(expected) if expected != score => {
                bail!("the score is {score}, not the expected {expected}")
            }
            _ => Ok(()),
        }
    }
}

fn text(played: &PlayedReplay) -> String {
    let PlayedReplay { replay, record } = played;
    let (falling, over) = if record.over {
        ("", "yes")
    } else {
        (" (the last one is falling)", "no")
    };
    format!(
        "valid\nencoding   {}\nenemy      {}\nscore      {}\npieces     {}{falling}\n\
         keys       {} of {}\ngame over  {over}\n",
        replay.encoding,
        record.enemy,
        record.score,
        record.turns.len(),
        record.keys_used,
        replay.keys.len(),
    )
}
