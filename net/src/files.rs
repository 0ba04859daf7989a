//! Reading small files, some of which are nobody else's business.

use super::WireError;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a file with certificates or a token. They have some thousands.
const MAX_BYTES: u64 = 1 << 20;

/// The bytes of a file.
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
            reason: format!("it has more than {MAX_BYTES} bytes, and cannot be what it should"),
        });
    }
    Ok(bytes)
}

/// The bytes of a file that others should not be able to read; says so if they can.
pub(super) fn read_private(path: &Path) -> Result<Vec<u8>, WireError> {
    let bytes = read(path)?;
    if is_open(path) {
        let path = path.display();
        tracing::warn!("others can read {path}, which is secret: `chmod 600` it");
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata()
        .is_ok_and(|meta| lets_others_read(meta.uid(), meta.mode()))
}

/// A file that belongs to root may be read by its group: so does Kubernetes hand out secrets, and so are services
/// given theirs that run as users of their own.
#[cfg(unix)]
fn lets_others_read(owner: u32, mode: u32) -> bool {
    let others = if owner == 0 { 0o037 } else { 0o077 };
    mode & others != 0
}

#[cfg(not(unix))]
fn is_open(_path: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::lets_others_read;

    #[test]
    fn only_what_belongs_to_root_is_for_a_group() {
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
            assert_eq!(lets_others_read(owner, mode), open, "{owner} {mode:o}");
        }
    }
}
