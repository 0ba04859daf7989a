//! Search for the *cut*, the lowest rank with which a child survives.
//!
//! A rank (a score with its tie-break) has four digits of 16 bits. In the first round, each machine
//! counts its children by the first digit. The sum of these counts determines the first digit of
//! the cut. In the second round, the children with that digit are counted by the second digit, and so
//! on. Four rounds find the exact rank of the cut. The machines exchange only counts, not wells.

use crate::node::{Node, NodeWell};

/// Number of digits of a rank.
pub const DIGITS: u32 = 4;
/// Number of low bits of a digit that select a counter within a page.
const PAGE_BITS: u32 = 8;

/// The counters of digits that differ only in their lowest [`PAGE_BITS`] bits.
type Page = [u64; 1 << PAGE_BITS];

/// Counts of children by digit. A page of counters is allocated when its first child is counted. If all
/// 65,536 counters were always allocated, a narrow beam would spend most of its time on counters that are zero.
#[derive(Clone, Debug)]
pub struct DigitCounts(Vec<Option<Box<Page>>>);

impl Default for DigitCounts {
    fn default() -> DigitCounts {
        DigitCounts(vec![None; 1 << (u16::BITS - PAGE_BITS)])
    }
}

impl DigitCounts {
    /// Adds `count` children with this digit.
    #[inline]
    pub fn add(&mut self, digit: u16, count: u64) {
        let page = &mut self.0[usize::from(digit >> PAGE_BITS)];
        let page = page.get_or_insert_with(|| Box::new([0; 1 << PAGE_BITS]));
        let sum = &mut page[usize::from(digit) % page.len()];
        *sum = sum.saturating_add(count);
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &DigitCounts) {
        for (digit, count) in other.iter() {
            self.add(digit, count);
        }
    }

    /// Returns an iterator over the digits with a count above zero, in ascending order, and their counts.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u16, u64)> {
        let pages = self.0.iter().enumerate();
        let pages = pages.filter_map(|(at, page)| Some((at << PAGE_BITS, page.as_ref()?)));
        pages.flat_map(|(first, page)| {
            let counts = page.iter().enumerate();
            let counts = counts.filter(|(_, count)| **count > 0);
            counts.map(move |(at, &count)| ((first | at) as u16, count))
        })
    }
}

/// Returns the rank of a child. A greater rank is better. The upper half is the score with its sign bit
/// flipped, so that ranks can be compared as unsigned numbers. The lower half is the lower half of the
/// hash.
#[inline]
pub(super) fn rank(score: i32, hash: u64) -> u64 {
    u64::from(score as u32 ^ 1 << 31) << 32 | (hash & 0xffff_ffff)
}

pub(super) fn score_of(rank: u64) -> i32 {
    ((rank >> 32) as u32 ^ 1 << 31) as i32
}

/// The query of one round. It selects the children whose rank begins with the digits in `prefix`, and
/// requests their number for each value of the next digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountQuery {
    /// Number of known digits, 0 to 3.
    pub known: u32,
    /// The known digits of the cut, in the lowest bits.
    pub prefix: u64,
}

impl CountQuery {
    /// Returns the digit of `rank` that follows `prefix`, or `None` if the rank does not begin with
    /// `prefix`.
    #[inline]
    pub(super) fn digit(self, rank: u64) -> Option<u16> {
        let shift = 16 * (DIGITS - 1 - self.known);
        let digits = rank >> shift;
        (digits >> 16 == self.prefix).then_some(digits as u16)
    }
}

/// The boundary between children that survive and children that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Children with a greater rank survive. Children with a lower rank do not.
    pub rank: u64,
    /// The survivors among the children with exactly this rank.
    pub ties: Ties,
}

impl Cut {
    /// Returns the cut for children with these ranks: `width` children survive, or all of them if there
    /// are fewer. Reorders `ranks`.
    pub(super) fn of_ranks(width: usize, ranks: &mut [u64]) -> Cut {
        if ranks.len() < width {
            return Cut::default();
        }
        let (above, &mut rank, below) = ranks.select_nth_unstable_by(width - 1, |a, b| b.cmp(a));
        let tied = |ranks: &[u64]| ranks.iter().filter(|&&other| other == rank).count();
        let wanted = tied(above) + 1;
        let ties = if tied(below) == 0 {
            Ties::All
        } else {
            Ties::First(wanted as u64)
        };
        Cut { rank, ties }
    }

    /// Returns whether a child survives. [`Ties::First`] does not identify the survivors, so it counts like [`Ties::All`].
    #[inline]
    pub(super) fn survives(&self, node: &Node) -> bool {
        let rank = rank(node.score, node.well.hash());
        rank > self.rank
            || rank == self.rank
                && match &self.ties {
                    Ties::Listed(wells) => wells.binary_search(&node.well).is_ok(),
                    Ties::All | Ties::First(_) => true,
                }
    }

    /// Replaces [`Ties::First`] with the list of the survivors. `tied` contains the children with the rank of the cut.
    pub(super) fn list_ties(&mut self, tied: impl FnOnce(u64) -> Vec<NodeWell>) {
        if let Ties::First(count) = self.ties {
            let mut tied = tied(self.rank);
            tied.sort_unstable();
            tied.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            self.ties = Ties::Listed(tied);
        }
    }

    /// Returns the score part of the rank. This is the lowest score of a survivor, or [`i32::MIN`] if
    /// there are fewer children than the width.
    pub fn score(&self) -> i32 {
        score_of(self.rank)
    }
}

/// The survivors among the children with the rank of the cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// All of these children survive. There is nearly always only one such child.
    #[default]
    All,
    /// Only this number of these children survive: the first ones in the order of packed wells. To
    /// identify them, the caller must collect all children with the rank of the cut.
    First(u64),
    /// Only the children with these wells survive. The list is in ascending order.
    Listed(Vec<NodeWell>),
}

/// The search for the cut by counting children. A caller answers each [query](CutSearch::query) with
/// [`CutSearch::answer`] until there are no more queries.
#[derive(Clone, Debug)]
pub struct CutSearch {
    known: u32,
    prefix: u64,
    /// Number of children to keep among those whose rank begins with the known digits.
    wanted: u64,
    ties: Ties,
    /// Whether all children survive because there are fewer than `wanted`.
    all: bool,
}

impl CutSearch {
    /// Starts the search for a cut with which `width` children survive, or all children if there are
    /// fewer.
    pub fn new(width: usize) -> CutSearch {
        CutSearch {
            known: 0,
            prefix: 0,
            wanted: width as u64,
            ties: Ties::All,
            all: false,
        }
    }

    /// Returns the next query, or `None` if the cut is known.
    pub fn query(&self) -> Option<CountQuery> {
        (!self.all && self.known < DIGITS).then_some(CountQuery {
            known: self.known,
            prefix: self.prefix,
        })
    }

    /// Processes the answer to the current query. `counts` is the sum of all machines' counts.
    pub fn answer(&mut self, counts: &DigitCounts) {
        let mut above = 0;
        let found = counts.iter().rev().find(|&(_, count)| {
            let is_here = above + count >= self.wanted;
            if !is_here {
                above += count;
            }
            is_here
        });
        let Some((digit, count)) = found else {
            self.all = true;
            return;
        };
        self.prefix = self.prefix << 16 | u64::from(digit);
        self.known += 1;
        self.wanted -= above;
        if self.known == DIGITS && count > self.wanted {
            self.ties = Ties::First(self.wanted);
        }
    }

    /// Returns the cut, which is valid only after [`CutSearch::query`] has returned `None`. If there
    /// are fewer children than the width, returns the default cut, with which all children survive.
    pub fn cut(&self) -> Cut {
        if self.all {
            return Cut::default();
        }
        Cut {
            rank: self.prefix,
            ties: self.ties.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the cut that the search finds if each part contains the ranks of one machine.
    fn cut_of(width: usize, parts: &[Vec<u64>]) -> Cut {
        let mut search = CutSearch::new(width);
        while let Some(query) = search.query() {
            let mut counts = DigitCounts::default();
            for part in parts {
                let mut more = DigitCounts::default();
                for digit in part.iter().filter_map(|&rank| query.digit(rank)) {
                    more.add(digit, 1);
                }
                counts.merge(&more);
            }
            search.answer(&counts);
        }
        search.cut()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn cut_matches_sorting_all_ranks(
            parts in prop::collection::vec(
                // Ranks from the small range produce ties.
                prop::collection::vec(prop_oneof![0u64..20, any::<u64>()], 0..40), 1..5),
            width in 1usize..80,
        ) {
            let mut all: Vec<u64> = parts.iter().flatten().copied().collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let cut = cut_of(width, &parts);
            prop_assert_eq!(&Cut::of_ranks(width, &mut all.clone()), &cut);
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
