//! The cut: the rank of the last child that survives, found by counting, wherever the children are.
//!
//! A rank has four digits of 16 bits. Whoever has children counts them by the first digit; the sum of
//! all counts says in which digit the cut lies; then those with that digit are counted by the next.
//! After four rounds the rank is known exactly, and nobody has told another a single well.

use crate::node::NodeWell;

/// The digits a rank has.
pub const DIGITS: u32 = 4;
/// The values a digit has.
pub const DIGIT_VALUES: usize = 1 << 16;

/// How the greatest are told: by score, then by the lower half of the hash.
#[inline]
pub(super) fn rank(score: i32, hash: u64) -> u64 {
    u64::from(score as u32 ^ 1 << 31) << 32 | (hash & 0xffff_ffff)
}

pub(super) fn score_of(rank: u64) -> i32 {
    ((rank >> 32) as u32 ^ 1 << 31) as i32
}

/// What is to be counted in one round: children whose rank begins with `prefix`, by the digit after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountQuery {
    /// How many digits are known, 0 to 3.
    pub known: u32,
    /// The known digits, in the lowest bits.
    pub prefix: u64,
}

impl CountQuery {
    /// The digit by which a child of this rank counts, if it does.
    #[inline]
    pub(super) fn digit(self, rank: u64) -> Option<usize> {
        let shift = 16 * (DIGITS - 1 - self.known);
        let digits = rank >> shift;
        (digits >> 16 == self.prefix).then_some(digits as usize & (DIGIT_VALUES - 1))
    }
}

/// Which children survive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Those above this rank do, those below it do not.
    pub rank: u64,
    /// How many of those of this very rank do.
    pub ties: Ties,
}

impl Cut {
    /// The score of the last that survives; the least there is if all do.
    pub fn score(&self) -> i32 {
        score_of(self.rank)
    }
}

/// Which of the children of the cut's own rank survive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// All. Nearly always there is just one.
    #[default]
    All,
    /// The first so many by packed well: they must be collected to know which those are.
    First(u64),
    /// These, ascending.
    Listed(Vec<NodeWell>),
}

/// The search for the cut.
#[derive(Clone, Debug)]
pub struct CutSearch {
    known: u32,
    prefix: u64,
    /// How many survive of those that begin with the known digits.
    wanted: u64,
    ties: Ties,
    /// There are fewer than are wanted.
    all: bool,
}

impl CutSearch {
    /// The search for the cut above which, and at which, there are `width` children.
    pub fn new(width: usize) -> CutSearch {
        CutSearch {
            known: 0,
            prefix: 0,
            wanted: width as u64,
            ties: Ties::All,
            all: false,
        }
    }

    /// What is to be counted next; `None` once the cut is known.
    pub fn query(&self) -> Option<CountQuery> {
        (!self.all && self.known < DIGITS).then_some(CountQuery {
            known: self.known,
            prefix: self.prefix,
        })
    }

    /// Takes the counts that all have given together, [`DIGIT_VALUES`] of them.
    pub fn answer(&mut self, counts: &[u64]) {
        let mut above = 0;
        let found = counts.iter().enumerate().rev().find(|&(_, &count)| {
            let is_here = above + count >= self.wanted;
            if !is_here {
                above += count;
            }
            is_here
        });
        let Some((digit, &count)) = found else {
            self.all = true;
            return;
        };
        self.prefix = self.prefix << 16 | digit as u64;
        self.known += 1;
        self.wanted -= above;
        if self.known == DIGITS && count > self.wanted {
            self.ties = Ties::First(self.wanted);
        }
    }

    /// The cut, once there is no further query. With a rank of 0 all survive.
    pub fn cut(&self) -> Cut {
        match self.all {
            true => Cut::default(),
            false => Cut {
                rank: self.prefix,
                ties: self.ties.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The counts of all parts together, as machines would give them.
    fn cut_of(width: usize, parts: &[Vec<u64>]) -> Cut {
        let mut search = CutSearch::new(width);
        while let Some(query) = search.query() {
            let mut counts = vec![0; DIGIT_VALUES];
            for &rank in parts.iter().flatten() {
                if let Some(digit) = query.digit(rank) {
                    counts[digit] += 1;
                }
            }
            search.answer(&counts);
        }
        search.cut()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What the parts' children above the cut are together is what sorting all of them gives.
        #[test]
        fn the_tops_of_the_parts_are_the_top_of_all(
            parts in prop::collection::vec(
                // Few different ranks, so that there are ties; some far apart.
                prop::collection::vec(prop_oneof![0u64..20, any::<u64>()], 0..40), 1..5),
            width in 1usize..80,
        ) {
            let mut all: Vec<u64> = parts.iter().flatten().copied().collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let cut = cut_of(width, &parts);
            let above = all.iter().filter(|&&rank| rank > cut.rank).count();
            let tied = all.iter().filter(|&&rank| rank == cut.rank).count();
            let survive = above + match cut.ties {
                Ties::All => tied,
                Ties::First(count) => {
                    prop_assert!((count as usize) < tied);
                    count as usize
                }
                Ties::Listed(_) => unreachable!(),
            };
            prop_assert_eq!(survive, width.min(all.len()));
            prop_assert!(all.len() < width || cut.rank == all[width - 1]);
        }
    }
}
