//! Ascending numbers, coded by differences in blocks, in memory or in a scratch file.

use super::key::Key;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Numbers in a block, which is read as one. The first of them is in the index.
const BLOCK: u64 = 1024;
/// A section that is being written goes to the file in pieces of this size. In this crate's own tests
/// it is so small that the sections of small trees have several.
const PIECE: usize = if cfg!(test) { 8 << 10 } else { 4 << 20 };
/// A scratch file that has as many bytes is followed by another, so that the disk is given back as
/// sections go away.
const FILE_BYTES: u64 = if cfg!(test) { 100_000 } else { 1 << 30 };

/// Where sections are put: in memory up to a limit, in scratch files beyond. The files have no name:
/// whatever ends the process, nothing is left of them.
pub(super) struct Store {
    folder: PathBuf,
    limit: u64,
    used: Arc<AtomicU64>,
    file: Mutex<Option<(Arc<ScratchFile>, u64)>>,
    on_disk: Arc<OnDisk>,
}

/// Bytes of all scratch files there are.
#[derive(Default)]
struct OnDisk {
    now: AtomicU64,
    most: AtomicU64,
}

/// A file without a name. Its bytes are counted until it goes away.
struct ScratchFile {
    file: File,
    bytes: AtomicU64,
    on_disk: Arc<OnDisk>,
}

impl ScratchFile {
    /// Counts bytes that are about to be written.
    fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = self.on_disk.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.on_disk.most.fetch_max(now, Ordering::Relaxed);
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.on_disk.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes in memory, counted until they go away.
struct Held {
    bytes: Vec<u8>,
    used: Arc<AtomicU64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.used
            .fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

enum Piece {
    Memory(Held),
    File {
        file: Arc<ScratchFile>,
        at: u64,
        len: usize,
    },
}

/// Ascending numbers.
pub(super) struct Section<K> {
    /// The first number of each block, its piece, and where it begins there.
    index: Vec<(K, u32, u32)>,
    pieces: Vec<Piece>,
    count: u64,
}

impl Store {
    pub(super) fn new(folder: &Path, limit: u64) -> Store {
        Store {
            folder: folder.to_owned(),
            limit,
            used: Arc::default(),
            file: Mutex::new(None),
            on_disk: Arc::default(),
        }
    }

    /// The most bytes that scratch files had at a time, those that could not be written included.
    pub(super) fn most_on_disk(&self) -> u64 {
        self.on_disk.most.load(Ordering::Relaxed)
    }

    pub(super) fn writer<K: Key>(&self) -> io::Result<Writer<'_, K>> {
        Ok(Writer {
            store: self,
            section: Section {
                index: Vec::new(),
                pieces: Vec::new(),
                count: 0,
            },
            bytes: Vec::new(),
            last: K::LEAST,
        })
    }

    fn put(&self, bytes: Vec<u8>) -> io::Result<Piece> {
        let len = bytes.len() as u64;
        if self.used.fetch_add(len, Ordering::Relaxed) + len <= self.limit {
            let used = Arc::clone(&self.used);
            return Ok(Piece::Memory(Held { bytes, used }));
        }
        self.used.fetch_sub(len, Ordering::Relaxed);
        let (file, at) = {
            let mut current = self
                .file
                .lock()
                .unwrap_or_else(|poison| poison.into_inner());
            if current.as_ref().is_none_or(|(_, end)| *end >= FILE_BYTES) {
                let file = ScratchFile {
                    file: tempfile::tempfile_in(&self.folder)?,
                    bytes: AtomicU64::new(0),
                    on_disk: Arc::clone(&self.on_disk),
                };
                *current = Some((Arc::new(file), 0));
            }
            let Some((file, end)) = current.as_mut() else {
                unreachable!("it was just made");
            };
            let at = *end;
            *end += len;
            (Arc::clone(file), at)
        };
        file.count(len);
        file.file.write_all_at(&bytes, at)?;
        Ok(Piece::File {
            file,
            at,
            len: bytes.len(),
        })
    }
}

/// Writes a section.
pub(super) struct Writer<'a, K> {
    store: &'a Store,
    section: Section<K>,
    bytes: Vec<u8>,
    last: K,
}

impl<K: Key> Writer<'_, K> {
    /// Adds a number, which must be greater than all before.
    #[inline]
    pub(super) fn push(&mut self, key: K) -> io::Result<()> {
        if self.section.count.is_multiple_of(BLOCK) {
            if self.bytes.len() >= PIECE {
                self.put_aside()?;
            }
            let place = (self.section.pieces.len() as u32, self.bytes.len() as u32);
            self.section.index.push((key, place.0, place.1));
        } else {
            key.write_from(self.last, &mut self.bytes);
        }
        self.last = key;
        self.section.count += 1;
        Ok(())
    }

    fn put_aside(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.section.pieces.push(self.store.put(bytes)?);
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<Section<K>> {
        if self.section.count > 0 {
            self.bytes.shrink_to_fit();
            self.put_aside()?;
        }
        self.section.index.shrink_to_fit();
        Ok(self.section)
    }
}

impl<K: Key> Section<K> {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn blocks(&self) -> usize {
        self.index.len()
    }

    /// The least number.
    pub(super) fn first(&self) -> Option<K> {
        self.index.first().map(|(first, ..)| *first)
    }

    /// The first numbers of all blocks.
    pub(super) fn firsts(&self) -> impl Iterator<Item = K> + '_ {
        self.index.iter().map(|(first, ..)| *first)
    }

    /// The bytes it takes, index and all.
    pub(super) fn bytes(&self) -> u64 {
        let of = |piece: &Piece| match piece {
            Piece::Memory(held) => held.bytes.len(),
            Piece::File { len, .. } => *len,
        };
        let index = self.index.len() * size_of::<(K, u32, u32)>();
        (self.pieces.iter().map(of).sum::<usize>() + index) as u64
    }

    /// The numbers of a block, into `keys` (emptied first).
    pub(super) fn decode(&self, block: usize, keys: &mut Vec<K>) -> io::Result<()> {
        keys.clear();
        let (first, piece, from) = self.index[block];
        let from = from as usize;
        let to = match self.index.get(block + 1) {
            Some((_, next, to)) if *next == piece => Some(*to as usize),
            _ => None,
        };
        let count = (self.count - block as u64 * BLOCK).min(BLOCK);
        match &self.pieces[piece as usize] {
            Piece::Memory(held) => {
                let bytes = &held.bytes[from..to.unwrap_or(held.bytes.len())];
                decode_block(first, bytes, count, keys)
            }
            Piece::File { file, at, len } => {
                let mut bytes = vec![0; to.unwrap_or(*len) - from];
                file.file.read_exact_at(&mut bytes, at + from as u64)?;
                decode_block(first, &bytes, count, keys)
            }
        }
    }

    pub(super) fn contains(&self, key: K) -> io::Result<bool> {
        let after = self.index.partition_point(|(first, ..)| *first <= key);
        let Some(block) = after.checked_sub(1) else {
            return Ok(false);
        };
        let mut keys = Vec::new();
        self.decode(block, &mut keys)?;
        Ok(keys.binary_search(&key).is_ok())
    }

    /// Appends the numbers from `from` to before `to`.
    pub(super) fn append(
        &self,
        from: Option<K>,
        to: Option<K>,
        all: &mut Vec<K>,
    ) -> io::Result<()> {
        let first = from.map_or(0, |from| {
            let after = self.index.partition_point(|(first, ..)| *first <= from);
            after.saturating_sub(1)
        });
        let last = to.map_or(self.blocks(), |to| {
            self.index.partition_point(|(first, ..)| *first < to)
        });
        let mut keys = Vec::new();
        for block in first..last {
            self.decode(block, &mut keys)?;
            let begin = from.map_or(0, |from| keys.partition_point(|key| *key < from));
            let end = to.map_or(keys.len(), |to| keys.partition_point(|key| *key < to));
            all.extend_from_slice(&keys[begin..end.max(begin)]);
        }
        Ok(())
    }
}

fn decode_block<K: Key>(first: K, bytes: &[u8], count: u64, keys: &mut Vec<K>) -> io::Result<()> {
    let (mut at, mut last) = (0, first);
    keys.push(first);
    for _ in 1..count {
        let next = K::read_from(last, bytes, &mut at);
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "a scratch file was changed");
        last = next.ok_or_else(broken)?;
        keys.push(last);
    }
    Ok(())
}
