//! A game of HATETRIS, played with the user's keys or from a replay. The enemy is the algorithm that chooses the
//! pieces.

use crate::answer::{Answer, Failure, json};
use hatebeam_game::{
    Children, Emulator, Encoding, Enemy, Game, Geometry, Key, PathFinder, Piece, Placement,
    Pressed, Rules, Turn, Well, better_enemy, decode, encode, play,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

pub(crate) const GEOMETRY: Geometry = Geometry::STANDARD;

pub(crate) fn rules() -> Rules {
    Rules::default()
}

#[derive(Deserialize)]
pub(crate) struct StartGame {
    enemy: String,
}

impl StartGame {
    pub(crate) fn enemy(&self) -> Result<Enemy, Failure> {
        Ok(self.enemy.parse()?)
    }
}

/// A request to press keys. Their letters are `L`, `R`, `D`, `U`, and `H`, which presses `D` until the piece locks.
#[derive(Deserialize)]
pub(crate) struct Press {
    keys: String,
}

#[derive(Deserialize)]
pub(crate) struct Seek {
    /// Position to move to, as a number of keys from the beginning.
    pub(crate) to: usize,
}

#[derive(Deserialize)]
pub(crate) struct Place {
    /// The well after the placement, in hex, or `None` for a placement that ends the game.
    well: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct LoadReplay {
    text: String,
    /// Name of the enemy, or `None` to find the enemy that fits the replay.
    enemy: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Follow {
    /// The wells in hex, beginning with the current well.
    wells: Vec<String>,
}

/// State of a game.
#[derive(Serialize)]
pub(crate) struct State {
    enemy: &'static str,
    /// All rows from top to bottom. The lowest bit of a row is column 0.
    rows: Vec<u16>,
    /// The well in hex.
    well: String,
    piece: char,
    /// Cells of the piece as column and row; empty if the game is over.
    cells: Vec<(i32, i32)>,
    /// Cells where the piece comes to rest if only `D` is pressed.
    ghost: Vec<(i32, i32)>,
    score: u32,
    /// Number of the current piece; the first piece has number 1.
    number: usize,
    over: bool,
    /// Number of keys pressed so far.
    at: usize,
    /// Number of keys in the replay.
    keys: usize,
    /// Number of keys pressed before the current piece.
    piece_at: usize,
    /// One entry per piece, in the order in which HATETRIS breaks ties. Empty if the game is over.
    reasons: Vec<Reason>,
}

/// The properties of a piece on which HATETRIS bases its choice.
#[derive(Serialize)]
struct Reason {
    piece: char,
    /// Height of the lowest stack that the player can leave with this piece.
    height: usize,
    /// Number of earlier occurrences of the most frequent well that the player can leave with this piece.
    loops: u32,
}

/// Result of loading a replay.
#[derive(Serialize)]
pub(crate) struct Loaded {
    encoding: &'static str,
    /// Fault of the replay, or `None` if the replay is valid.
    fault: Option<String>,
    state: State,
}

#[derive(Serialize)]
struct Saved {
    raw: String,
    hex: String,
    base65536: String,
    base2048: String,
}

/// Result of [`Play::follow`].
#[derive(Serialize)]
struct Followed {
    /// Number of pieces for which keys were appended.
    pieces: usize,
    /// Reason why the remaining wells cannot be reached, or `None` if all were reached.
    fault: Option<String>,
    state: State,
}

/// Number of pieces between two checkpoints. The longest known game has 9,309 pieces; playing all of them takes about
/// 100 ms.
const CHECKPOINT: usize = 512;

/// A game and the keys of its replay, of which the first `at` have been pressed.
pub(crate) struct Play {
    emulator: Emulator,
    game: Game,
    keys: Vec<Key>,
    at: usize,
    /// The pieces up to and including the current one.
    turns: Vec<Turn>,
    /// The game after certain numbers of keys, in ascending order. Moving back starts at a checkpoint.
    checkpoints: Vec<(usize, Game)>,
}

impl Play {
    pub(crate) fn new(enemy: Enemy) -> Play {
        let game = Game::new(GEOMETRY, rules(), enemy);
        Play {
            emulator: Emulator::new(GEOMETRY, rules()),
            turns: vec![turn(&game, 0)],
            checkpoints: vec![(0, game.clone())],
            game,
            keys: Vec::new(),
            at: 0,
        }
    }

    pub(crate) fn load(load: &LoadReplay) -> Result<(Play, Loaded), Failure> {
        let (keys, encoding) = decode(&load.text)?;
        let named = load.enemy.as_deref().map(str::parse).transpose()?;
        let mut record = play(GEOMETRY, rules(), named.unwrap_or_default(), &keys);
        if named.is_none()
            && let Some(better) = better_enemy(GEOMETRY, rules(), &record, &keys)
        {
            record = better;
        }
        let fault = record.check(GEOMETRY, rules(), &keys).err();
        let mut game = Play::new(record.enemy);
        game.keys = keys[..record.keys_used].to_vec();
        let loaded = Loaded {
            encoding: encoding.name(),
            fault: fault.map(|fault| fault.to_string()),
            state: game.state(),
        };
        Ok((game, loaded))
    }

    pub(crate) fn game(&self) -> &Game {
        &self.game
    }

    /// Presses a key, which must be the next key of the replay.
    fn step(&mut self, key: Key) -> Pressed {
        let pressed = self.game.press(key);
        if pressed == Pressed::Over {
            return pressed;
        }
        self.at += 1;
        if let Pressed::Locked { over: false, .. } = pressed {
            self.turns.push(turn(&self.game, self.at));
            if self.turns.len().is_multiple_of(CHECKPOINT) && self.last_checkpoint() < self.at {
                self.checkpoints.push((self.at, self.game.clone()));
            }
        }
        pressed
    }

    /// Returns the number of keys pressed before the last checkpoint.
    fn last_checkpoint(&self) -> usize {
        self.checkpoints.last().map_or(0, |checkpoint| checkpoint.0)
    }

    /// Presses the user's key, which replaces the rest of the replay. A blocked key does not change the replay.
    fn enter(&mut self, key: Key) -> Pressed {
        let game = &self.game;
        let next = game.position().moved(key);
        if game.is_over() {
            return Pressed::Over;
        }
        if key != Key::Down && !game.board().is_free(game.piece(), next) {
            return Pressed::Blocked;
        }
        self.truncate(self.at);
        self.keys.push(key);
        self.step(key)
    }

    pub(crate) fn press(&mut self, press: &Press) -> Answer {
        for letter in press.keys.chars() {
            if letter == 'H' {
                while self.enter(Key::Down) == Pressed::Moved {}
            } else {
                let key = Key::from_letter(letter);
                self.enter(key.ok_or("unknown key: the keys are L, R, D, U and H")?);
            }
        }
        json(&self.state())
    }

    /// Removes all keys after the first `len`, and the checkpoints after these keys.
    fn truncate(&mut self, len: usize) {
        self.keys.truncate(len);
        self.checkpoints.retain(|checkpoint| checkpoint.0 <= len);
    }

    fn move_to(&mut self, to: usize) {
        let to = to.min(self.keys.len());
        if to < self.at {
            let mut checkpoints = self.checkpoints.iter().rev();
            let (at, game) = checkpoints
                .find(|checkpoint| checkpoint.0 <= to)
                .expect("the first checkpoint is at position 0");
            self.game.clone_from(game);
            self.turns.retain(|turn| turn.first_key <= *at);
            self.at = *at;
        }
        while self.at < to {
            self.step(self.keys[self.at]);
        }
    }

    pub(crate) fn seek(&mut self, to: usize) -> Answer {
        self.move_to(to);
        json(&self.state())
    }

    pub(crate) fn undo(&mut self) -> Answer {
        let mut turns = self.turns.iter().rev();
        let to = turns.find(|turn| turn.first_key < self.at);
        self.move_to(to.map_or(0, |turn| turn.first_key));
        json(&self.state())
    }

    /// Moves back to the beginning of the current piece.
    fn rewind_piece(&mut self) {
        self.move_to(self.piece_at());
    }

    fn piece_at(&self) -> usize {
        self.turns.last().map_or(0, |turn| turn.first_key)
    }

    pub(crate) fn place(&mut self, place: &Place) -> Answer {
        self.rewind_piece();
        let (well, piece) = (self.game.well(), self.game.piece());
        let mut finder = PathFinder::new(GEOMETRY, rules());
        let mut keys = Vec::new();
        let is_found = match &place.well {
            Some(text) => {
                let child = Well::from_hex(GEOMETRY, text)?;
                finder.find(&well, piece, &child, &mut keys)
            }
            None => finder.find_end(&well, piece, &mut keys),
        };
        if !is_found || self.game.is_over() {
            return Err("the piece cannot be placed there".into());
        }
        for key in keys {
            self.enter(key);
        }
        json(&self.state())
    }

    /// Replaces the keys after the current piece's first key with keys that lead through the given wells. If the first
    /// well is not the current one, fails and changes nothing.
    pub(crate) fn follow(&mut self, follow: &Follow) -> Answer {
        let wells: Result<Vec<Well>, _> = follow
            .wells
            .iter()
            .map(|text| Well::from_hex(GEOMETRY, text))
            .collect();
        let wells = wells?;
        if wells.first() != Some(&self.game.well()) {
            return Err("the game to play continues another well: search again from here".into());
        }
        self.rewind_piece();
        let start = self.at;
        self.truncate(start);
        let mut finder = PathFinder::new(GEOMETRY, rules());
        let (mut pieces, mut fault) = (0, None);
        for pair in wells.windows(2) {
            let mut keys = Vec::new();
            let piece = self.game.piece();
            let is_here = self.game.well() == pair[0];
            if !is_here || !finder.find(&pair[0], piece, &pair[1], &mut keys) {
                fault = Some(format!("{} gives {piece} instead", self.game.enemy()));
                break;
            }
            for key in keys {
                self.enter(key);
            }
            pieces += 1;
        }
        self.move_to(start);
        json(&Followed {
            pieces,
            fault,
            state: self.state(),
        })
    }

    pub(crate) fn save(&self) -> Answer {
        let text = |encoding| encode(&self.keys, encoding);
        json(&Saved {
            raw: text(Encoding::Raw),
            hex: text(Encoding::Hex),
            base65536: text(Encoding::Base65536),
            base2048: text(Encoding::Base2048),
        })
    }

    pub(crate) fn state(&self) -> State {
        let game = &self.game;
        let (piece, position, board) = (game.piece(), game.position(), game.board());
        let mut rest = position;
        while board.is_free(piece, rest.moved(Key::Down)) {
            rest = rest.moved(Key::Down);
        }
        let cells = |position| match game.is_over() {
            true => Vec::new(),
            false => Placement { piece, position }.cells().to_vec(),
        };
        State {
            enemy: game.enemy().name(),
            rows: board.rows().to_vec(),
            well: game.well().to_hex(GEOMETRY),
            piece: piece.letter(),
            cells: cells(position),
            ghost: cells(rest),
            score: game.score(),
            number: game.pieces(),
            over: game.is_over(),
            at: self.at,
            keys: self.keys.len(),
            piece_at: self.piece_at(),
            reasons: self.reasons(),
        }
    }

    fn reasons(&self) -> Vec<Reason> {
        if self.game.is_over() {
            return Vec::new();
        }
        let well = self.game.well();
        let ratings = self.emulator.ratings(&well);
        let mut visits: HashMap<Well, u32> = HashMap::new();
        for turn in &self.turns {
            *visits.entry(turn.well).or_default() += 1;
        }
        let mut children = Children::new();
        let mut reason = |piece: Piece| {
            self.emulator.children(&well, piece, &mut children);
            let seen = |child| visits.get(child).copied().unwrap_or(0);
            Reason {
                piece: piece.letter(),
                height: GEOMETRY.depth() - usize::from(ratings[piece.index()]),
                loops: children.wells().iter().map(seen).max().unwrap_or(0),
            }
        };
        Piece::ALL.map(&mut reason).into()
    }
}

fn turn(game: &Game, first_key: usize) -> Turn {
    Turn {
        well: game.well(),
        piece: game.piece(),
        score: game.score(),
        first_key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(play: &mut Play, wells: &[&str]) -> Answer {
        let wells = wells.iter().map(|&text| text.to_owned()).collect();
        play.follow(&Follow { wells })
    }

    #[test]
    fn following_from_another_well_changes_nothing() {
        let mut play = Play::new(Enemy::Hatetris);
        let keys = "HHL".to_owned();
        play.press(&Press { keys }).unwrap();
        let before = (play.keys.clone(), play.at);
        let (empty, well) = (Well::EMPTY.to_hex(GEOMETRY), play.state().well);
        for wells in [&[empty.as_str(), &well][..], &[]] {
            let error = follow(&mut play, wells).unwrap_err().to_string();
            assert!(error.contains("another well"), "{error}");
            assert_eq!((play.keys.clone(), play.at), before);
        }
        assert!(follow(&mut play, &[&well, "no well"]).is_err());
        assert_eq!((play.keys.clone(), play.at), before);
        // The current well is the first one, so the key that moved the current piece is removed.
        follow(&mut play, &[&well]).unwrap();
        assert_eq!(play.keys, before.0[..before.0.len() - 1]);
    }
}
