//! Sections: ascending lists of wells encoded as integers (keys), stored as blocks of differences
//! in memory or in scratch files.

use super::key::WellKey;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of keys in a block. A block is always read as a whole. Its first key is in the index.
const BLOCK: u64 = 1024;
/// Minimum number of bytes in a chunk of a section, except for the last chunk. The value is small
/// in the tests of this crate, so that the sections of small trees have several chunks.
const CHUNK_BYTES: usize = if cfg!(test) { 8 << 10 } else { 4 << 20 };
/// Size in bytes at which a scratch file is full and a new one is created. The disk space of a file is
/// freed when all of its sections are dropped.
const FILE_BYTES: u64 = if cfg!(test) { 100_000 } else { 1 << 30 };

/// The storage of sections: memory up to a limit, then scratch files. The files have no names, so
/// the system deletes them even if the process crashes.
pub(super) struct ScratchStore {
    folder: PathBuf,
    limit: u64,
    used: Arc<AtomicU64>,
    file: Mutex<Option<CurrentFile>>,
    on_disk: Arc<DiskUsage>,
}

/// The scratch file that is being written.
struct CurrentFile {
    file: Arc<ScratchFile>,
    end: u64,
}

/// The total size of the scratch files in bytes: its current value and its maximum so far.
#[derive(Default)]
struct DiskUsage {
    now: AtomicU64,
    max: AtomicU64,
}

/// A file without a name. Its bytes count as disk usage until it is dropped.
struct ScratchFile {
    file: File,
    bytes: AtomicU64,
    on_disk: Arc<DiskUsage>,
}

impl ScratchFile {
    /// Adds `bytes` to the disk usage. Call this method before writing.
    fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let now = self.on_disk.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.on_disk.max.fetch_max(now, Ordering::Relaxed);
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.on_disk.now.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of a section in memory. They count towards the memory limit until they are dropped.
struct MemoryChunk {
    bytes: Vec<u8>,
    used: Arc<AtomicU64>,
}

impl Drop for MemoryChunk {
    fn drop(&mut self) {
        self.used
            .fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

enum Chunk {
    Memory(MemoryChunk),
    File {
        file: Arc<ScratchFile>,
        at: u64,
        len: usize,
    },
}

/// An ascending list of keys without duplicates.
pub(super) struct Section<K> {
    index: Vec<Block<K>>,
    chunks: Vec<Chunk>,
    count: u64,
}

/// The index entry of a block.
struct Block<K> {
    first: K,
    /// Index of the chunk that contains the block.
    chunk: u32,
    /// Offset of the block in the chunk.
    offset: u32,
}

impl ScratchStore {
    pub(super) fn new(folder: &Path, limit: u64) -> ScratchStore {
        ScratchStore {
            folder: folder.to_owned(),
            limit,
            used: Arc::default(),
            file: Mutex::new(None),
            on_disk: Arc::default(),
        }
    }

    /// Returns the maximum number of bytes that were in scratch files at the same time, including bytes
    /// that could not be written.
    pub(super) fn max_on_disk(&self) -> u64 {
        self.on_disk.max.load(Ordering::Relaxed)
    }

    pub(super) fn writer<K: WellKey>(&self) -> SectionWriter<'_, K> {
        SectionWriter {
            store: self,
            section: Section {
                index: Vec::new(),
                chunks: Vec::new(),
                count: 0,
            },
            bytes: Vec::new(),
            last: K::ZERO,
        }
    }

    fn put(&self, bytes: Vec<u8>) -> io::Result<Chunk> {
        let len = bytes.len() as u64;
        if self.used.fetch_add(len, Ordering::Relaxed) + len <= self.limit {
            let used = Arc::clone(&self.used);
            return Ok(Chunk::Memory(MemoryChunk { bytes, used }));
        }
        self.used.fetch_sub(len, Ordering::Relaxed);
        let (file, at) = self.reserve(len)?;
        file.count(len);
        file.file.write_all_at(&bytes, at)?;
        Ok(Chunk::File {
            file,
            at,
            len: bytes.len(),
        })
    }

    /// Reserves bytes in the current scratch file, or in a new one if it is full. Returns the file and the
    /// offset.
    fn reserve(&self, len: u64) -> io::Result<(Arc<ScratchFile>, u64)> {
        let mut current = self
            .file
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        if let Some(current) = current.as_mut()
            && current.end < FILE_BYTES
        {
            let at = current.end;
            current.end += len;
            return Ok((Arc::clone(&current.file), at));
        }
        let file = Arc::new(ScratchFile {
            file: tempfile::tempfile_in(&self.folder)?,
            bytes: AtomicU64::new(0),
            on_disk: Arc::clone(&self.on_disk),
        });
        *current = Some(CurrentFile {
            file: Arc::clone(&file),
            end: len,
        });
        Ok((file, 0))
    }
}

pub(super) struct SectionWriter<'a, K> {
    store: &'a ScratchStore,
    section: Section<K>,
    bytes: Vec<u8>,
    last: K,
}

impl<K: WellKey> SectionWriter<'_, K> {
    /// Adds a key, which must be greater than all previous keys.
    #[inline]
    pub(super) fn push(&mut self, key: K) -> io::Result<()> {
        if self.section.count.is_multiple_of(BLOCK) {
            if self.bytes.len() >= CHUNK_BYTES {
                self.flush()?;
            }
            self.section.index.push(Block {
                first: key,
                chunk: self.section.chunks.len() as u32,
                offset: self.bytes.len() as u32,
            });
        } else {
            key.write_from(self.last, &mut self.bytes);
        }
        self.last = key;
        self.section.count += 1;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.section.chunks.push(self.store.put(bytes)?);
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<Section<K>> {
        if self.section.count > 0 {
            self.bytes.shrink_to_fit();
            self.flush()?;
        }
        self.section.index.shrink_to_fit();
        Ok(self.section)
    }
}

impl<K: WellKey> Section<K> {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn blocks(&self) -> usize {
        self.index.len()
    }

    /// Returns the smallest key.
    pub(super) fn first(&self) -> Option<K> {
        self.index.first().map(|block| block.first)
    }

    /// Returns an iterator over the first key of each block.
    pub(super) fn firsts(&self) -> impl Iterator<Item = K> + '_ {
        self.index.iter().map(|block| block.first)
    }

    /// Returns the size of the section in bytes, including the index.
    pub(super) fn bytes(&self) -> u64 {
        let of = |chunk: &Chunk| match chunk {
            Chunk::Memory(chunk) => chunk.bytes.len(),
            Chunk::File { len, .. } => *len,
        };
        let index = self.index.len() * size_of::<Block<K>>();
        (self.chunks.iter().map(of).sum::<usize>() + index) as u64
    }

    /// Replaces the contents of `keys` with the keys of a block.
    pub(super) fn decode(&self, block: usize, keys: &mut Vec<K>) -> io::Result<()> {
        keys.clear();
        let Block {
            first,
            chunk,
            offset,
        } = self.index[block];
        let from = offset as usize;
        let to = match self.index.get(block + 1) {
            Some(next) if next.chunk == chunk => Some(next.offset as usize),
            _ => None,
        };
        let count = (self.count - block as u64 * BLOCK).min(BLOCK);
        match &self.chunks[chunk as usize] {
            Chunk::Memory(chunk) => {
                let bytes = &chunk.bytes[from..to.unwrap_or(chunk.bytes.len())];
                decode_block(first, bytes, count, keys)
            }
            Chunk::File { file, at, len } => {
                let mut bytes = vec![0; to.unwrap_or(*len) - from];
                file.file.read_exact_at(&mut bytes, at + from as u64)?;
                decode_block(first, &bytes, count, keys)
            }
        }
    }

    pub(super) fn contains(&self, key: K) -> io::Result<bool> {
        let after = self.index.partition_point(|block| block.first <= key);
        let Some(block) = after.checked_sub(1) else {
            return Ok(false);
        };
        let mut keys = Vec::new();
        self.decode(block, &mut keys)?;
        Ok(keys.binary_search(&key).is_ok())
    }

    /// Appends the keys from `from` (inclusive) to `to` (exclusive) to `all`. `None` means no limit.
    pub(super) fn append(
        &self,
        from: Option<K>,
        to: Option<K>,
        all: &mut Vec<K>,
    ) -> io::Result<()> {
        let first = from.map_or(0, |from| {
            let after = self.index.partition_point(|block| block.first <= from);
            after.saturating_sub(1)
        });
        let last = to.map_or(self.blocks(), |to| {
            self.index.partition_point(|block| block.first < to)
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

fn decode_block<K: WellKey>(
    first: K,
    bytes: &[u8],
    count: u64,
    keys: &mut Vec<K>,
) -> io::Result<()> {
    let (mut at, mut last) = (0, first);
    keys.push(first);
    for _ in 1..count {
        let next = K::read_from(last, bytes, &mut at);
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a scratch file is damaged");
        last = next.ok_or_else(damaged)?;
        keys.push(last);
    }
    Ok(())
}
