//! The buffers in which one thread collects children for the tables of this process.

use super::Owner;
use super::candidates::{Candidate, Candidates};
use super::layout::ShardLayout;

/// Average number of children that a thread offers to a table at a time. The table is locked once for all of them.
const BATCH: usize = 64;
/// Maximum number of groups. Children are appended to a random group, so the ends of all groups should fit into the L1
/// and L2 caches and their pages into the TLB.
const MAX_GROUPS: usize = 256;
/// Maximum number of children in a group. With 40 bytes each, they fit into the L2 cache while they are divided.
const MAX_GROUP: usize = 4096;

/// Groups of tables with the children collected for them. If there are few tables, each is a group.
pub(super) struct Batches {
    layout: ShardLayout,
    /// For each shard, the number of tables of this process before its own tables.
    tables_before: Vec<usize>,
    /// Binary logarithm of the number of tables in a group.
    tables_log2: u32,
    /// Number of children in a full group.
    full: usize,
    groups: Vec<Vec<Candidate>>,
    /// The children of a group, sorted by table.
    sorted: Vec<Candidate>,
    /// For each table of a group, the end of its children in `sorted`.
    ends: Vec<usize>,
}

/// The division of tables into groups.
struct Grouping {
    tables_log2: u32,
    /// Number of children in a full group.
    full: usize,
    groups: usize,
}

impl Grouping {
    fn new(tables: usize) -> Grouping {
        let tables_log2 = tables
            .div_ceil(MAX_GROUPS)
            .next_power_of_two()
            .trailing_zeros();
        Grouping {
            tables_log2,
            full: (BATCH << tables_log2).min(MAX_GROUP),
            groups: tables.div_ceil(1 << tables_log2),
        }
    }
}

/// Returns an upper bound on the size of the buffers in which one thread collects children for `tables` tables, in
/// bytes. The bound does not decrease with more tables.
pub fn buffer_bytes(tables: u64) -> u64 {
    // The additional child for each table is for the incomplete last group and for sorting.
    let children = tables * (BATCH as u64 + 1);
    let most = (MAX_GROUPS + 1) * MAX_GROUP;
    children.min(most as u64) * size_of::<Candidate>() as u64
}

impl Batches {
    /// Creates empty buffers. `owners` are the owners of all shards, or `None` if this process owns every shard.
    pub(super) fn new(layout: ShardLayout, owners: Option<&[Owner]>) -> Batches {
        let mut tables = 0;
        let tables_before = (0..layout.shards()).map(|shard| {
            let before = tables;
            let is_here = owners.is_none_or(|owners| owners[shard] == Owner::Here);
            tables += if is_here {
                layout.tables_per_shard()
            } else {
                0
            };
            before
        });
        let tables_before = tables_before.collect();
        let grouping = Grouping::new(tables);
        Batches {
            layout,
            tables_before,
            tables_log2: grouping.tables_log2,
            full: grouping.full,
            groups: vec![Vec::new(); grouping.groups],
            sorted: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds a child for a table of this process. If the group is then full, offers its children to their tables. Returns
    /// the number of children that were offered.
    #[inline]
    pub(super) fn push(
        &mut self,
        candidates: &Candidates,
        table: usize,
        child: Candidate,
    ) -> usize {
        let group = self.position(table) >> self.tables_log2;
        self.groups[group].push(child);
        if self.groups[group].len() < self.full {
            return 0;
        }
        self.offer(candidates, group)
    }

    /// Offers all children to their tables. Returns their number.
    pub(super) fn offer_all(&mut self, candidates: &Candidates) -> usize {
        (0..self.groups.len())
            .map(|group| self.offer(candidates, group))
            .sum()
    }

    /// Returns the index of a table among the tables of this process.
    #[inline]
    fn position(&self, table: usize) -> usize {
        let tables = self.layout.tables_per_shard();
        self.tables_before[table / tables] + table % tables
    }

    fn offer(&mut self, candidates: &Candidates, group: usize) -> usize {
        let children = std::mem::take(&mut self.groups[group]);
        if self.tables_log2 == 0 {
            if let Some(child) = children.first() {
                candidates.offer(self.layout.table_of(child.hash), &children);
            }
        } else {
            self.sort(&children);
            let mut first = 0;
            for &end in &self.ends {
                if first < end {
                    let table = self.layout.table_of(self.sorted[first].hash);
                    candidates.offer(table, &self.sorted[first..end]);
                }
                first = end;
            }
        }
        let offered = children.len();
        self.groups[group] = children;
        self.groups[group].clear();
        offered
    }

    /// Replaces `sorted` and `ends` with the children of one group. Uses a counting sort.
    fn sort(&mut self, children: &[Candidate]) {
        let place = |batches: &Batches, child: &Candidate| {
            batches.position(batches.layout.table_of(child.hash)) % (1 << batches.tables_log2)
        };
        self.ends.clear();
        self.ends.resize(1 << self.tables_log2, 0);
        for child in children {
            let place = place(self, child);
            self.ends[place] += 1;
        }
        // Each entry becomes the beginning of the table's children, and with the last of them their end.
        let mut first = 0;
        for end in &mut self.ends {
            first += std::mem::replace(end, first);
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(children);
        for child in children {
            let place = place(self, child);
            let at = &mut self.ends[place];
            self.sorted[*at] = *child;
            *at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Node, NodeWell};
    use crate::step::DEFAULT_SIGMAS;
    use hatebeam_game::{Geometry, Well};

    #[test]
    fn buffers_are_within_their_bound() {
        for tables in (0..2000).chain((2000..100_000).step_by(37)) {
            let grouping = Grouping::new(tables);
            assert!(grouping.groups <= MAX_GROUPS, "{tables}");
            assert!(
                grouping.groups << grouping.tables_log2 >= tables,
                "{tables}"
            );
            let sorted = if grouping.tables_log2 == 0 {
                0
            } else {
                grouping.full
            };
            let bytes = (grouping.groups * grouping.full + sorted) * size_of::<Candidate>();
            assert!(bytes as u64 <= buffer_bytes(tables as u64), "{tables}");
        }
    }

    /// Returns `count` children with different wells.
    fn children(count: u32) -> impl Iterator<Item = Candidate> {
        (1..=count).map(|number| {
            let mut rows = [0; 16];
            (rows[0], rows[1]) = (number as u16 % 1023, (number / 1023) as u16 + 1);
            let well = NodeWell::pack(Geometry::STANDARD, &Well::from_rows(rows));
            let node = Node {
                score: 0,
                well,
                lines: 0,
                hint: 0,
            };
            Candidate {
                node,
                hash: well.hash(),
            }
        })
    }

    /// Checks that each child of a shard of this process reaches its table. `tables` is the number of tables in a group.
    fn check(width: usize, shards: usize, owners: Option<&[Owner]>, tables: usize) {
        let layout = ShardLayout::new(width, shards);
        let candidates = Candidates::new(layout, DEFAULT_SIGMAS);
        let mut batches = Batches::new(layout, owners);
        assert_eq!(1 << batches.tables_log2, tables);
        let (mut offered, mut expected) = (0, Vec::new());
        for child in children(50_000) {
            let table = layout.table_of(child.hash);
            let shard = table / layout.tables_per_shard();
            if owners.is_none_or(|owners| owners[shard] == Owner::Here) {
                offered += batches.push(&candidates, table, child);
                expected.push((table, child.node.well));
            }
        }
        assert!(offered > 0, "some groups are full");
        offered += batches.offer_all(&candidates);
        assert_eq!(offered, expected.len());
        assert_eq!(batches.offer_all(&candidates), 0);
        expected.sort_unstable();
        assert_eq!(candidates.wells_by_table(), expected);
    }

    #[test]
    fn children_reach_their_tables() {
        check(100_000, 1, None, 1);
        let table = super::super::TABLE_WELLS;
        check(600 * table, 10, None, 4);
        let owners: Vec<Owner> = (0..10)
            .map(|shard| match shard {
                0 | 3 | 4 | 5 | 9 => Owner::Here,
                peer => Owner::Peer(peer % 2),
            })
            .collect();
        check(600 * table, 10, Some(&owners), 2);
    }
}
