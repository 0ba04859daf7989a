//! Matches in which agents play dropped pieces or Nintendo Tetris with the same pieces.

use crate::answer::Failure;
use hatebeam_agents::drop::{AGENTS, Agent, DropPlay, DropRun, find_agent};
use hatebeam_agents::nes::{GameRules, Play, SEARCHES, Search, find_search};
use hatebeam_tetris::drop::{Action, DropGame, GeneratorKind, PieceSet};
use hatebeam_tetris::nes::{ArticleSets, Cartridge, Transitions, shape};
use hatebeam_tetris::{Piece, Rng};
use serde::{Deserialize, Serialize};

/// Number of pieces that the cartridge's generator provides for a game of Nintendo Tetris.
const CARTRIDGE_PIECES: usize = 2000;
/// Number of columns of each board.
const WIDTH: usize = 10;

/// An agent that a page offers.
#[derive(Serialize)]
pub(crate) struct AgentInfo {
    game: &'static str,
    name: &'static str,
    description: &'static str,
    /// Names and values of the weights that can be changed.
    weights: Vec<(&'static str, f64)>,
}

pub(crate) fn agents() -> Vec<AgentInfo> {
    let named = |names: &[&'static str], values: &[f64]| {
        names.iter().copied().zip(values.iter().copied()).collect()
    };
    let drop = AGENTS.iter().map(|agent| AgentInfo {
        game: "drop",
        name: agent.name,
        description: agent.description,
        weights: named(agent.weight_names, agent.weights),
    });
    let nes = SEARCHES.iter().map(|search| AgentInfo {
        game: "nes",
        name: search.name,
        description: search.description,
        weights: named(search.weight_names, search.weights),
    });
    drop.chain(nes).collect()
}

#[derive(Deserialize)]
pub(crate) struct WatchStart {
    /// `drop` or `nes`.
    pub(crate) game: String,
    pub(crate) seed: u32,
    /// `uniform` or `bag` for dropped pieces. For Nintendo Tetris, `article` (the piece sets for which an article
    /// published results) or `cartridge` (the generator of the original cartridge).
    pub(crate) generator: String,
    /// Set of dropped pieces: `standard` (the default) or `small`.
    #[serde(default)]
    pieces: Option<String>,
    pub(crate) players: Vec<PlayerStart>,
}

#[derive(Deserialize)]
pub(crate) struct PlayerStart {
    pub(crate) agent: String,
    /// Weights of the agent, or an empty list for the published weights.
    #[serde(default)]
    weights: Vec<f64>,
}

/// State of one player's game in a match.
#[derive(Serialize)]
pub(crate) struct BoardState {
    /// The 20 rows from top to bottom. The lowest bit of a row is column 0.
    rows: Vec<u16>,
    /// Name of the current piece.
    piece: String,
    /// Name of the next piece.
    next: String,
    /// Cells of the last placed piece as column and row from the top, before full rows were removed.
    last: Vec<(i32, i32)>,
    /// Name of the last placed piece.
    last_piece: String,
    lines: u64,
    /// Points in Nintendo Tetris; rows cleared in games of dropped pieces.
    score: u64,
    pieces: u64,
    /// Level in Nintendo Tetris; `None` in games of dropped pieces.
    level: Option<u32>,
    over: bool,
    /// Whether the game of Nintendo Tetris ended because enough rows were cleared.
    complete: bool,
}

pub(crate) struct Watch {
    players: Vec<Box<dyn Player>>,
}

trait Player {
    /// Plays a move, unless the game is over.
    fn play(&mut self);
    fn board(&self) -> BoardState;
}

impl Watch {
    pub(crate) fn new(start: &WatchStart) -> Result<Watch, Failure> {
        let players: Result<Vec<_>, Failure> = match start.game.as_str() {
            "drop" => {
                let run = drop_run(start)?;
                let player = |player: &PlayerStart| -> Result<Box<dyn Player>, Failure> {
                    Ok(Box::new(DropPlayer::new(&run, drop_agent(player)?)))
                };
                start.players.iter().map(player).collect()
            }
            "nes" => {
                let mut sets = NesSets::new(start)?;
                let (pieces, rules) = (sets.game(), sets.rules());
                let player = |player: &PlayerStart| -> Result<Box<dyn Player>, Failure> {
                    Ok(Box::new(NesPlayer::new(
                        &pieces,
                        &rules,
                        nes_search(player)?,
                    )))
                };
                start.players.iter().map(player).collect()
            }
            other => return Err(format!("unknown game {other:?}").into()),
        };
        Ok(Watch { players: players? })
    }

    /// Plays up to `moves` moves for each player.
    pub(crate) fn play(&mut self, moves: u32) {
        for player in &mut self.players {
            for _ in 0..moves {
                player.play();
            }
        }
    }

    pub(crate) fn boards(&self) -> Vec<BoardState> {
        self.players.iter().map(|player| player.board()).collect()
    }
}

pub(crate) fn drop_run(start: &WatchStart) -> Result<DropRun, Failure> {
    let set = start.pieces.as_deref().unwrap_or("standard");
    let set = PieceSet::built_in(set).ok_or_else(|| format!("unknown set of pieces {set:?}"))?;
    Ok(DropRun {
        game: DropGame::new(WIDTH, 20, set)?,
        generator: match start.generator.as_str() {
            "uniform" => GeneratorKind::Uniform,
            "bag" => GeneratorKind::Bag,
            other => return Err(format!("unknown generator {other:?}").into()),
        },
        seed: start.seed.into(),
        previews: 1,
        most_pieces: u64::MAX,
    })
}

/// The pieces of successive games of Nintendo Tetris.
pub(crate) enum NesSets {
    Article(Box<ArticleSets>),
    Cartridge { seed: u32 },
}

impl NesSets {
    pub(crate) fn new(start: &WatchStart) -> Result<NesSets, Failure> {
        match start.generator.as_str() {
            "article" => Ok(NesSets::Article(Box::new(ArticleSets::new(start.seed)))),
            "cartridge" => Ok(NesSets::Cartridge { seed: start.seed }),
            other => Err(format!("unknown generator {other:?}").into()),
        }
    }

    /// Returns the rules of the games.
    pub(crate) fn rules(&self) -> GameRules {
        GameRules {
            transitions: match self {
                NesSets::Article(_) => Transitions::ARTICLE,
                NesSets::Cartridge { .. } => Transitions::CARTRIDGE,
            },
            ..GameRules::ARTICLE
        }
    }

    /// Returns the pieces of the next game.
    pub(crate) fn game(&mut self) -> Vec<Piece> {
        match self {
            NesSets::Article(sets) => sets.game(),
            NesSets::Cartridge { seed } => {
                let number = u64::from(*seed);
                *seed = seed.wrapping_add(1);
                let mut rng = Rng::stream(number, 0);
                Cartridge::from_seed(number).game(CARTRIDGE_PIECES, None, &mut rng)
            }
        }
    }
}

/// Returns `given`, or the published weights if `given` is empty.
fn weights<'a>(given: &'a [f64], published: &'a [f64]) -> Result<&'a [f64], Failure> {
    match given.len() {
        0 => Ok(published),
        count if count == published.len() => Ok(given),
        count => Err(format!("the agent has {} weights, not {count}", published.len()).into()),
    }
}

pub(crate) fn drop_agent(player: &PlayerStart) -> Result<Box<dyn Agent>, Failure> {
    let agent = find_agent(&player.agent)?;
    Ok(agent.with_weights(weights(&player.weights, agent.weights)?))
}

pub(crate) fn nes_search(player: &PlayerStart) -> Result<Box<dyn Search>, Failure> {
    let search = find_search(&player.agent)?;
    let weights = weights(&player.weights, search.weights)?;
    Ok(search.with_weights(GameRules::ARTICLE.rows, None, weights))
}

struct DropPlayer {
    game: DropGame,
    play: DropPlay,
    agent: Box<dyn Agent>,
    last: Vec<(i32, i32)>,
    last_piece: String,
}

impl DropPlayer {
    fn new(run: &DropRun, agent: Box<dyn Agent>) -> DropPlayer {
        DropPlayer {
            game: run.game.clone(),
            play: DropPlay::new(run, 0),
            agent,
            last: Vec::new(),
            last_piece: String::new(),
        }
    }

    fn name(&self, piece: usize) -> String {
        self.game.set().piece(piece).name().to_owned()
    }
}

impl Player for DropPlayer {
    fn play(&mut self) {
        let (piece, before) = (self.play.current(), *self.play.field());
        if let Some(action) = self.play.step(&self.game, self.agent.as_mut()) {
            let row = self.game.drop(&before, piece, action).landing_row;
            self.last = drop_cells(&self.game, piece, action, row);
            self.last_piece = self.name(piece);
        }
    }

    fn board(&self) -> BoardState {
        let (result, field) = (self.play.result(), self.play.field());
        let row =
            |y| (0..field.width()).fold(0, |row, x| row | u16::from(field.is_filled(x, y)) << x);
        BoardState {
            rows: (0..field.height()).rev().map(row).collect(),
            piece: self.name(self.play.current()),
            next: self.name(self.play.next()),
            last: self.last.clone(),
            last_piece: self.last_piece.clone(),
            lines: result.lines,
            score: result.lines,
            pieces: result.pieces,
            level: None,
            over: result.lost,
            complete: false,
        }
    }
}

/// Returns the cells of a dropped piece whose lowest row is `row`.
fn drop_cells(game: &DropGame, piece: usize, action: Action, row: u8) -> Vec<(i32, i32)> {
    let turned = &game.set().piece(piece).rotations()[usize::from(action.rotation)];
    let top = game.empty().height() as i32 - 1;
    let mut cells = Vec::new();
    for (dx, &column) in turned.columns().iter().enumerate() {
        for dy in (0..8).filter(|dy| column >> dy & 1 == 1) {
            cells.push((
                i32::from(action.column) + dx as i32,
                top - i32::from(row) - dy,
            ));
        }
    }
    cells
}

struct NesPlayer {
    pieces: Vec<Piece>,
    play: Play,
    search: Box<dyn Search>,
    last: Vec<(i32, i32)>,
    last_piece: String,
    over: bool,
}

impl NesPlayer {
    fn new(pieces: &[Piece], rules: &GameRules, search: Box<dyn Search>) -> NesPlayer {
        NesPlayer {
            pieces: pieces.to_vec(),
            play: Play::new(rules),
            search,
            last: Vec::new(),
            last_piece: String::new(),
            over: false,
        }
    }

    fn known(&self) -> Option<(Piece, Piece)> {
        let at = self.play.result().moves as usize;
        Some((*self.pieces.get(at)?, *self.pieces.get(at + 1)?))
    }
}

impl Player for NesPlayer {
    fn play(&mut self) {
        let step = self.known().and_then(|(piece, next)| {
            let placement = self.play.step(self.search.as_mut(), piece, next)?;
            Some((piece, placement))
        });
        let Some((piece, placement)) = step else {
            self.over = true;
            return;
        };
        let cell =
            |&(dx, dy): &(i8, i8)| (i32::from(placement.x + dx), i32::from(placement.y + dy));
        self.last = shape(piece, placement.orientation)
            .iter()
            .map(cell)
            .collect();
        self.last_piece = piece.letter().to_string();
    }

    fn board(&self) -> BoardState {
        let (result, board) = (self.play.result(), self.play.board());
        let row = |y| (0..WIDTH).fold(0, |row, x| row | u16::from(board.is_filled(x, y)) << x);
        let (piece, next) = match self.known() {
            Some((piece, next)) => (piece.letter().to_string(), next.letter().to_string()),
            None => Default::default(),
        };
        BoardState {
            rows: (0..20).map(row).collect(),
            piece,
            next,
            last: self.last.clone(),
            last_piece: self.last_piece.clone(),
            lines: result.score.lines.into(),
            score: result.score.points.into(),
            pieces: result.moves.into(),
            level: Some(result.score.level),
            over: self.over || result.complete,
            complete: result.complete,
        }
    }
}
