//! Piece generators: the original cartridge's generator, and the generator with which the author of an article made the
//! piece sets for the published games.

use crate::{Mt19937, Piece, Rng};

/// Order in which the cartridge numbers the pieces.
pub const CARTRIDGE_ORDER: [Piece; 7] = [
    Piece::T,
    Piece::J,
    Piece::Z,
    Piece::O,
    Piece::S,
    Piece::L,
    Piece::I,
];

/// Probabilities of the cartridge's next piece, in 32nds. Rows are last pieces and columns are next pieces, both in
/// [`CARTRIDGE_ORDER`].
const CARTRIDGE_TRANSITIONS: [[u8; 7]; 7] = [
    [1, 5, 6, 5, 5, 5, 5],
    [6, 1, 5, 5, 5, 5, 5],
    [5, 6, 1, 5, 5, 5, 5],
    [5, 5, 5, 2, 5, 5, 5],
    [5, 5, 5, 5, 2, 5, 5],
    [6, 5, 5, 5, 5, 1, 5],
    [5, 5, 5, 5, 6, 5, 1],
];

/// Numbers by which the cartridge identifies the spawn orientations of the pieces, in [`CARTRIDGE_ORDER`].
const SPAWN_IDS: [u16; 7] = [0x02, 0x07, 0x08, 0x0a, 0x0b, 0x0e, 0x12];

/// The cartridge's generator. Its state consists of a 16-bit shift register (which the cartridge steps once per
/// frame), the number of pieces drawn, and the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cartridge {
    register: u16,
    count: u8,
    last: usize,
}

impl Cartridge {
    /// Creates a generator from the state of the register, the number of pieces drawn, and the last piece.
    pub fn new(register: u16, count: u8, last: Piece) -> Cartridge {
        let last = CARTRIDGE_ORDER.iter().position(|&piece| piece == last);
        Cartridge {
            register,
            count,
            last: last.expect("CARTRIDGE_ORDER contains every piece"),
        }
    }

    /// Creates a generator from a seed. A seed from 2 to 65,535 is the initial state of the register; any other seed
    /// selects one of these states at random. States 0 and 1 are excluded, because after them the register stays 0.
    pub fn from_seed(seed: u64) -> Cartridge {
        let state = u16::try_from(seed).ok().filter(|&state| state > 1);
        let state = state.unwrap_or_else(|| 2 + Rng::new(seed).below(65_534) as u16);
        Cartridge::new(state, 0, Piece::T)
    }

    /// Returns the state of the register.
    pub const fn register(&self) -> u16 {
        self.register
    }

    /// Steps the register once.
    pub const fn step(&mut self) {
        let feedback = (self.register >> 1 ^ self.register >> 9) & 1;
        self.register = self.register >> 1 | feedback << 15;
    }

    /// Draws the next piece.
    pub fn draw(&mut self) -> Piece {
        self.count = self.count.wrapping_add(1);
        let high = self.register >> 8;
        let mut index = usize::from((high + u16::from(self.count)) & 7);
        if index == 7 || index == self.last {
            self.step();
            let high = self.register >> 8;
            index = usize::from(((high & 7) + SPAWN_IDS[self.last]) % 7);
        }
        self.last = index;
        CARTRIDGE_ORDER[index]
    }

    /// Draws the pieces of a game with `pieces` pieces. Steps the register before each piece: `frames` times, or a
    /// random number of times from 20 to 60 if `frames` is `None`.
    pub fn game(&mut self, pieces: usize, frames: Option<u32>, rng: &mut Rng) -> Vec<Piece> {
        let mut game = Vec::with_capacity(pieces);
        for _ in 0..pieces {
            let steps = frames.unwrap_or_else(|| 20 + rng.below(41) as u32);
            for _ in 0..steps {
                self.step();
            }
            game.push(self.draw());
        }
        game
    }
}

/// Number of pieces per game in the article's piece sets.
pub const ARTICLE_GAME_LENGTH: usize = 1825;

/// Order in which the generator of the article's piece sets numbers the pieces. The article's program adds up the values of the
/// pieces in this order, which affects rounding.
pub const ARTICLE_ORDER: [Piece; 7] = [
    Piece::I,
    Piece::L,
    Piece::J,
    Piece::T,
    Piece::Z,
    Piece::S,
    Piece::O,
];

/// Generator of the article's piece sets. It uses two Mersenne Twisters with the seeds `seed` and `seed + 1`. Each game
/// continues with their states and with the last piece of the previous game.
#[derive(Clone, Debug)]
pub struct ArticleSets {
    first: Mt19937,
    again: Mt19937,
    last: u32,
}

impl ArticleSets {
    /// Creates a generator from a seed. The published results use the seed 205.
    pub fn new(seed: u32) -> ArticleSets {
        ArticleSets {
            first: Mt19937::new(seed),
            again: Mt19937::new(seed.wrapping_add(1)),
            last: 7,
        }
    }

    /// Draws the next piece. The first generator draws a number below eight. If that number is seven, which denotes no
    /// piece, or denotes the last piece, the second generator draws a number below seven instead.
    pub fn draw(&mut self) -> Piece {
        let mut number = self.first.boost_below(8);
        if number == 7 || number == self.last {
            number = self.again.boost_below(7);
        }
        self.last = number;
        ARTICLE_ORDER[number as usize]
    }

    /// Draws the pieces of the next game.
    pub fn game(&mut self) -> Vec<Piece> {
        (0..ARTICLE_GAME_LENGTH).map(|_| self.draw()).collect()
    }
}

/// Probabilities of the next piece after each last piece, for one generator.
#[derive(Debug, PartialEq)]
pub struct Transitions([[f64; 7]; 7]);

impl Transitions {
    /// The article's generator: a piece follows itself with probability 2/56 and each other piece with probability 9/56.
    pub const ARTICLE: &Transitions = &Transitions::article();
    /// The cartridge's generator. The probability also depends on the number of pieces drawn, modulo 8. The table contains
    /// the mean over these eight cases, and assumes that the bits of the generator's shift register are uniformly
    /// distributed.
    pub const CARTRIDGE: &Transitions = &Transitions::cartridge();

    /// Returns the probability of `next` after `last`.
    #[inline]
    pub const fn probability(&self, last: Piece, next: Piece) -> f64 {
        self.0[last.index()][next.index()]
    }

    const fn article() -> Transitions {
        let mut table = [[9.0 / 56.0; 7]; 7];
        let mut piece = 0;
        while piece < 7 {
            table[piece][piece] = 2.0 / 56.0;
            piece += 1;
        }
        Transitions(table)
    }

    const fn cartridge() -> Transitions {
        let mut table = [[0.0; 7]; 7];
        let mut index = 0;
        while index < 49 {
            let (last, next) = (index / 7, index % 7);
            let (from, to) = (CARTRIDGE_ORDER[last], CARTRIDGE_ORDER[next]);
            table[from.index()][to.index()] = CARTRIDGE_TRANSITIONS[last][next] as f64 / 32.0;
            index += 1;
        }
        Transitions(table)
    }
}
