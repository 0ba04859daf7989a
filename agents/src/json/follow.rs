//! Games of perfect clears that are followed piece by piece.

use super::pc::{BestAnswer, ChanceAnswer, ChanceRequest, Finders, movement};
use super::{RequestError, answer, request};
use crate::pc::{
    BoardTable, HoldSlot, MAX_UNSEEN, PcFinder, PcGame, PcStreak, best_move, chances, field_rows,
};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Maximum number of perfect clears whose pictures an answer contains.
const SOLUTIONS: NonZeroUsize = NonZeroUsize::new(10).expect("10 is not 0");

/// Follows a game of consecutive perfect clears.
#[derive(Debug)]
pub struct PcFollower {
    finders: Finders,
    threads: usize,
    game: Option<FollowedGame>,
}

#[derive(Clone, Debug)]
struct FollowedGame {
    streak: PcStreak,
    kicks: Kicks,
    drop: DropMode,
    /// Whether answers contain only the best move.
    best: bool,
}

/// Decides whether a line starts a game.
#[derive(Deserialize)]
struct LineKind {
    seen: Option<IgnoredAny>,
}

/// A placement, and the pieces that the player sees after it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveRequest {
    piece: Option<String>,
    #[serde(default)]
    cells: Vec<usize>,
    #[serde(default)]
    reveal: String,
}

#[derive(Serialize)]
struct FollowAnswer {
    rows: Vec<String>,
    lines: usize,
    seen: String,
    left_in_bag: String,
    clears: usize,
    placed: usize,
    #[serde(flatten)]
    hints: Hints,
}

/// Advice for the next move.
#[derive(Serialize)]
#[serde(untagged)]
enum Hints {
    /// Number of pieces to reveal before chances can be computed.
    Missing {
        missing: usize,
    },
    Best(BestAnswer),
    All {
        #[serde(flatten)]
        chances: ChanceAnswer,
        /// Number of placements of the first and the second seen piece after which no perfect clear is possible.
        impossible: usize,
        /// Pictures of perfect clears. Only if all pieces are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        solutions: Option<Vec<Vec<String>>>,
    },
}

impl PcFollower {
    /// Creates a follower. Games with the kick table and the drop mode of `table` use the table.
    pub fn new(table: Option<BoardTable>, threads: usize) -> PcFollower {
        PcFollower {
            finders: Finders::new(table),
            threads,
            game: None,
        }
    }

    /// Answers a line.
    ///
    /// A line with `seen` starts a game. Its keys are those of [`super::pc_chance`], except `pieces_in_all`. Every other
    /// line can contain a placement (`piece` and `cells`) and the pieces that the player sees after it (`reveal`). The
    /// answer contains the position, the number of clears and of placed pieces, and the chances of the first moves that
    /// can still lead to a perfect clear. An invalid line does not change the game.
    pub fn answer(&mut self, line: &str) -> Result<String, RequestError> {
        let game = match request::<LineKind>(line)?.seen {
            Some(_) => FollowedGame::start(&request(line)?)?,
            None => {
                let mut game = self.game.clone().ok_or(RequestError::NotStarted)?;
                let finder = self.finders.finder(game.kicks, game.drop);
                game.play(&request(line)?, finder)?;
                game
            }
        };
        let finder = self.finders.finder(game.kicks, game.drop);
        let text = answer(&game.answer(finder, self.threads)?)?;
        self.game = Some(game);
        Ok(text)
    }
}

impl FollowedGame {
    fn start(request: &ChanceRequest) -> Result<FollowedGame, RequestError> {
        let (kicks, drop) = movement(request.kicks.as_deref(), request.drop.as_deref())?;
        let mut position = request.position()?;
        position.pieces_in_all = position.field.pieces_left() + 1;
        // Whole pieces cannot fill an odd number of empty rows.
        let rows = request.lines.filter(|lines| lines.is_multiple_of(2));
        Ok(FollowedGame {
            streak: PcStreak::new(position, rows.unwrap_or(4))?,
            kicks,
            drop,
            best: request.best,
        })
    }

    fn play(&mut self, request: &MoveRequest, finder: &PcFinder) -> Result<(), RequestError> {
        match &request.piece {
            Some(piece) => {
                self.streak.place(piece.parse()?, &request.cells, finder)?;
            }
            None if !request.cells.is_empty() => return Err(RequestError::CellsOfNoPiece),
            None => {}
        }
        for piece in Piece::parse_sequence(&request.reveal)? {
            self.streak.reveal(piece)?;
        }
        Ok(())
    }

    fn answer(&self, finder: &PcFinder, threads: usize) -> Result<FollowAnswer, RequestError> {
        let position = self.streak.position();
        Ok(FollowAnswer {
            rows: field_rows(&position.field),
            lines: position.field.rows(),
            seen: position.seen.iter().map(|piece| piece.letter()).collect(),
            left_in_bag: position.bag.to_string(),
            clears: self.streak.clears(),
            placed: self.streak.placed(),
            hints: self.hints(finder, threads)?,
        })
    }

    fn hints(&self, finder: &PcFinder, threads: usize) -> Result<Hints, RequestError> {
        let position = self.streak.position();
        let least = position.pieces_in_all.saturating_sub(MAX_UNSEEN).max(1);
        let missing = least.saturating_sub(position.seen.len());
        if missing > 0 {
            return Ok(Hints::Missing { missing });
        }
        if self.best {
            let best = best_move(position, finder, threads, |_| ())?;
            return Ok(Hints::Best(BestAnswer::of(best.as_ref())));
        }
        let mut moves = chances(position, finder, threads)?;
        let all = moves.len();
        moves.retain(|chance| chance.clairvoyant.count > 0);
        Ok(Hints::All {
            chances: ChanceAnswer::of(&moves),
            impossible: all - moves.len(),
            solutions: self.solutions()?,
        })
    }

    /// Returns pictures of different perfect clears, or `None` if not all pieces are known.
    fn solutions(&self) -> Result<Option<Vec<Vec<String>>>, RequestError> {
        let position = self.streak.position();
        if position.seen.len() < position.pieces_in_all {
            return Ok(None);
        }
        let game = PcGame {
            field: position.field,
            queue: position.seen.clone(),
            hold: HoldSlot::Full,
            kicks: KickTable::built_in(self.kicks),
            drop: self.drop,
        };
        let solutions = game.solutions(SOLUTIONS)?;
        let pictures = solutions.iter().map(|solution| game.picture(solution));
        Ok(Some(pictures.collect::<Result<_, _>>()?))
    }
}
