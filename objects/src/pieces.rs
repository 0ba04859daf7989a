//! Files read and written in pieces, between a disk and a network.

use crate::checksum::{Stored, Summing};
use crate::error::ObjectError;
use crate::local::{Arriving, blocking, joined};
use bytes::Bytes;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

/// How many pieces that came from the network may wait for the disk.
const WAITING_PIECES: usize = 64;

/// A file written by a thread of its own from pieces as they come. Dropped before its end, it leaves
/// nothing.
pub(crate) struct Writing {
    pieces: mpsc::Sender<Bytes>,
    thread: JoinHandle<Result<(Arriving, Stored), ObjectError>>,
}

impl Writing {
    pub(crate) async fn start(target: &Path) -> Result<Writing, ObjectError> {
        let target = target.to_path_buf();
        let mut arriving = blocking(move || Arriving::create(&target)).await?;
        let (pieces, mut come) = mpsc::channel::<Bytes>(WAITING_PIECES);
        let thread = spawn_blocking(move || {
            let mut summing = Summing::new();
            while let Some(piece) = come.blocking_recv() {
                summing.add(&piece);
                arriving.write_all(&piece)?;
            }
            Ok((arriving, summing.stored()))
        });
        Ok(Writing { pieces, thread })
    }

    /// Takes a piece; false if the thread gave up, and then [`Writing::end`] says why.
    pub(crate) async fn push(&self, piece: Bytes) -> bool {
        self.pieces.send(piece).await.is_ok()
    }

    /// All pieces were pushed: gives what they were, and the file, which is not yet in its place.
    pub(crate) async fn end(self) -> Result<(Arriving, Stored), ObjectError> {
        drop(self.pieces);
        joined(self.thread).await
    }
}

/// A file that is read in pieces.
pub(crate) struct Reading {
    file: File,
    path: PathBuf,
    left: u64,
    summing: Summing,
}

impl Reading {
    pub(crate) async fn open(path: &Path) -> Result<Reading, ObjectError> {
        let path = path.to_path_buf();
        blocking(move || {
            let opened = File::open(&path).and_then(|file| {
                let left = file.metadata()?.len();
                Ok((file, left))
            });
            let (file, left) = opened.map_err(ObjectError::io(&path))?;
            Ok(Reading {
                file,
                path,
                left,
                summing: Summing::new(),
            })
        })
        .await
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Reads a piece, a whole one but for the last.
    pub(crate) async fn piece(mut self, bytes: usize) -> Result<(Reading, Bytes), ObjectError> {
        blocking(move || {
            let bytes = self.left.min(bytes as u64) as usize;
            let mut piece = vec![0; bytes];
            self.file
                .read_exact(&mut piece)
                .map_err(ObjectError::io(&self.path))?;
            self.left -= bytes as u64;
            self.summing.add(&piece);
            Ok((self, piece.into()))
        })
        .await
    }

    /// What the pieces read were.
    pub(crate) fn stored(&self) -> Stored {
        self.summing.stored()
    }
}
