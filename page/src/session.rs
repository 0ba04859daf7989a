//! Requests and answers as JSON.

use crate::answer::{Answer, Failure, failure, json};
use crate::beam::{Beam, BeamStart};
use crate::clears::{self, BestStart, Clears};
use crate::hatetris::{Follow, LoadReplay, Place, Play, Press, Seek, StartGame};
use crate::scores::{EvaluatorName, Scores};
use crate::series::{Many, ManyStart};
use crate::watch::{self, Watch, WatchStart};
use hatebeam_search::Network;
use serde::Deserialize;
use std::sync::Arc;

/// A request. The JSON field `call` contains the name of the variant in kebab case.
#[derive(Deserialize)]
#[serde(tag = "call", rename_all = "kebab-case")]
enum Request {
    /// Starts a game of HATETRIS.
    Start(StartGame),
    /// Presses keys.
    Press(Press),
    /// Moves to a position in the replay.
    Seek(Seek),
    /// Moves back to the beginning of the piece, or of the previous piece if no key has been pressed for this piece.
    Undo,
    /// Places the piece so that a given well results.
    Place(Place),
    /// Loads a replay.
    Load(LoadReplay),
    /// Replaces the rest of the replay with the keys that lead through a list of wells, without pressing them.
    Follow(Follow),
    /// Returns the replay in every encoding.
    Save,
    /// Scores every placement of the current piece.
    Scores(EvaluatorName),
    /// Starts a beam search.
    BeamStart(BeamStart),
    /// Continues the beam search for a number of depths.
    BeamRun { depths: u32 },
    /// Returns the wells of the best game of the beam search.
    BeamPath,
    /// Places a piece in a field of guideline Tetris.
    PcPut(clears::Put),
    /// Finds a perfect clear with a known queue.
    PcSolve(clears::Solve),
    /// Computes the chances of the first moves. [`pc_chance`](hatebeam_agents::json::pc_chance) describes the other
    /// fields.
    PcChance,
    /// Finds the best first move in a position with the fields of `PcChance`. Each better move is a preliminary answer.
    PcBest(BestStart),
    /// Lists the agents and their weights.
    Agents,
    /// Starts a match of agents.
    Watch(WatchStart),
    /// Plays up to `moves` moves for each player of the match.
    WatchMove { moves: u32 },
    /// Starts a series of games.
    Many(ManyStart),
    /// Plays the next games of the series.
    ManyPlay { games: u32 },
}

/// The games and searches of one page or web worker.
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
    /// Answers a request, a JSON object with the field `call`. The answer is an object with the field `value` or
    /// `error`. Calls `preliminary` with the preliminary answers of a long request. A preliminary answer is the JSON of a
    /// value, without the enclosing object.
    pub fn answer(&mut self, request: &str, preliminary: &mut dyn FnMut(&str)) -> String {
        match self.dispatch(request, preliminary) {
            Ok(value) => format!("{{\"value\":{value}}}"),
            Err(error) => failure(&error),
        }
    }

    /// Decodes a network and makes it available as the evaluator `network`. Returns an answer like [`Session::answer`].
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
                let many = self.many.as_mut().ok_or("no series has been started")?;
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
