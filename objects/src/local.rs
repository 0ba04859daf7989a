//! Temporary files that replace other files atomically, and blocking work on separate threads.

use crate::checksum::{Stored, Summing};
use crate::error::ObjectError;
use crate::random::Random;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

const PIECE_BYTES: usize = 1 << 20;

/// Runs blocking work on a thread of tokio's blocking pool.
#[allow(
    clippy::disallowed_methods,
    reason = "simulations use only stores in memory, so this code may use real threads"
)]
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ObjectError> + Send + 'static,
) -> Result<T, ObjectError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        // The task is never cancelled, so it must have panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Makes the creation, renaming and removal of files in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), ObjectError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(ObjectError::io(dir))
}

/// Creates a folder and its missing parents, and makes the created folders durable.
pub(crate) fn create_dir_durably(dir: &Path) -> Result<(), ObjectError> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    fs::create_dir_all(dir).map_err(ObjectError::io(dir))?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        // The parent of a relative path with one name is empty.
        let is_current = parent.as_os_str().is_empty();
        sync_dir(if is_current { Path::new(".") } else { parent })?;
    }
    Ok(())
}

/// A temporary file. Dropping this value removes the file, unless it has been renamed.
pub(crate) struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    /// Creates an empty file in a folder.
    pub(crate) fn create_in(dir: &Path) -> Result<(Temporary, File), ObjectError> {
        let path = dir.join(format!(".{}.tmp", Random::default().name()));
        let file = File::create_new(&path).map_err(ObjectError::io(&path))?;
        let renamed = false;
        Ok((Temporary { path, renamed }, file))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file, replacing any existing file with the target name.
    pub(crate) fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // An error is harmless, because `Folder::open` removes abandoned files later.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies the rest of `from` to `to`, and returns the length and checksum of the copied bytes. Errors contain the path
/// of the file that caused them.
pub(crate) fn copy(
    from: &mut File,
    from_path: &Path,
    to: &mut File,
    to_path: &Path,
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
