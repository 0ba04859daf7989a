//! Collects the children of the wells in a level (all wells that are possible after some number of
//! pieces) and writes them as sorted runs, which are merged later.

use super::key::WellKey;
use super::section::Section;
use super::{Search, SolveError, mix};
use hatebeam_game::{Children, Piece};
use std::sync::Mutex;

/// Number of entries in the cache of recent wells. The entries take half a megabyte or one megabyte,
/// depending on the type of the keys, so they fit into a core's cache.
const RECENT: usize = 1 << 16;

/// The state of one thread that expands a level.
pub(super) struct Gatherer<'a, 'b, K> {
    search: &'a Search<'b>,
    starts: &'a [K],
    runs: &'a Mutex<Vec<Vec<Section<K>>>>,
    children: Children,
    keys: Vec<K>,
    room: usize,
    /// A cache of recently found wells, indexed by hash. It drops most duplicates before sorting.
    recent: Vec<K>,
}

impl<'a, 'b, K: WellKey> Gatherer<'a, 'b, K> {
    pub(super) fn new(
        search: &'a Search<'b>,
        starts: &'a [K],
        runs: &'a Mutex<Vec<Vec<Section<K>>>>,
        room: usize,
    ) -> Self {
        Gatherer {
            search,
            starts,
            runs,
            children: Children::new(),
            keys: Vec::new(),
            room,
            recent: vec![K::NONE; RECENT],
        }
    }

    pub(super) fn expand(&mut self, parents: &[K], piece: Option<Piece>) -> Result<(), SolveError> {
        let geometry = self.search.game.geometry;
        for parent in parents {
            let well = parent.unpack(geometry);
            match piece {
                None => {
                    self.search.emulator.expand(&well, &mut self.children);
                }
                Some(piece) => self
                    .search
                    .emulator
                    .children(&well, piece, &mut self.children),
            }
            for child in self.children.wells() {
                let key = K::pack(geometry, child);
                let recent = &mut self.recent[mix(key) as usize % RECENT];
                if *recent != key {
                    *recent = key;
                    self.keys.push(key);
                }
            }
            if self.keys.len() + 256 > self.room {
                self.make_room()?;
            }
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), SolveError> {
        self.keys.sort_unstable();
        self.keys.dedup();
        if self.keys.len() > self.room / 2 {
            self.write_run()?;
        }
        Ok(())
    }

    /// Writes the sorted keys as a run. `starts` divides the keys into ranges, and each range becomes a
    /// section.
    fn write_run(&mut self) -> Result<(), SolveError> {
        let mut sections = Vec::with_capacity(self.starts.len() + 1);
        let mut rest = self.keys.as_slice();
        for start in self.starts.iter().map(Some).chain([None]) {
            let end = start.map_or(rest.len(), |start| rest.partition_point(|key| key < start));
            let (part, after) = rest.split_at(end);
            let mut writer = self.search.store.writer();
            for &key in part {
                writer.push(key).map_err(self.search.scratch_error())?;
            }
            sections.push(writer.finish().map_err(self.search.scratch_error())?);
            rest = after;
        }
        self.keys.clear();
        self.runs
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .push(sections);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), SolveError> {
        self.keys.sort_unstable();
        self.keys.dedup();
        self.write_run()
    }
}
