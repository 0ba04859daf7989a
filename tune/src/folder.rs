//! A search that stores its journal and its result in a folder.

use crate::journal::{Journal, Measured};
use crate::parameter::Parameter;
use crate::search::{Evaluation, SearchError, Settings, search};
use serde_json::Value;
use sha2::{Digest, Sha256};
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the journal in the folder.
const JOURNAL: &str = "journal.jsonl";
/// Name of the file with the best weights.
const WEIGHTS: &str = "weights.toml";
/// Name of the file that is locked while a process uses the folder.
const LOCK: &str = "lock";
/// Number of bytes of a SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// The weights to tune, and the function that measures their value.
pub trait Objective: Sync {
    /// Returns the weights to tune.
    fn parameters(&self) -> &[Parameter];

    /// Returns the settings on which the values depend. A journal is used only if its settings are equal, so that
    /// values from different measurements are never mixed.
    fn description(&self) -> Value;

    /// Returns whether each round is another series of games, so that measuring again makes a value more accurate. If
    /// not, only round 0 is measured.
    fn has_rounds(&self) -> bool;

    /// Measures the value of the given weights, or returns `None` to interrupt the search. The result depends only on
    /// the weights and the round. The games of a round are the same for all weights.
    fn measure(&self, weights: &[f64], round: usize) -> Option<Measured>;

    /// Returns the contents of `weights.toml` for the best weights.
    fn weights_file(&self, best: &Evaluation) -> String;
}

/// Searches for the best weights and stores them in a folder, which is created if it does not exist. The file
/// `journal.jsonl` contains all measured values, so an interrupted search can resume. The file `weights.toml` contains
/// the best weights. Successive searches with different methods can use the same folder.
///
/// Returns the best weights and the path of their file.
///
/// # Errors
/// Returns a [`SearchError`] if the journal cannot be opened, [`search`] ends early, or a file cannot be written.
pub fn tune(
    folder: &Path,
    objective: &dyn Objective,
    settings: &Settings,
    on_value: &(dyn Fn(&Evaluation) + Sync),
) -> Result<(Evaluation, PathBuf), SearchError> {
    let file = folder.join(WEIGHTS);
    let failed = |error| SearchError::File(folder.to_owned(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    let parameters = objective.parameters();
    let journal = Journal::open(&folder.join(JOURNAL), parameters, objective.description())?;
    let measure = |weights: &[f64], round: usize| objective.measure(weights, round);
    let has_rounds = objective.has_rounds();
    let outcome = search(
        parameters, settings, journal, has_rounds, &measure, on_value,
    );
    if let Some(best) = &outcome.best {
        replace_file(&file, objective.weights_file(best).as_bytes())
            .map_err(|error| SearchError::File(file.clone(), error))?;
    }
    Ok((outcome.into_best()?, file))
}

/// Replaces a file atomically: after a crash, it has either its old or its new contents.
///
/// # Errors
/// Returns an error if the new file cannot be written, or cannot replace the old one.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    // Temporary files are private by default. This file gets the permissions of any new file.
    #[cfg(unix)]
    builder.permissions(Permissions::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

/// Error for a folder that cannot be locked.
#[derive(Debug, Error)]
pub enum FolderLockError {
    /// Another process uses the folder.
    #[error("{} is used by another process: wait until it ends, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The file `lock` cannot be created or locked.
    #[error("{}", .0.display())]
    File(PathBuf, #[source] io::Error),
}

/// A folder that is locked for this process until the value is dropped. The lock is on the empty file `lock`, which
/// remains in the folder.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks an existing folder.
    ///
    /// # Errors
    /// Returns a [`FolderLockError`] if another process has locked the folder, or if the file `lock` cannot be created
    /// or locked.
    pub fn take(folder: &Path) -> Result<FolderLock, FolderLockError> {
        let path = folder.join(LOCK);
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(|error| FolderLockError::File(path.clone(), error))?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(FolderLockError::InUse(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(FolderLockError::File(path, error)),
        }
    }
}

/// Appends the SHA-256 digest of `bytes`.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

/// Returns the bytes before the digest that [`sealed`] appended, or `None` if the digest is missing or wrong.
pub fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (content, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    (Sha256::digest(content)[..] == *digest).then_some(content)
}
