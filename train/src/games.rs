//! Games of HATETRIS from which a network can learn: games that the program contains, and own games of a training run.

use crate::random::Random;
use crate::recipe::{BeamRecipe, Recipe, RecipeError};
use hatebeam_game::{Enemy, Geometry, Rules, Well, decode, play};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// A game that the program contains.
pub struct BuiltInGame {
    /// Name of the game in recipes: the player or the evaluator, followed by the number of lines cleared.
    pub name: &'static str,
    /// The replay, encoded in Base2048.
    pub replay: &'static str,
}

macro_rules! games {
    ($folder:literal: $($name:literal),* $(,)?) => {
        [$(BuiltInGame {
            name: $name,
            replay: include_str!(concat!("../../examples/", $folder, "/", $name, ".txt")),
        }),*]
    };
}

/// Published games. Their replays are published at <https://qntm.org/hatetris> and in the tests of HATETRIS.
pub const PUBLIC_GAMES: [BuiltInGame; 8] = games![
    "games":
    "david-and-felipe-148",
    "david-and-felipe-152",
    "tim-157",
    "tim-232",
    "knewjade-289",
    "david-and-felipe-302",
    "david-and-felipe-366",
    "david-and-felipe-3711",
];

/// Games of networks that have seen no public game.
pub const OWN_GAMES: [BuiltInGame; 3] = games![
    "records":
    "network-91",
    "chains-130",
    "chains-148",
];

/// Returns all games that the program contains.
pub(crate) fn built_in_games() -> impl Iterator<Item = &'static BuiltInGame> {
    const ALL: [&[BuiltInGame]; 2] = [&PUBLIC_GAMES, &OWN_GAMES];
    ALL.into_iter().flatten()
}

impl BuiltInGame {
    /// Returns the well before each piece, beginning with the empty well.
    pub fn wells(&self) -> Vec<Well> {
        wells_of_replay(self.replay).expect("built-in replays are valid")
    }
}

/// Returns the well before each piece of a game, beginning with the empty well. The game is the built-in game with this
/// name, or else a replay of a finished game.
///
/// # Errors
/// Returns [`RecipeError::Game`] if there is no such game.
pub(crate) fn wells_of_game(game: &str) -> Result<Vec<Well>, RecipeError> {
    match built_in_games().find(|built_in| built_in.name == game) {
        Some(built_in) => Ok(built_in.wells()),
        None => wells_of_replay(game).ok_or_else(|| RecipeError::Game(game.to_owned())),
    }
}

fn wells_of_replay(replay: &str) -> Option<Vec<Well>> {
    let (keys, _) = decode(replay).ok()?;
    let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
    record.over.then(|| record.wells().collect())
}

/// Minimum number of pieces that a game still places after a well with which a beam starts, unless the recipe gives
/// `back`.
const LEAST_PIECES: usize = 150;
/// Share of a kept game's wells above which a new game counts as a variant of it, in percent.
const VARIANT: usize = 70;

/// A well from which the network learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GameWell {
    pub(crate) well: Well,
    /// Number of pieces that the player placed after reaching this well.
    pub(crate) pieces: usize,
    /// Index of the game.
    game: usize,
}

/// A well of a game with which a beam starts, and the wells around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GameStart<'a> {
    /// The wells of the game before the start.
    pub(crate) before: &'a [Well],
    /// The start.
    pub(crate) well: Well,
    /// The wells of the game after the start.
    pub(crate) rest: &'a [Well],
}

impl<'a> GameStart<'a> {
    /// The empty well, without a game.
    pub(crate) const EMPTY: GameStart<'static> = GameStart {
        before: &[],
        well: Well::EMPTY,
        rest: &[],
    };

    /// Returns the start that is the last of the first `wells` wells of a game.
    fn of(game: &'a [Well], wells: usize) -> GameStart<'a> {
        GameStart {
            before: &game[..wells - 1],
            well: game[wells - 1],
            rest: &game[wells..],
        }
    }
}

/// The games from which a training run learns: public games, followed by own games.
#[derive(Debug, Default)]
pub(crate) struct Games {
    /// The well before each piece of each game.
    all: Vec<Vec<Well>>,
    /// Number of public games.
    public: usize,
    /// Wells from which the network learns.
    wells: Vec<GameWell>,
    /// Number of wells of public games in `wells`.
    public_wells: usize,
}

impl Games {
    /// Creates the list of the games that a recipe names.
    ///
    /// # Errors
    /// Returns [`RecipeError::Game`] if no built-in game has one of the names.
    pub(crate) fn new(recipe: &Recipe) -> Result<Games, RecipeError> {
        let mut games = Games::default();
        for named in &recipe.games {
            let wells = wells_of_game(&named.name)?;
            let learned = named.pieces.unwrap_or(wells.len());
            games
                .wells
                .extend(wells_of(&wells, games.all.len()).take(learned));
            games.all.push(wells);
        }
        games.public = games.all.len();
        games.public_wells = games.wells.len();
        if let Some(own) = &recipe.own_games {
            let first = own.first.iter().map(|game| wells_of_game(game));
            games.set_own(first.collect::<Result<_, _>>()?);
        }
        Ok(games)
    }

    /// Returns the own games, each as the well before each piece.
    pub(crate) fn own(&self) -> &[Vec<Well>] {
        &self.all[self.public..]
    }

    /// Replaces the own games. If a well is part of several of them, the network learns from the one that is longest after
    /// this well.
    pub(crate) fn set_own(&mut self, own: Vec<Vec<Well>>) {
        self.all.truncate(self.public);
        self.wells.truncate(self.public_wells);
        let mut longest: BTreeMap<Well, GameWell> = BTreeMap::new();
        for wells in own {
            for new in wells_of(&wells, self.all.len()) {
                let known = longest.entry(new.well).or_insert(new);
                if known.pieces < new.pieces {
                    *known = new;
                }
            }
            self.all.push(wells);
        }
        self.wells.extend(longest.into_values());
    }

    /// Adds own games, and keeps the longest `keep` of them. A new game that contains more than [`VARIANT`] percent of the
    /// wells of a kept game can only replace this game, so that the kept games differ.
    pub(crate) fn add_own(&mut self, new: Vec<Vec<Well>>, keep: usize) {
        let mut own = self.own().to_vec();
        for game in new {
            let wells: HashSet<&Well> = game.iter().collect();
            let is_variant = |old: &&mut Vec<Well>| {
                let shared = old.iter().filter(|well| wells.contains(well)).count();
                100 * shared > VARIANT * old.len()
            };
            match own.iter_mut().find(is_variant) {
                Some(old) if old.len() < game.len() => *old = game,
                Some(_) => {}
                None => own.push(game),
            }
            own.sort_by_key(|game| Reverse(game.len()));
            own.truncate(keep);
        }
        self.set_own(own);
    }

    /// Draws a well, or returns `None` if there are no games yet.
    pub(crate) fn draw(&self, random: &mut Random) -> Option<GameWell> {
        (!self.wells.is_empty()).then(|| self.wells[random.below(self.wells.len())])
    }

    /// Draws a start, and returns the wells of its game. If the recipe of the beam has `back`, the start is
    /// that many pieces before the end of a game. Otherwise, it is any well after which a game goes on for at least
    /// [`LEAST_PIECES`] pieces. If there is no such well, the start is the empty well.
    pub(crate) fn draw_start(&self, beam: &BeamRecipe, random: &mut Random) -> GameStart<'_> {
        if !self.wells.iter().any(|well| well.pieces >= LEAST_PIECES) {
            return GameStart::EMPTY;
        }
        if let Some(back) = beam.back {
            let games = match beam.longest {
                Some(longest) if !self.own().is_empty() => {
                    &self.own()[..longest.min(self.own().len())]
                }
                _ => &self.all,
            };
            let game = &games[random.below(games.len())];
            let back = random.between(back);
            return GameStart::of(game, game.len().saturating_sub(back).max(1));
        }
        loop {
            if let Some(drawn) = self.draw(random)
                && drawn.pieces >= LEAST_PIECES
            {
                let game = &self.all[drawn.game];
                return GameStart::of(game, game.len() - drawn.pieces + 1);
            }
        }
    }
}

/// Returns the wells of a game.
fn wells_of(wells: &[Well], game: usize) -> impl Iterator<Item = GameWell> {
    (1..=wells.len())
        .rev()
        .zip(wells)
        .map(move |(pieces, &well)| GameWell { well, pieces, game })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatebeam_game::Encoding;

    #[test]
    fn games_clear_number_of_lines_in_their_names() {
        for game in built_in_games() {
            let keys = Encoding::Base2048.decode(game.replay.trim()).unwrap();
            let record = play(Geometry::STANDARD, Rules::default(), Enemy::Hatetris, &keys);
            assert!(record.over, "{}", game.name);
            assert!(
                game.name.ends_with(&format!("-{}", record.score)),
                "{}",
                game.name
            );
            assert_eq!(game.wells().len(), record.turns.len());
        }
    }

    fn recipe(text: &str) -> Recipe {
        Recipe::from_toml(text).unwrap()
    }

    fn beam(back: Option<[usize; 2]>, longest: Option<usize>) -> BeamRecipe {
        BeamRecipe {
            back,
            longest,
            ..Recipe::default().stages[0].beams[0].clone()
        }
    }

    #[test]
    fn wells_record_number_of_remaining_pieces() {
        let game = "[[games]]\nname = \"david-and-felipe-3711\"\n";
        let games = Games::new(&recipe(&format!("{game}pieces = 100\n{game}"))).unwrap();
        let wells = &games.wells;
        assert_eq!(wells.len(), 100 + 9309);
        assert_eq!(wells[0].well, Well::EMPTY);
        let pieces = [wells[0], wells[99], wells[100], wells[9408]].map(|well| well.pieces);
        assert_eq!(pieces, [9309, 9210, 9309, 1]);
    }

    #[test]
    fn starts_are_parts_of_games() {
        let text = "[[games]]\nname = \"tim-157\"\n[own_games]\nkeep = 3\nfirst = [\"chains-148\"]";
        let games = Games::new(&recipe(text)).unwrap();
        let mut random = Random::new(1, 1, 1);
        let mut seen = HashSet::new();
        for _ in 0..200 {
            for back in [None, Some([20, 50])] {
                let start = games.draw_start(&beam(back, None), &mut random);
                let wells = [start.before, &[start.well], start.rest].concat();
                let game = games.all.iter().position(|game| *game == wells).unwrap();
                let pieces = start.rest.len();
                match back {
                    None => assert!(pieces >= LEAST_PIECES - 1, "{pieces}"),
                    Some([least, most]) => assert!((least..=most).contains(&pieces), "{pieces}"),
                }
                seen.insert((game, back.is_some()));
            }
        }
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn longest_different_own_games_are_kept() {
        let wells = OWN_GAMES[2].wells();
        let mut games = Games::default();
        let lengths = |games: &Games| games.own().iter().map(Vec::len).collect::<Vec<_>>();
        let start = games.draw_start(&beam(Some([1, 9]), None), &mut Random::new(1, 1, 1));
        assert!(start.well == Well::EMPTY && start.before.is_empty() && start.rest.is_empty());
        games.add_own(vec![wells[..200].to_vec(), wells[..250].to_vec()], 2);
        assert_eq!(
            lengths(&games),
            [250],
            "the second game is a variant of the first one"
        );
        games.add_own(vec![wells[..220].to_vec()], 2);
        assert_eq!(lengths(&games), [250]);
        let others = OWN_GAMES[..2].iter().map(BuiltInGame::wells).collect();
        games.add_own(others, 2);
        assert_eq!(
            lengths(&games),
            [OWN_GAMES[1].wells().len(), OWN_GAMES[0].wells().len()]
        );
        let longest = beam(Some([1, 9]), Some(1));
        for seed in 0..20 {
            let start = games.draw_start(&longest, &mut Random::new(seed, 1, 1));
            assert!(OWN_GAMES[1].wells().starts_with(start.before));
            assert!(OWN_GAMES[1].wells().ends_with(start.rest));
        }
        // A well of several games has the label of the game that is longest after it.
        let most = OWN_GAMES[1].wells().len();
        let empty: Vec<&GameWell> = games
            .wells
            .iter()
            .filter(|well| well.well == Well::EMPTY)
            .collect();
        assert_eq!(empty.len(), 1);
        assert_eq!(empty[0].pieces, most);
    }
}
