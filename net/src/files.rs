//! Functions that read small files, such as certificates and secret tokens.

use super::WireError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a certificate or token file, in bytes. Such files are usually a few kilobytes in size.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a file. Returns an error if it is larger than [`MAX_BYTES`].
pub(super) fn read(path: &Path) -> Result<Vec<u8>, WireError> {
    let failed = |reason: io::Error| WireError::Read {
        path: path.to_owned(),
        reason,
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(WireError::File {
            path: path.to_owned(),
            reason: format!("the file contains more than {MAX_BYTES} bytes"),
        });
    }
    Ok(bytes)
}

/// Reads a secret file, and logs a warning if other users have access to it.
pub(super) fn read_private(path: &Path) -> Result<Vec<u8>, WireError> {
    let bytes = read(path)?;
    if is_open(path) {
        let path = path.display();
        tracing::warn!("other users have access to the secret file {path}: run `chmod 600` on it");
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata()
        .is_ok_and(|meta| lets_others_access(meta.uid(), meta.mode()))
}

/// Returns whether the mode gives too many users access to the file.
///
/// Usually, only the owner may have access. If root owns the file, the group may read it, because Kubernetes and
/// service managers provide secrets in this way.
#[cfg(unix)]
fn lets_others_access(owner: u32, mode: u32) -> bool {
    let others = if owner == 0 { 0o037 } else { 0o077 };
    mode & others != 0
}

#[cfg(not(unix))]
fn is_open(_path: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::lets_others_access;

    #[test]
    fn only_files_owned_by_root_may_be_readable_by_their_group() {
        for (owner, mode, open) in [
            (1000, 0o100_600, false),
            (1000, 0o100_400, false),
            (1000, 0o100_640, true),
            (1000, 0o100_604, true),
            (0, 0o100_640, false),
            (0, 0o100_440, false),
            (0, 0o100_660, true),
            (0, 0o100_644, true),
        ] {
            assert_eq!(lets_others_access(owner, mode), open, "{owner} {mode:o}");
        }
    }
}
