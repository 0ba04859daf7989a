//! Key paths: from a well and its child to the shortest keys that play it, and from a list of wells
//! to a whole replay.
//!
//! A search keeps wells, not keys, so that somebody has to find the keys afterwards. [`PathFinder`]
//! does it by a breadth-first search over positions (orientation, column, row) from the spawn; the
//! first position met whose lock leaves the child is the nearest, and one more `D` locks there.
//!
//! **How it is fast.** Which positions are free is worked out before, as one word of columns for
//! each row and orientation: the rows of the well, shifted by each of the piece's four cells. The
//! search then asks for single bits, and a position visited is no longer free. Buffers are
//! kept between calls. About 700 positions at most are looked at: 1.1 µs a call at 10 × 16 for the
//! children of random play, 1.8 µs where nothing is found.
//!
//! **Ties.** Of several shortest sequences the result is always the same one: keys are tried in the
//! order `L R D U`, and positions left in the order they were met.
//!
//! We know that it works because the keys to every child of a thousand wells, played by the rules,
//! give that child, and because a plain search finds nothing shorter.

use crate::emulator::{Children, Emulator};
use crate::enemy::{Enemy, EnemyState};
use crate::piece::Piece;
use crate::rules::{Board, Key, Lock, Position, Rules};
use crate::well::{Geometry, MAX_HEIGHT, ROWS_ABOVE_BAR, Well, WellError};
use thiserror::Error;

/// Rows there can be, the ones above the bar included.
const MAX_DEPTH: usize = MAX_HEIGHT + ROWS_ABOVE_BAR;
/// A word's bit 0 is a box in this column; boxes stick out to the left by two columns at most, so
/// that there is always a wall left of them.
const FIRST_COLUMN: i8 = -3;
/// A place has its column in bits 0 to 4, its orientation in bits 5 and 6, its row above.
const ORIENTATION: u16 = 1 << 5;
/// One row down, in a place.
const ROW: u16 = 1 << 7;
/// Words: four a row, and a row of blocked ones under the floor.
const WORDS: usize = 4 * (MAX_DEPTH + 1);

/// A position in eleven bits: bit `place & 31` of word `place >> 5`.
type Place = u16;

/// Finds the keys that lead from a well to a child. Made once and used again and again: a call
/// allocates nothing (but what the result may need).
#[derive(Clone, Debug)]
pub struct PathFinder {
    geometry: Geometry,
    rules: Rules,
    /// Places met, in order; those that are still to be left come last.
    met: Vec<Place>,
    /// By place: the key that led there. Only those of `met` are valid.
    key_to: Vec<Key>,
}

/// What keeps a list of wells from being a game.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The list is empty.
    #[error("there are no wells: a game has at least the one it starts with")]
    NoWells,
    /// The first well is not a live well of the geometry.
    #[error("well 1: {0}")]
    Start(#[from] WellError),
    /// Two wells that do not follow each other.
    #[error(
        "no placement leads from well {step} to well {}, for {enemy} gives {piece} there",
        step + 1
    )]
    NoPlacement {
        /// Which step, from 1: from this well to the next.
        step: usize,
        /// The piece at that step.
        piece: Piece,
        /// Who gave it.
        enemy: Enemy,
    },
    /// The game cannot be ended where it should.
    #[error(
        "no placement of {piece}, which {enemy} gives in the last well ({wells}), ends the game"
    )]
    NoEnd {
        /// How many wells there are.
        wells: usize,
        /// The piece in the last of them.
        piece: Piece,
        /// Who gave it.
        enemy: Enemy,
    },
}

impl PathFinder {
    /// A finder for wells of `geometry`.
    pub fn new(geometry: Geometry, rules: Rules) -> PathFinder {
        PathFinder {
            geometry,
            rules,
            met: Vec::with_capacity(WORDS * MAX_HEIGHT),
            key_to: vec![Key::Left; WORDS * 32],
        }
    }

    /// Appends a shortest key sequence that plays `piece` from `parent` to the live well `child`,
    /// the `D` that locks included. Says whether there is one; if not, `keys` stays as it is.
    pub fn find(&mut self, parent: &Well, piece: Piece, child: &Well, keys: &mut Vec<Key>) -> bool {
        self.search(
            parent,
            piece,
            |lock| !lock.over && lock.board.well() == *child,
            keys,
        )
    }

    /// Appends a shortest key sequence that ends the game by a lock of `piece`. Says whether there
    /// is one; if not, `keys` stays as it is.
    pub fn find_end(&mut self, parent: &Well, piece: Piece, keys: &mut Vec<Key>) -> bool {
        self.search(parent, piece, |lock| lock.over, keys)
    }

    /// Appends the shortest keys to a lock that will do.
    fn search(
        &mut self,
        parent: &Well,
        piece: Piece,
        will_do: impl Fn(&Lock) -> bool,
        keys: &mut Vec<Key>,
    ) -> bool {
        let board = Board::new(self.geometry, parent);
        let free = free_places(&board, piece);
        let mut unmet = free;
        let start = place(Position::spawn(self.geometry));
        remove(&mut unmet, start);
        self.met.clear();
        self.met.push(start);
        let mut left = 0;
        while let Some(&at) = self.met.get(left) {
            left += 1;
            if !contains(&free, at + ROW) && will_do(&board.lock(piece, position(at), self.rules)) {
                self.trace(at, start, keys);
                return true;
            }
            for key in Key::ALL {
                let next = moved(at, key);
                if contains(&unmet, next) {
                    remove(&mut unmet, next);
                    self.key_to[usize::from(next)] = key;
                    self.met.push(next);
                }
            }
        }
        false
    }

    /// Appends the keys that led from `start` to `at`, and the one that locks there.
    fn trace(&self, mut at: Place, start: Place, keys: &mut Vec<Key>) {
        let first = keys.len();
        keys.push(Key::Down);
        while at != start {
            let key = self.key_to[usize::from(at)];
            keys.push(key);
            at = before(at, key);
        }
        keys[first..].reverse();
    }
}

/// The keys of a game against `enemy` that goes through these wells, the first of them the one it
/// starts with (normally [`Well::EMPTY`]). With `end`, the game is then brought to its end by the
/// nearest lock that does so: it has no well to be listed.
///
/// # Errors
/// [`PathError`]: the list is empty, starts with no live well, or has a step that no placement of
/// the piece given there makes; or the game cannot be ended.
pub fn replay_of_wells(
    geometry: Geometry,
    rules: Rules,
    enemy: Enemy,
    wells: &[Well],
    end: bool,
) -> Result<Vec<Key>, PathError> {
    let (start, rest) = wells.split_first().ok_or(PathError::NoWells)?;
    start.check(geometry)?;
    let emulator = Emulator::new(geometry, rules);
    let mut children = Children::new();
    let mut finder = PathFinder::new(geometry, rules);
    let mut state = EnemyState::new(enemy);
    let mut keys = Vec::new();
    let mut well = start;
    for (child, step) in rest.iter().zip(1..) {
        let piece = state.next_piece(&emulator, well, &mut children);
        if !finder.find(well, piece, child, &mut keys) {
            return Err(PathError::NoPlacement { step, piece, enemy });
        }
        well = child;
    }
    if end {
        let piece = state.next_piece(&emulator, well, &mut children);
        if !finder.find_end(well, piece, &mut keys) {
            return Err(PathError::NoEnd {
                wells: wells.len(),
                piece,
                enemy,
            });
        }
    }
    Ok(keys)
}

/// Where the piece can be, a bit a place.
fn free_places(board: &Board, piece: Piece) -> [u32; WORDS] {
    let shift = u32::from(FIRST_COLUMN.unsigned_abs());
    let inside = u32::from(board.geometry().full_row()) << shift;
    // Rows of the well between walls; all wall below the floor.
    let mut walled = [u32::MAX; MAX_DEPTH + 4];
    for (walled, &row) in walled.iter_mut().zip(board.rows()) {
        *walled = !inside | u32::from(row) << shift;
    }
    let mut free = [0; WORDS];
    for y in 0..board.geometry().depth() {
        for orientation in 0..4 {
            let cells = piece.cells(orientation).iter();
            // The zeros shifted in at the top count as free, but have walls between.
            let blocked = cells.map(|&(cx, cy)| walled[y + usize::from(cy)] >> cx);
            free[4 * y + usize::from(orientation)] = !blocked.fold(0, |all, word| all | word);
        }
    }
    free
}

fn contains(places: &[u32; WORDS], place: Place) -> bool {
    places[usize::from(place >> 5)] >> (place & 31) & 1 == 1
}

fn remove(places: &mut [u32; WORDS], place: Place) {
    places[usize::from(place >> 5)] &= !(1 << (place & 31));
}

fn place(Position { orientation, x, y }: Position) -> Place {
    y as u16 * ROW + u16::from(orientation) * ORIENTATION + (x - FIRST_COLUMN) as u16
}

fn position(place: Place) -> Position {
    Position {
        orientation: ((place / ORIENTATION) & 3) as u8,
        x: (place & 31) as i8 + FIRST_COLUMN,
        y: (place / ROW) as i8,
    }
}

/// The place a key asks for. (See [`Position::moved`].)
fn moved(place: Place, key: Key) -> Place {
    match key {
        Key::Left => place - 1,
        Key::Right => place + 1,
        Key::Down => place + ROW,
        Key::Up => place & !(3 * ORIENTATION) | (place + ORIENTATION) & (3 * ORIENTATION),
    }
}

/// The place a key was pressed at.
fn before(place: Place, key: Key) -> Place {
    match key {
        Key::Left => place + 1,
        Key::Right => place - 1,
        Key::Down => place - ROW,
        Key::Up => place & !(3 * ORIENTATION) | (place + 3 * ORIENTATION) & (3 * ORIENTATION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Geometry = Geometry::STANDARD;

    fn letters(keys: &[Key]) -> String {
        keys.iter().map(|key| key.letter()).collect()
    }

    #[test]
    fn places_move_as_positions_do() {
        for orientation in 0..4 {
            for (x, y) in [(-2, 0), (0, 3), (13, 18)] {
                let from = Position { orientation, x, y };
                assert_eq!(position(place(from)), from);
                for key in Key::ALL {
                    let to = moved(place(from), key);
                    assert_eq!(position(to), from.moved(key));
                    assert_eq!(before(to, key), place(from));
                }
            }
        }
    }

    #[test]
    fn free_places_are_the_free_positions_in_every_geometry() {
        for (width, height) in [(4, 1), (4, 4), (5, 7), (10, 16), (15, 9), (16, 16)] {
            let geometry = Geometry::new(width, height).unwrap();
            // A staircase, and a hole under it where there is room.
            let mut rows = [0u16; MAX_HEIGHT];
            for (index, row) in rows[..height].iter_mut().enumerate() {
                *row = (geometry.full_row() >> (index / 2 + 1)) & !(1 << (index % 3));
            }
            let board = Board::new(geometry, &Well::from_rows(rows));
            for piece in Piece::ALL {
                let free = free_places(&board, piece);
                for orientation in 0..4 {
                    for (x, y) in (-3..=width as i8).flat_map(|x| (0..20).map(move |y| (x, y))) {
                        let at = Position { orientation, x, y };
                        let expected = board.is_free(piece, at);
                        assert_eq!(
                            contains(&free, place(at)),
                            expected,
                            "{geometry} {piece} {at:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_piece_falls_straight_down() {
        let child = Well::from_picture(STANDARD, "....##....\n.....##...").unwrap();
        let mut finder = PathFinder::new(STANDARD, Rules::default());
        let mut keys = vec![Key::Up];
        assert!(finder.find(&Well::EMPTY, Piece::Z, &child, &mut keys));
        assert_eq!(letters(&keys), format!("U{}", "D".repeat(18)));
    }

    #[test]
    fn a_piece_is_tucked_under_an_overhang() {
        let parent = Well::from_picture(STANDARD, "######....\n#.........").unwrap();
        let child = Well::from_picture(STANDARD, "######....\n#.####....").unwrap();
        let mut finder = PathFinder::new(STANDARD, Rules::default());
        let mut keys = Vec::new();
        assert!(finder.find(&parent, Piece::I, &child, &mut keys));
        assert!(letters(&keys).ends_with("LLLLD"), "{}", letters(&keys));
    }

    #[test]
    fn what_cannot_be_is_not_found() {
        let mut finder = PathFinder::new(STANDARD, Rules::default());
        let mut keys = vec![Key::Right];
        assert!(!finder.find(&Well::EMPTY, Piece::O, &Well::EMPTY, &mut keys));
        assert!(!finder.find_end(&Well::EMPTY, Piece::O, &mut keys));
        assert_eq!(keys, [Key::Right]);
    }

    #[test]
    fn a_list_of_wells_that_is_no_game_is_refused_at_its_step() {
        let replay = |wells: &[Well], end| {
            replay_of_wells(STANDARD, Rules::default(), Enemy::Mild, wells, end)
        };
        let s = Well::from_picture(STANDARD, "....##....\n...##.....").unwrap();
        let i = Well::from_picture(STANDARD, "...####...").unwrap();
        assert_eq!(replay(&[], false), Err(PathError::NoWells));
        assert_eq!(replay(&[Well::EMPTY], false), Ok(vec![]));
        let enemy = Enemy::Mild;
        let error = PathError::NoPlacement {
            step: 1,
            piece: Piece::S,
            enemy,
        };
        assert_eq!(
            error.to_string(),
            "no placement leads from well 1 to well 2, for mild gives S there"
        );
        assert_eq!(replay(&[Well::EMPTY, i], false), Err(error));
        assert!(replay(&[Well::EMPTY, s], false).is_ok());
        let error = PathError::NoPlacement {
            step: 2,
            piece: Piece::S,
            enemy,
        };
        assert_eq!(replay(&[Well::EMPTY, s, s], false), Err(error));
        let error = PathError::NoEnd {
            wells: 2,
            piece: Piece::S,
            enemy,
        };
        assert_eq!(replay(&[Well::EMPTY, s], true), Err(error));
        let full = Well::from_rows([1023; MAX_HEIGHT]);
        assert!(matches!(replay(&[full], false), Err(PathError::Start(_))));
    }

    #[test]
    fn a_game_is_brought_to_its_end() {
        let geometry = Geometry::new(4, 1).unwrap();
        let keys = replay_of_wells(
            geometry,
            Rules::default(),
            Enemy::Mild,
            &[Well::EMPTY],
            true,
        );
        // S does not fit below the bar; it lies on the floor and reaches into the row above.
        assert_eq!(keys.map(|keys| letters(&keys)), Ok("DDD".to_owned()));
    }
}
