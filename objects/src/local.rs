//! Files that appear whole or not at all, and the work of threads that may wait for a disk.

use crate::checksum::{Stored, Summing};
use crate::error::ObjectError;
use crate::random::Random;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// What is copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Does work that waits for a disk, on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ObjectError> + Send + 'static,
) -> Result<T, ObjectError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        // Nobody cancels such a task, so it panicked: as if the work had been done here.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Makes what was created, renamed or removed in a folder last.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), ObjectError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(ObjectError::io(dir))
}

/// A file on its way. It goes away with this, if it was not put in its place.
pub(crate) struct Temporary {
    path: PathBuf,
    placed: bool,
}

impl Temporary {
    /// Makes an empty one in a folder.
    pub(crate) fn create_in(dir: &Path) -> Result<(Temporary, File), ObjectError> {
        let path = dir.join(format!(".{}.tmp", Random::default().name()));
        let file = File::create_new(&path).map_err(ObjectError::io(&path))?;
        let placed = false;
        Ok((Temporary { path, placed }, file))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it a name, in place of what had that before.
    pub(crate) fn place(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.placed {
            // If that fails it is in nobody's way.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies all that is left of a file.
pub(crate) fn copy(
    (from, from_path): (&mut File, &Path),
    (to, to_path): (&mut File, &Path),
) -> Result<Stored, ObjectError> {
    let mut summing = Summing::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(summing.stored()),
            Ok(bytes) => {
                summing.add(&piece[..bytes]);
                to.write_all(&piece[..bytes])
                    .map_err(ObjectError::io(to_path))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ObjectError::io(from_path)(error)),
        }
    }
}
