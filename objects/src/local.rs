//! Files that appear whole or not at all, and the work of threads that may wait for a disk.

use crate::checksum::{Stored, Summing};
use crate::error::ObjectError;
use crate::random::random_name;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tokio::task::{JoinHandle, spawn_blocking};

/// What is copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Does work that waits for a disk, on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ObjectError> + Send + 'static,
) -> Result<T, ObjectError> {
    joined(spawn_blocking(work)).await
}

/// What such work gave.
pub(crate) async fn joined<T>(task: JoinHandle<Result<T, ObjectError>>) -> Result<T, ObjectError> {
    match task.await {
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
        let path = dir.join(format!(".{}.tmp", random_name()));
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

/// A file that is being written and not yet in its place.
pub(crate) struct Arriving {
    temporary: Temporary,
    file: File,
    target: PathBuf,
}

impl Arriving {
    /// Makes an empty one beside where it will be.
    pub(crate) fn create(target: &Path) -> Result<Arriving, ObjectError> {
        let (temporary, file) = Temporary::create_in(folder_of(target))?;
        let target = target.to_path_buf();
        Ok(Arriving {
            temporary,
            file,
            target,
        })
    }

    /// Writes all that is left of another file.
    pub(crate) fn copy(&mut self, from: (&mut File, &Path)) -> Result<Stored, ObjectError> {
        copy(from, (&mut self.file, self.temporary.path()))
    }

    #[cfg(feature = "s3")]
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.file
            .write_all(bytes)
            .map_err(ObjectError::io(self.temporary.path()))
    }

    /// Puts it in its place, on the disk when it returns.
    pub(crate) fn finish(self) -> Result<(), ObjectError> {
        let Arriving {
            temporary,
            file,
            target,
        } = self;
        file.sync_all().map_err(ObjectError::io(temporary.path()))?;
        drop(file);
        temporary.place(&target).map_err(ObjectError::io(&target))?;
        sync_dir(folder_of(&target))
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
