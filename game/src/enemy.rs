//! The enemies, which choose the pieces.
//!
//! HATETRIS and HATETRIS Mild consider every position in which the player can lock each piece.
//! Brzustowski considers only whether a well has occurred before, and LOVETRIS and Burgiel ignore
//! the well. All enemies except Mild and LOVETRIS remember part of the game, so a game owns an
//! [`EnemyState`] and calls it once per piece.
//!
//! **Loop rule.** The children of a piece are the wells that result from placing it. The *loop count* of
//! a piece is the number of times that its most frequent child has already occurred in the game. Its
//! *rating* is the highest [`Board::rating`](crate::Board::rating) that the player can reach with it.
//! HATETRIS sorts the pieces by loop count, then by rating, then in the order `S Z O I L J T`, and gives
//! the first piece. In nearly all wells, the piece that Mild gives, which has the lowest rating, has
//! a loop count of zero. HATETRIS then gives the same piece, so one expansion and one lookup per child
//! are enough. Otherwise, all pieces are rated and tried in the order of their ratings
//! until one has a loop count of zero. If there is no such piece, HATETRIS gives the first of the
//! pieces with the lowest loop count.

use crate::emulator::{Children, Emulator};
use crate::piece::Piece;
use crate::well::Well;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The algorithm that chooses the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Enemy {
    /// HATETRIS with its loop rule, the enemy in games that count as score records.
    #[default]
    Hatetris,
    /// HATETRIS without the loop rule: gives the piece that leaves the highest stack if the player
    /// locks it in the best position.
    Mild,
    /// LOVETRIS: always gives `I`.
    Lovetris,
    /// Burgiel (1997): gives `S` and `Z` alternately.
    Burgiel,
    /// Brzustowski (1992): gives `S` until a well repeats, then `Z` until a well repeats, and so
    /// on. The change takes effect one piece after the repeated well.
    Brzustowski,
}

/// Error for an unknown enemy name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown enemy {0:?}: use hatetris, mild, lovetris, burgiel or brzustowski")]
pub struct UnknownEnemy(pub String);

impl Enemy {
    /// All enemies.
    pub const ALL: [Enemy; 5] = [
        Enemy::Hatetris,
        Enemy::Mild,
        Enemy::Lovetris,
        Enemy::Burgiel,
        Enemy::Brzustowski,
    ];

    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Enemy::Hatetris => "hatetris",
            Enemy::Mild => "mild",
            Enemy::Lovetris => "lovetris",
            Enemy::Burgiel => "burgiel",
            Enemy::Brzustowski => "brzustowski",
        }
    }
}

impl fmt::Display for Enemy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Enemy {
    type Err = UnknownEnemy;

    /// Parses the name of an enemy, ignoring case.
    fn from_str(name: &str) -> Result<Enemy, UnknownEnemy> {
        Enemy::ALL
            .into_iter()
            .find(|enemy| enemy.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownEnemy(name.to_owned()))
    }
}

/// An enemy and its memory of the current game. Only the memory of HATETRIS grows throughout the game,
/// by one entry per distinct well. Brzustowski's list of wells is cleared whenever the piece changes.
#[derive(Clone, Debug)]
pub struct EnemyState {
    enemy: Enemy,
    memory: Memory,
}

#[derive(Clone, Debug)]
enum Memory {
    Hatetris(Visits),
    Mild,
    Lovetris,
    Burgiel { next: Piece },
    Brzustowski { step: Step, list: HashSet<Well> },
}

/// For each well, the number of pieces that have entered it, including the current piece.
#[derive(Clone, Debug, Default)]
struct Visits(HashMap<Well, u32>);

/// A step of Brzustowski's algorithm, which lasts for one or more pieces. In the published algorithm,
/// a step gives one piece and shows the next piece in a preview. This game has no preview, so each step
/// gives the piece that the published step shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Step 1: gives `S` until a well repeats.
    Left,
    /// Step 2: gives `Z` once, in any well.
    ToRight,
    /// Step 3: gives `Z` until a well repeats.
    Right,
    /// Step 4: gives `S` once, in any well.
    ToLeft,
}

impl EnemyState {
    /// Creates the state before the first piece of a game.
    pub fn new(enemy: Enemy) -> EnemyState {
        let memory = match enemy {
            Enemy::Hatetris => Memory::Hatetris(Visits::default()),
            Enemy::Mild => Memory::Mild,
            Enemy::Lovetris => Memory::Lovetris,
            Enemy::Burgiel => Memory::Burgiel { next: Piece::S },
            Enemy::Brzustowski => Memory::Brzustowski {
                step: Step::Left,
                list: HashSet::new(),
            },
        };
        EnemyState { enemy, memory }
    }

    /// Returns the enemy.
    pub fn enemy(&self) -> Enemy {
        self.enemy
    }

    /// Returns the piece that the enemy gives in `well`. Call this method exactly once for each piece
    /// of a game, including the first, with the well that the piece enters. The emulators of all calls
    /// must have the same geometry and rules.
    ///
    /// `children` is a scratch buffer. Its contents after the call are unspecified.
    pub fn next_piece(
        &mut self,
        emulator: &Emulator,
        well: &Well,
        children: &mut Children,
    ) -> Piece {
        match &mut self.memory {
            Memory::Hatetris(visits) => visits.next_piece(emulator, well, children),
            Memory::Mild => emulator.piece(well),
            Memory::Lovetris => Piece::I,
            Memory::Burgiel { next } => {
                let other = if *next == Piece::S {
                    Piece::Z
                } else {
                    Piece::S
                };
                std::mem::replace(next, other)
            }
            Memory::Brzustowski { step, list } => step.next_piece(list, well),
        }
    }
}

impl Visits {
    /// Counts the piece that enters `well` and returns the piece that HATETRIS gives there.
    fn next_piece(&mut self, emulator: &Emulator, well: &Well, children: &mut Children) -> Piece {
        *self.0.entry(*well).or_default() += 1;
        let mild = emulator.expand(well, children);
        let visits = |child: &Well| self.0.get(child).copied().unwrap_or(0);
        if loops(children, visits) == 0 {
            return mild;
        }
        piece_with_fewest_loops(emulator, well, visits, children)
    }
}

/// Returns the piece that HATETRIS gives in `well`: the piece with the fewest loops. `visits` returns the
/// number of pieces of the game that have entered a well, including the piece that enters `well`.
///
/// `children` is a scratch buffer. Its contents after the call are unspecified.
pub fn piece_with_fewest_loops(
    emulator: &Emulator,
    well: &Well,
    visits: impl Fn(&Well) -> u32,
    children: &mut Children,
) -> Piece {
    let ratings = emulator.ratings(well);
    let mut order = Piece::ALL;
    order.sort_by_key(|piece| ratings[piece.index()]); // stable: S Z O I L J T break ties
    let mut fewest = u32::MAX;
    let mut best = order[0];
    for piece in order {
        emulator.children(well, piece, children);
        let loops = loops(children, &visits);
        if loops < fewest {
            (fewest, best) = (loops, piece);
        }
        if loops == 0 {
            break;
        }
    }
    best
}

/// Returns the number of loops of the piece that produces `children`: the number of pieces that have
/// entered the most frequent child.
fn loops(children: &Children, visits: impl Fn(&Well) -> u32) -> u32 {
    children.wells().iter().map(visits).max().unwrap_or(0)
}

impl Step {
    /// Returns the piece that this step gives in `well`, and changes to the next step if this one ends.
    fn next_piece(&mut self, list: &mut HashSet<Well>, well: &Well) -> Piece {
        let given = match self {
            Step::Left | Step::ToLeft => Piece::S,
            Step::Right | Step::ToRight => Piece::Z,
        };
        *self = match self {
            Step::Left if list.contains(well) => Step::ToRight,
            Step::Right if list.contains(well) => Step::ToLeft,
            Step::Left | Step::Right => {
                list.insert(*well);
                *self
            }
            Step::ToRight => {
                list.clear();
                Step::Right
            }
            Step::ToLeft => {
                list.clear();
                Step::Left
            }
        };
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Reference;
    use crate::rules::Rules;
    use crate::well::Geometry;

    /// Returns the piece that HATETRIS gives, computed directly from the wording of the rules.
    fn naive(oracle: &Reference, seen: &HashMap<Well, u32>, well: &Well) -> Piece {
        let value = |piece: Piece| {
            let (mut loops, mut rating) = (0, 0);
            oracle.for_each_lock(well, piece, |_, lock| {
                // `Board::well` omits the cells above the bar. So the well of a lock that ends the
                // game may equal a well seen before, but such a lock has no loops.
                let count = seen.get(&lock.board.well()).copied().unwrap_or(0);
                loops = loops.max(if lock.over { 0 } else { count });
                rating = rating.max(lock.board.rating());
            });
            (loops, rating, piece.index())
        };
        Piece::ALL
            .into_iter()
            .min_by_key(|&piece| value(piece))
            .unwrap()
    }

    /// Returns the pieces that an enemy gives in these wells, in order.
    fn pieces(enemy: Enemy, wells: &[Well]) -> String {
        let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
        let mut children = Children::new();
        let mut state = EnemyState::new(enemy);
        assert_eq!(state.enemy(), enemy);
        let piece = |well| state.next_piece(&emulator, well, &mut children).letter();
        wells.iter().map(piece).collect()
    }

    /// Returns three different wells.
    fn abc() -> [Well; 3] {
        ["...####...", ".####.....", "####......"]
            .map(|picture| Well::from_picture(Geometry::STANDARD, picture).unwrap())
    }

    #[test]
    fn names_are_parsed_ignoring_case() {
        for enemy in Enemy::ALL {
            assert_eq!(enemy.to_string().parse(), Ok(enemy));
            assert_eq!(enemy.name().to_uppercase().parse(), Ok(enemy));
        }
        let error = "tetris".parse::<Enemy>().unwrap_err().to_string();
        assert!(
            error.contains("\"tetris\"") && error.contains("brzustowski"),
            "{error}"
        );
    }

    #[test]
    fn lovetris_gives_i_and_burgiel_alternates_s_and_z() {
        let wells = [Well::EMPTY; 5];
        assert_eq!(pieces(Enemy::Lovetris, &wells), "IIIII");
        assert_eq!(pieces(Enemy::Burgiel, &wells), "SZSZS");
    }

    #[test]
    fn hatetris_gives_same_piece_as_mild_if_no_piece_loops() {
        let wells = [Well::EMPTY; 3];
        assert_eq!(pieces(Enemy::Mild, &wells), "SSS");
        assert_eq!(pieces(Enemy::Hatetris, &wells), "SSS");
    }

    #[test]
    fn brzustowski_switches_one_piece_after_a_well_repeats() {
        let [a, b, c] = abc();
        assert_eq!(pieces(Enemy::Brzustowski, &[a, b, c]), "SSS");
        // At the second `a`, the enemy still gives S. Step 2 then gives Z in any well and clears
        // the list. The change from Z back to S works the same way.
        assert_eq!(
            pieces(Enemy::Brzustowski, &[a, b, a, b, a, b, a, c, a, b, a]),
            "SSSZZZZSSSS"
        );
        // Steps 2 and 4 neither look up the well in the list nor add it.
        assert_eq!(
            pieces(Enemy::Brzustowski, &[a, a, b, b, c, c, a]),
            "SSZZZZS"
        );
    }

    /// Returns a HATETRIS enemy with these counts in its memory.
    fn having_seen(seen: &HashMap<Well, u32>) -> EnemyState {
        EnemyState {
            enemy: Enemy::Hatetris,
            memory: Memory::Hatetris(Visits(seen.clone())),
        }
    }

    /// Returns one child and its count for each piece with a count above 0.
    fn one_child_each(oracle: &Reference, well: &Well, counts: [u32; 7]) -> HashMap<Well, u32> {
        let child = |piece| oracle.expand(well, piece).children[0].0;
        Piece::ALL
            .into_iter()
            .map(child)
            .zip(counts)
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    #[test]
    fn hatetris_gives_piece_with_fewest_loops() {
        let geometry = Geometry::STANDARD;
        let oracle = Reference::new(geometry, Rules::default());
        let emulator = Emulator::new(geometry, Rules::default());
        let well = Well::EMPTY;
        for (counts, expected) in [
            ([0, 0, 0, 0, 0, 0, 0], Piece::S),
            ([1, 0, 0, 0, 0, 0, 0], Piece::Z),
            ([1, 1, 0, 0, 0, 0, 0], Piece::O),
            ([1, 1, 1, 0, 0, 0, 0], Piece::L), // I has a higher rating than L, J and T
            ([1, 1, 1, 0, 1, 1, 1], Piece::I),
            ([1, 1, 1, 1, 1, 1, 1], Piece::S), // all pieces loop: rating and order decide
            ([2, 1, 1, 1, 1, 1, 1], Piece::Z), // S has more loops than the others
            ([3, 2, 2, 2, 3, 1, 1], Piece::J),
            ([3, 2, 2, 1, 3, 2, 2], Piece::I), // counts take precedence over ratings
        ] {
            let seen = one_child_each(&oracle, &well, counts);
            let piece = having_seen(&seen).next_piece(&emulator, &well, &mut Children::new());
            assert_eq!(piece, expected, "{counts:?}");
            assert_eq!(piece, naive(&oracle, &seen, &well), "{counts:?}");
        }
    }

    /// A small random number generator.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    #[test]
    fn piece_matches_rules_after_random_histories() {
        let mut dice = Dice(1);
        let mut fallbacks = 0;
        for (width, height) in [(4, 6), (6, 6), (10, 16)] {
            let geometry = Geometry::new(width, height).unwrap();
            let oracle = Reference::new(geometry, Rules::default());
            let emulator = Emulator::new(geometry, Rules::default());
            let mut well = Well::EMPTY;
            for _ in 0..200 {
                // Choose random counts for random children: for all pieces, or only for a few.
                let most = 1 + dice.below(3);
                let counts = Piece::ALL.map(|_| (dice.below(most + 1) + most / 2) as u32);
                let mut seen = HashMap::new();
                for (piece, count) in Piece::ALL.into_iter().zip(counts) {
                    let children = oracle.expand(&well, piece).children;
                    if count > 0 && !children.is_empty() {
                        seen.insert(children[dice.below(children.len())].0, count);
                    }
                }
                fallbacks += usize::from(seen.len() == 7);
                let mut state = having_seen(&seen);
                let piece = state.next_piece(&emulator, &well, &mut Children::new());
                *seen.entry(well).or_default() += 1;
                assert_eq!(piece, naive(&oracle, &seen, &well), "{well:?} {seen:?}");
                let children = oracle.expand(&well, piece).children;
                well = match children.len() {
                    0 => Well::EMPTY,
                    n => children[dice.below(n)].0,
                };
            }
        }
        assert!(fallbacks > 50, "{fallbacks}");
    }

    /// Returns the wells from which a player can continue forever against Mild. For each well, also
    /// returns its children with the same property.
    fn endless_wells(emulator: &Emulator) -> HashMap<Well, Vec<Well>> {
        let mut children = Children::new();
        let mut after: HashMap<Well, Vec<Well>> = HashMap::new();
        let mut waiting = vec![Well::EMPTY];
        while let Some(well) = waiting.pop() {
            after.entry(well).or_insert_with(|| {
                emulator.expand(&well, &mut children);
                waiting.extend_from_slice(children.wells());
                children.wells().to_vec()
            });
        }
        loop {
            let dead: Vec<_> = after.iter().filter(|(_, next)| next.is_empty()).collect();
            let dead: HashSet<Well> = dead.into_iter().map(|(&well, _)| well).collect();
            if dead.is_empty() {
                return after;
            }
            after.retain(|well, _| !dead.contains(well));
            after
                .values_mut()
                .for_each(|next| next.retain(|well| !dead.contains(well)));
        }
    }

    #[test]
    fn piece_matches_rules_in_wells_that_repeat() {
        let geometry = Geometry::new(4, 4).unwrap();
        let oracle = Reference::new(geometry, Rules::default());
        let emulator = Emulator::new(geometry, Rules::default());
        let endless = endless_wells(&emulator);
        let mut dice = Dice(7);
        let mut children = Children::new();
        let mut changed = 0;
        for _ in 0..50 {
            let mut state = EnemyState::new(Enemy::Hatetris);
            let mut seen = HashMap::new();
            let mut well = Well::EMPTY;
            for _ in 0..200 {
                *seen.entry(well).or_default() += 1;
                let piece = state.next_piece(&emulator, &well, &mut children);
                assert_eq!(piece, naive(&oracle, &seen, &well), "{well:?}");
                changed += usize::from(piece != oracle.piece(&well));
                let all = oracle.expand(&well, piece).children;
                let mut good = all.clone();
                good.retain(|(child, _)| endless.contains_key(child));
                let choice = if good.is_empty() { all } else { good };
                match choice.len() {
                    0 => break,
                    n => well = choice[dice.below(n)].0,
                }
            }
        }
        assert!(
            changed > 20,
            "the loop rule changed the piece only {changed} times"
        );
    }
}
