//! Scratch directories.

use std::io;
use std::path::Path;

/// Creates a scratch directory that only the user can read, unless it exists.
///
/// # Errors
/// Returns the error from the operating system.
pub fn create_scratch(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Returns whether another user could replace files in a directory: because the directory belongs to another user or can be
/// written by others, or because its name is a symbolic link. In a shared directory such as `/tmp`, another user can
/// create the directory first.
///
/// # Errors
/// Returns the error from the operating system.
#[cfg(unix)]
pub fn is_shared(dir: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let metadata = dir.symlink_metadata()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok(!metadata.is_dir() || !is_own || metadata.mode() & 0o022 != 0)
}

/// Returns false, because this system has no shared directory for temporary files.
#[cfg(not(unix))]
pub fn is_shared(_dir: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_new_and_closed_directories_are_not_shared() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a/scratch");
        create_scratch(&dir).unwrap();
        assert!(!is_shared(&dir).unwrap());
        let link = parent.path().join("link");
        symlink(&dir, &link).unwrap();
        assert!(is_shared(&link).unwrap());
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).unwrap();
        create_scratch(&dir).unwrap();
        assert!(is_shared(&dir).unwrap());
    }
}
