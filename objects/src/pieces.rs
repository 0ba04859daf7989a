//! A reader that returns a file in pieces, for multipart uploads.

use crate::checksum::{Stored, Summing};
use crate::error::ObjectError;
use crate::local::blocking;
use bytes::Bytes;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

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

    /// Returns the number of bytes that have not been read.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Reads the next `bytes` bytes, or the remaining bytes if there are fewer.
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

    /// Returns the total length and the checksum of the pieces read so far.
    pub(crate) fn stored(&self) -> Stored {
        self.summing.stored()
    }
}
