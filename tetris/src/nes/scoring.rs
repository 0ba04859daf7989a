//! Points, levels and speed of a game.

/// Highest score that the original game displays. A game with at least this score is called a *maxout*.
pub const MAXOUT: u32 = 999_999;

/// Returns the number of cleared rows at which a game with the given start level leaves that level.
pub const fn first_transition(start_level: u32) -> u32 {
    let early = 10 * start_level + 10;
    let late = (10 * start_level).saturating_sub(50);
    let late = if late < 100 { 100 } else { late };
    if early < late { early } else { late }
}

/// Returns the level of a game with the given start level after `lines` rows have been cleared.
pub const fn level_at(start_level: u32, lines: u32) -> u32 {
    let first = first_transition(start_level);
    if lines < first {
        return start_level;
    }
    start_level + 1 + (lines - first) / 10
}

/// Returns the points for clearing `lines` rows with one piece. `level` is the level after these rows have been
/// counted.
pub const fn points(lines: u8, level: u32) -> u32 {
    let base = match lines {
        1 => 40,
        2 => 100,
        3 => 300,
        4 => 1200,
        _ => 0,
    };
    base * (level + 1)
}

/// Returns the number of frames in which a piece falls by one row at a level.
pub const fn frames_per_row(level: u32) -> u32 {
    match level {
        0..=8 => 48 - 5 * level,
        9 => 6,
        10..=12 => 5,
        13..=15 => 4,
        16..=18 => 3,
        19..=28 => 2,
        _ => 1,
    }
}

/// Score, rows cleared and level of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    /// Points.
    pub points: u32,
    /// Number of rows cleared.
    pub lines: u32,
    /// Level.
    pub level: u32,
    start_level: u32,
}

impl Score {
    /// Creates the score at the start of a game.
    pub const fn new(start_level: u32) -> Score {
        Score {
            points: 0,
            lines: 0,
            level: start_level,
            start_level,
        }
    }

    /// Adds the rows cleared by one piece.
    pub const fn add(&mut self, lines: u8) {
        self.lines += lines as u32;
        self.level = level_at(self.start_level, self.lines);
        self.points += points(lines, self.level);
    }
}
