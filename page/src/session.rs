//! Requests and answers as JSON.

use crate::beam::{Beam, BeamStart};
use crate::clears::{self, BestStart, Clears};
use crate::hatetris::{Append, Follow, LoadReplay, Place, Play, Press, Seek, StartGame};
use crate::scores::{EvaluatorName, Scores};
use crate::series::{Many, ManyStart};
use crate::watch::{self, Watch, WatchStart};
use hatebeam_search::Network;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::sync::Arc;

/// A request. The field `call` has its name.
#[derive(Deserialize)]
#[serde(tag = "call", rename_all = "kebab-case")]
enum Request {
    /// Starts a game of HATETRIS.
    Start(StartGame),
    /// Presses keys.
    Press(Press),
    /// Moves within the keys of the game.
    Seek(Seek),
    /// Returns to the beginning of the piece, or of the piece before.
    Undo,
    /// Locks the piece such that a well results.
    Place(Place),
    /// Loads a replay.
    Load(LoadReplay),
    /// Appends keys that nothing has pressed yet.
    Append(Append),
    /// Appends the keys that lead from well to well.
    Follow(Follow),
    /// Returns the replay in every encoding.
    Save,
    /// Scores every placement of the current piece.
    Scores(EvaluatorName),
    /// Starts a beam.
    BeamStart(BeamStart),
    /// Searches further depths.
    BeamRun { depths: u32 },
    /// Returns the wells of the best game.
    BeamPath,
    /// Places a piece in a field of guideline Tetris.
    PcPut(clears::Put),
    /// Finds a perfect clear of a known queue.
    PcSolve(clears::Solve),
    /// Computes the chances of the first moves. The fields are those of `hatebeam pc chance --json`.
    PcChance,
    /// Finds the best first move of the same position. Each better move that it finds is a preliminary answer.
    PcBest(BestStart),
    /// Lists the agents and their weights.
    Agents,
    /// Starts a match of agents.
    Watch(WatchStart),
    /// Plays moves of the match.
    WatchMove { moves: u32 },
    /// Prepares many games of agents.
    Many(ManyStart),
    /// Plays the next of these games.
    ManyPlay { games: u32 },
}

/// Reason why a request fails.
pub(crate) struct Failure(String);

impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

/// Result of a request: an answer in JSON.
pub(crate) type Answer = Result<String, Failure>;

/// Writes an answer as JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    Ok(serde_json::to_string(value)?)
}

/// Writes an error as JSON.
pub(crate) fn failure(error: &impl Display) -> String {
    let text = serde_json::Value::String(error.to_string());
    format!("{{\"error\":{text}}}")
}

/// The games and searches of one page or worker.
#[derive(Default)]
pub struct Session {
    play: Option<Play>,
    scores: Scores,
    beam: Option<Beam>,
    clears: Clears,
    watch: Option<Watch>,
    many: Option<Many>,
    network: Option<Arc<Network>>,
}

impl Session {
    /// Creates a session without games.
    pub fn new() -> Session {
        Session::default()
    }

    /// Answers a request, a JSON object with the field `call`. The answer is an object with the field `value` or `error`.
    pub fn answer(&mut self, request: &str) -> String {
        self.answer_with(request, &mut |_| ())
    }

    /// Like [`Session::answer`], and calls `preliminary` with preliminary answers of a request that takes long. They are the
    /// JSON of the values, without the object around them.
    pub fn answer_with(&mut self, request: &str, preliminary: &mut dyn FnMut(&str)) -> String {
        match self.dispatch(request, preliminary) {
            Ok(value) => format!("{{\"value\":{value}}}"),
            Err(error) => failure(&error.0),
        }
    }

    /// Makes the network with these bytes available as the evaluator `network`.
    pub fn add_network(&mut self, bytes: &[u8]) -> String {
        match Network::decode(bytes) {
            Ok(network) => {
                self.network = Some(Network::register(network));
                "{\"value\":true}".to_owned()
            }
            Err(error) => failure(&error),
        }
    }

    fn dispatch(&mut self, line: &str, preliminary: &mut dyn FnMut(&str)) -> Answer {
        let network = self.network.as_deref();
        match serde_json::from_str(line)? {
            Request::Start(start) => {
                let play = self.play.insert(Play::new(start.enemy()?));
                json(&play.state())
            }
            Request::Load(load) => {
                let (play, loaded) = Play::load(&load)?;
                self.play = Some(play);
                json(&loaded)
            }
            Request::Press(press) => self.play()?.press(&press),
            Request::Seek(seek) => self.play()?.seek(seek.to),
            Request::Undo => self.play()?.undo(),
            Request::Place(place) => self.play()?.place(&place),
            Request::Append(append) => self.play()?.append(&append),
            Request::Follow(follow) => self.play()?.follow(&follow),
            Request::Save => self.play()?.save(),
            Request::Scores(name) => {
                let play = self.play.as_ref().ok_or("no game has been started")?;
                let spec = name.spec(network)?;
                json(&self.scores.of(play.game(), spec)?)
            }
            Request::BeamStart(start) => {
                let beam = self.beam.insert(Beam::new(&start, network)?);
                json(&beam.progress())
            }
            Request::BeamRun { depths } => {
                let beam = self.beam()?;
                beam.run(depths);
                json(&beam.progress())
            }
            Request::BeamPath => json(&self.beam()?.path()),
            Request::PcPut(put) => put.answer(),
            Request::PcSolve(solve) => solve.answer(),
            Request::PcChance => self.clears.chance(line),
            Request::PcBest(start) => self.clears.best(line, &start, preliminary),
            Request::Agents => json(&watch::agents()),
            Request::Watch(start) => {
                let watch = self.watch.insert(Watch::new(&start)?);
                json(&watch.boards())
            }
            Request::WatchMove { moves } => {
                let watch = self.watch.as_mut().ok_or("no match has been started")?;
                watch.play(moves);
                json(&watch.boards())
            }
            Request::Many(start) => self.many.insert(Many::new(&start)?).play(0),
            Request::ManyPlay { games } => {
                let many = self.many.as_mut().ok_or("no games have been prepared")?;
                many.play(games)
            }
        }
    }

    fn play(&mut self) -> Result<&mut Play, Failure> {
        self.play
            .as_mut()
            .ok_or_else(|| "no game has been started".into())
    }

    fn beam(&mut self) -> Result<&mut Beam, Failure> {
        self.beam
            .as_mut()
            .ok_or_else(|| "no beam has been started".into())
    }
}
