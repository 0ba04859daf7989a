//! Chances of a perfect clear after each first move.
//!
//! The *clairvoyant* chance is the probability that a perfect clear beginning with the move exists. The *adaptive*
//! chance is the probability of a perfect clear if every later move is the best one for the pieces that the player
//! has seen by then. After each move the player sees one more piece.

mod future;
mod known;
mod orders;
mod supply;

use super::cell_numbers;
use super::expand::{Expander, Filter};
use super::solver::{PcError, Solver};
use super::table::{BoardFilter, BoardTable};
use future::{Futures, Position};
use hatebeam_tetris::Piece;
use hatebeam_tetris::srs::{Bag, DropMode, KickTable, LowField, LowPlacements, SrsPlacement};
use known::{KnownMoves, Sequences, Wins};
use orders::{Orders, SharedOrders};
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use supply::Supply;

/// Number of pieces at the end of a game that are not placed one by one: their orders are enumerated for each field.
const LAST: usize = 4;
/// Maximum number of pieces that the player does not see before the first move.
pub const MAX_UNSEEN: usize = 6;

/// Maximum numbers of states that [`best_move`] follows after each known piece, in successive searches.
const WIDTHS: [usize; 3] = [1 << 10, 1 << 13, usize::MAX];

/// The rules of movement, and an optional table that makes searches faster.
#[derive(Clone, Debug)]
pub struct PcFinder {
    placements: LowPlacements,
    table: Option<(Arc<BoardTable>, Arc<BoardFilter>)>,
    /// Orders that earlier searches have found.
    orders: Arc<SharedOrders>,
}

impl PcFinder {
    /// Creates a finder without a table.
    pub fn new(kicks: &KickTable, mode: DropMode) -> PcFinder {
        PcFinder {
            placements: LowPlacements::new(kicks, mode),
            table: None,
            orders: Arc::new(SharedOrders::new()),
        }
    }

    /// Adds a table, which must have been made for the same rules of movement.
    pub fn with_table(mut self, table: BoardTable) -> PcFinder {
        let filter = Arc::new(table.filter());
        self.table = Some((Arc::new(table), filter));
        self
    }

    /// Returns the reachable placement of a piece whose cells have these numbers, in any order. The number of a cell is
    /// column + 10 · row.
    pub fn placement(
        &self,
        field: &LowField,
        piece: Piece,
        cells: &[usize],
    ) -> Option<SrsPlacement> {
        let mut found = None;
        self.placements.for_each(field, piece, |placement| {
            let numbers = cell_numbers(placement);
            if cells.len() == numbers.len() && numbers.iter().all(|cell| cells.contains(cell)) {
                found = Some(placement);
            }
        });
        found
    }

    /// Returns the expander for a search that starts at a field. It uses the table only if the table contains the
    /// field, because otherwise the table may not contain the fields after it either.
    fn expander(&self, field: &LowField) -> Expander {
        let table = self.table.as_ref().filter(|table| table.0.contains(field));
        let filter = match table {
            Some(table) => Filter::Boards(Arc::clone(&table.1)),
            None => Filter::Tilings,
        };
        Expander::new(self.placements.clone(), filter)
    }
}

/// A position, and the player's knowledge of the following pieces.
#[derive(Clone, Debug)]
pub struct PcPosition {
    /// Field to clear.
    pub field: LowField,
    /// Pieces that the player sees. The first one is the held piece if there is one, otherwise the current piece.
    pub seen: Vec<Piece>,
    /// Pieces that are left in the bag after the seen ones.
    pub bag: Bag,
    /// Number of pieces in the game, including the seen ones. Only one piece more than the field needs is of use.
    pub pieces_in_all: usize,
}

impl PcPosition {
    /// Returns an error if the seen pieces cannot be drawn from bags before the pieces left in the bag. Does not check the
    /// first seen piece, because a held piece can be from an earlier bag.
    fn check_bag(&self) -> Result<(), PcError> {
        let mut left = self.bag;
        for &piece in self.seen.iter().skip(1).rev() {
            // The piece before a full bag was the last one of the previous bag.
            let before = if left == Bag::FULL {
                Bag::of(&[piece]).ok()
            } else {
                left.put_back(piece)
            };
            left = before.ok_or(PcError::Impossible(piece))?;
        }
        Ok(())
    }
}

/// A probability as a fraction of all sequences of unseen pieces, which are equally probable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    /// Number of sequences that lead to a perfect clear.
    pub count: u32,
    /// Number of all possible sequences.
    pub all: u32,
}

impl Chance {
    /// Returns the probability.
    pub fn probability(self) -> f64 {
        f64::from(self.count) / f64::from(self.all)
    }
}

impl fmt::Display for Chance {
    /// Writes the probability as a fraction in lowest terms, such as `103/105`, or as 0 or 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut divisor, mut rest) = (self.all, self.count);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        match self.all / divisor {
            1 => write!(f, "{}", self.count / divisor),
            all => write!(f, "{}/{all}", self.count / divisor),
        }
    }
}

/// A first move and its chances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveChance {
    /// The move.
    pub placement: SrsPlacement,
    /// Chance that a perfect clear beginning with this move exists.
    pub clairvoyant: Chance,
    /// Chance of a perfect clear if every later move is the best one for the pieces that the player has seen by then.
    pub adaptive: Chance,
}

/// A first move and its adaptive chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestMove {
    /// The move.
    pub placement: SrsPlacement,
    /// Chance of a perfect clear if every later move is the best one for the pieces that the player has seen by then.
    pub adaptive: Chance,
}

/// Computes the chances of every first move. The result is sorted: the highest adaptive chance is first, then the
/// highest clairvoyant chance, then the lowest placement.
///
/// The computation is faster if the finder has a table that contains the field.
pub fn chances(
    position: &PcPosition,
    finder: &PcFinder,
    threads: usize,
) -> Result<Vec<MoveChance>, PcError> {
    let game = Game::new(position, finder)?;
    let mut moves = game.moves(threads, usize::MAX).0;
    moves.sort_by_key(|chance| {
        let (adaptive, clairvoyant) = (chance.adaptive.count, chance.clairvoyant.count);
        (
            u32::MAX - adaptive,
            u32::MAX - clairvoyant,
            chance.placement,
        )
    });
    Ok(moves)
}

/// Finds a first move with the best adaptive chance. Returns `None` if no piece can be placed.
///
/// Takes less time than [`chances`] if some move is certain to succeed, and much less if all pieces are known. If several
/// moves have the best chance, the result can differ from the first move of [`chances`]. Calls `improve` with each better
/// move that it finds. The chance of such a move is a lower bound.
pub fn best_move(
    position: &PcPosition,
    finder: &PcFinder,
    threads: usize,
    mut improve: impl FnMut(&BestMove),
) -> Result<Option<BestMove>, PcError> {
    let game = Game::new(position, finder)?;
    if game.seen.len() == game.in_all {
        let best = game.best_known_move()?;
        best.iter().for_each(improve);
        return Ok(best);
    }
    let mut best: Option<BestMove> = None;
    for width in WIDTHS {
        let (moves, is_exact) = game.moves(threads, width);
        let found = moves
            .iter()
            .max_by_key(|chance| (chance.adaptive.count, Reverse(chance.placement)));
        let Some(found) = found else {
            return Ok(None);
        };
        if best.is_none_or(|best| best.adaptive.count < found.adaptive.count) {
            let found = BestMove {
                placement: found.placement,
                adaptive: found.adaptive,
            };
            improve(&found);
            best = Some(found);
        }
        if is_exact || found.adaptive.count == found.adaptive.all {
            break;
        }
    }
    Ok(best)
}

/// A position whose bag and number of pieces have been checked.
struct Game<'a> {
    field: LowField,
    /// Seen pieces that are placed one by one. Then the orders of the other pieces are enumerated.
    first: &'a [Piece],
    seen: &'a [Piece],
    in_all: usize,
    needed: usize,
    bag: Bag,
    expander: Expander,
    orders: Arc<SharedOrders>,
}

impl<'a> Game<'a> {
    fn new(position: &'a PcPosition, finder: &PcFinder) -> Result<Game<'a>, PcError> {
        if position.seen.is_empty() {
            return Err(PcError::NothingSeen);
        }
        let needed = position.field.pieces_left();
        let given = position.pieces_in_all.max(position.seen.len());
        if given < needed {
            return Err(PcError::ShortQueue { given, needed });
        }
        position.check_bag()?;
        // A player can use at most one piece more than the field needs.
        let in_all = given.min(needed + 1);
        let seen = &position.seen[..position.seen.len().min(in_all)];
        if in_all - seen.len() > MAX_UNSEEN {
            return Err(PcError::Unseen {
                unseen: in_all - seen.len(),
                most: MAX_UNSEEN,
            });
        }
        Ok(Game {
            field: position.field,
            // The other seen pieces are enumerated together with the unseen pieces.
            first: &seen[..seen.len().min((needed + 1).saturating_sub(LAST).max(1))],
            seen,
            in_all,
            needed,
            bag: position.bag,
            expander: finder.expander(&position.field),
            orders: Arc::clone(&finder.orders),
        })
    }

    /// Returns the first move of a perfect clear, or else the lowest placement. All pieces must be known.
    fn best_known_move(&self) -> Result<Option<BestMove>, PcError> {
        let placements = self.expander.placements();
        let mut solver = Solver::with_placements(placements.clone());
        let solution = solver.solve(&self.field, self.seen, true)?;
        let clear = solution.and_then(|moves| moves.first().copied());
        let mut lowest = None;
        for piece in self.first_pieces() {
            placements.for_each(&self.field, piece, |placement| {
                lowest =
                    Some(lowest.map_or(placement, |lowest: SrsPlacement| lowest.min(placement)));
            });
        }
        Ok(clear.or(lowest).map(|placement| BestMove {
            placement,
            adaptive: Chance {
                count: u32::from(clear.is_some()),
                all: 1,
            },
        }))
    }

    /// Returns the chances of all first moves, and whether they are exact. Follows at most `width` states after each
    /// known piece. If it drops other states, the chances are lower bounds.
    fn moves(&self, threads: usize, width: usize) -> (Vec<MoveChance>, bool) {
        let mut is_exact = true;
        let (placements, wins) = if self.field.is_clear() || self.field.is_split() {
            Default::default()
        } else if self.first.len() > 1 {
            let mut supply = self.supply();
            let later = supply.stock(self.bag);
            let known = KnownMoves::new(
                &self.field,
                self.first,
                later,
                &self.expander,
                width,
                threads,
            );
            is_exact = known.is_complete;
            let sequences = Sequences {
                tails: &supply.tails(0, self.bag),
                sizes: &supply.sizes(0, self.bag),
                seen: self.seen.len() - self.first.len(),
                bag: self.bag,
            };
            let wins = known.evaluate(&sequences, || self.futures(), threads);
            (known.first, wins)
        } else {
            self.moves_without_known_ones()
        };
        let all = self.supply().sizes(0, self.bag).iter().product::<usize>() as u32;
        let chance = |count| Chance { count, all };
        let mut possible = placements.into_iter().zip(wins).peekable();
        let mut moves = Vec::new();
        for piece in self.first_pieces() {
            self.expander
                .placements()
                .for_each(&self.field, piece, |placement| {
                    // Placements after which a perfect clear is obviously impossible have not been evaluated.
                    let found = possible.next_if(|(found, _)| *found == placement);
                    let wins = found.map(|(_, wins)| wins).unwrap_or_default();
                    moves.push(MoveChance {
                        placement,
                        clairvoyant: chance(wins.clairvoyant),
                        adaptive: chance(wins.adaptive),
                    });
                });
        }
        (moves, is_exact)
    }

    /// Returns the pieces that can be placed first.
    fn first_pieces(&self) -> impl Iterator<Item = Piece> + use<'_> {
        let second = self.seen.get(1).filter(|&second| *second != self.seen[0]);
        std::iter::once(&self.seen[0]).chain(second).copied()
    }

    fn supply(&self) -> Supply {
        let known = self.seen[self.first.len()..].to_vec();
        // If the game has only the needed pieces, a placeholder stands for the additional piece.
        let len = self.needed + 1 - self.first.len();
        Supply::new(known, len, self.in_all > self.needed)
    }

    fn futures(&self) -> Futures {
        let orders = Orders::new(self.expander.clone(), Arc::clone(&self.orders));
        Futures::new(orders, self.supply(), self.seen.len() - 1)
    }

    /// Returns the first moves and their results if `first` contains only one piece.
    fn moves_without_known_ones(&self) -> (Vec<SrsPlacement>, Vec<Wins>) {
        let mut futures = self.futures();
        let held = self.first[0];
        let options = futures.supply().options(0, self.bag);
        let (mut placements, mut wins) = (Vec::new(), Vec::new());
        for piece in self.first_pieces() {
            self.expander
                .for_each(&self.field, piece, |placement, field| {
                    let mut sum = Wins::default();
                    for &(next, bag) in &options {
                        let held = if piece == held { next } else { held };
                        let after = Position {
                            field,
                            held,
                            position: 1,
                            bag,
                        };
                        let words = futures.wins(&after);
                        sum.clairvoyant += words.iter().map(|word| word.count_ones()).sum::<u32>();
                        sum.adaptive += futures.total(&after);
                    }
                    placements.push(placement);
                    wins.push(sum);
                });
        }
        (placements, wins)
    }
}
