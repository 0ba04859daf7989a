//! Blocking work on separate threads, and copies of files with their checksums.

use crate::checksum::{Stored, Summing};
use crate::error::ObjectError;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
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
