//! `hatebeam replay convert`: convert a replay to another format.

use super::judge::PlayedReplay;
use crate::args::{MatchArgs, ReplayInput};
use crate::input::Replay;
use crate::output;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hatebeam_game::{Encoding, Game, decode, encode};
use hatebeam_report::{Film, picture};

#[derive(Debug, clap::Args)]
#[command(after_help = help!("replay-convert"))]
pub(super) struct ConvertArgs {
    #[command(flatten)]
    input: ReplayInput,
    /// Output format: an encoding of the keys, json with every well and piece, or svg for a picture
    #[arg(long, value_name = "FORM", value_parser = form_parser(), ignore_case = true)]
    to: Form,
    #[command(flatten)]
    game: MatchArgs,
}

/// Output format of a converted replay.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// The keys in an encoding.
    Keys(Encoding),
    /// Every well and piece of the game.
    Json,
    /// A picture of the game.
    Svg,
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

impl ConvertArgs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let replay = Replay::read(&self.input)?;
        match self.to {
            Form::Keys(encoding) => rewrite(&replay, encoding),
            Form::Json => output::print_json(&self.film(replay)?),
            Form::Svg => output::print(picture(&self.film(replay)?, "")),
        }
    }

    /// Plays the replay and returns its game as a film: the keys and the well before each piece. Warns if the replay
    /// is invalid.
    fn film(&self, replay: Replay) -> anyhow::Result<Film> {
        let played = PlayedReplay::play(replay, &self.game)?;
        played.warn(&self.game);
        let variant = &self.game.variant;
        let begun = Game::new(variant.geometry()?, variant.rules(), self.game.enemy);
        Ok(Film::of_game(begun, &played.replay.keys)?)
    }
}

fn rewrite(replay: &Replay, to: Encoding) -> anyhow::Result<()> {
    let text = encode(&replay.keys, to);
    if !matches!(decode(&text), Ok((_, encoding)) if encoding == to) {
        output::warn(format_args!(
            "the encoding of a text this short cannot be detected reliably: pass --from {to} when reading it"
        ));
    }
    output::print(format_args!("{text}\n"))
}
