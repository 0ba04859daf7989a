//! Files that are written whole or not at all, and folders that are created durably.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Beginning of the name of a temporary file. A random number follows.
const PREFIX: &str = ".hatebeam-";
/// End of the name of a temporary file.
const SUFFIX: &str = ".tmp";

/// Makes the creation, renaming and removal of files in a folder durable.
///
/// # Errors
/// Returns an error if the folder cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a folder and its missing parents, and makes them durable. An existing folder is made durable too, because an
/// interrupted process may have created it.
///
/// # Errors
/// Returns an error if a folder cannot be created or synced.
pub fn create_dir_durably(dir: &Path) -> io::Result<()> {
    let parents = dir.ancestors().skip(1);
    let missing: Vec<&Path> = parents.take_while(|parent| !parent.exists()).collect();
    fs::create_dir_all(dir)?;
    sync_dir(folder_of(dir))?;
    missing.into_iter().map(folder_of).try_for_each(sync_dir)
}

/// Creates or replaces a file atomically and durably. If the path is a symbolic link, creates or replaces the file to which
/// it leads. Writes directly to a file that is not regular, such as `/dev/null` or a pipe.
///
/// # Errors
/// Returns an error if the file cannot be written. An existing regular file is then unchanged, unless only the final sync
/// of its folder has failed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, &File::options())
}

/// Creates or replaces a file like [`write_whole`], but only its owner can read the new file. A pipe or another file that is
/// not regular keeps its permissions.
///
/// # Errors
/// Returns an error in the same cases as [`write_whole`].
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    write(path, bytes, &options)
}

/// Writes a file. `options` contains the permissions of the new file.
fn write(path: &Path, bytes: &[u8], options: &OpenOptions) -> io::Result<()> {
    let is_special = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        meta => {
            let meta = meta?;
            !meta.is_file() && !meta.is_dir()
        }
    };
    if is_special {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let target = target_of(path);
    let folder = folder_of(&target);
    let mut temporary = Temporary::create_with(folder, options)?;
    temporary.file.write_all(bytes)?;
    temporary.file.sync_all()?;
    temporary.rename(&target)?;
    sync_dir(folder)
}

/// A new temporary file, which replaces another file when it is whole. Dropping this value removes the file, unless it has
/// been renamed.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    /// The file, open for writing.
    pub file: File,
    is_renamed: bool,
}

impl Temporary {
    /// Creates an empty file with a random name, which is unique even if processes on several machines create files in
    /// the same folder.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn create(folder: &Path) -> io::Result<Temporary> {
        Temporary::create_with(folder, &File::options())
    }

    fn create_with(folder: &Path, options: &OpenOptions) -> io::Result<Temporary> {
        // The keys of each new state differ, and come from the operating system's random numbers.
        let number = RandomState::new().hash_one(());
        let path = folder.join(format!("{PREFIX}{number:016x}{SUFFIX}"));
        let file = options.clone().write(true).create_new(true).open(&path)?;
        Ok(Temporary {
            path,
            file,
            is_renamed: false,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file, replacing any existing file with the target name. The caller must sync the file first, and call
    /// [`sync_dir`] afterwards to make the new name durable.
    ///
    /// # Errors
    /// Returns an error if the file cannot be renamed.
    pub fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_renamed {
            // A leftover temporary file is harmless, because no other file has its name.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns whether a file has the name of a [`Temporary`] file.
pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Removes the temporary files that killed processes have left in a folder, which need not exist. No process may be writing
/// a file there.
///
/// # Errors
/// Returns an error if the folder cannot be read or a file cannot be removed.
pub fn remove_temporaries(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if is_temporary(&entry.file_name()) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

/// Follows symbolic links. The result may not exist.
fn target_of(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    while let Ok(link) = fs::read_link(&target) {
        target = folder_of(&target).join(link);
    }
    target
}

/// Returns the folder of a file, or `.` if the path has no folder.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn written_file_replaces_only_a_file_of_the_same_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game");
        let other = folder.path().join("game.tmp");
        fs::write(&other, "mine").unwrap();
        for text in ["a", "b"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(names_in(folder.path()), ["game", "game.tmp"]);
        write_whole(folder.path(), b"c").unwrap_err();
        write_whole(&folder.path().join("none/game"), b"c").unwrap_err();
        assert_eq!(names_in(folder.path()), ["game", "game.tmp"]);
    }

    #[cfg(unix)]
    #[test]
    fn private_file_replaces_readable_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let others = || fs::metadata(&path).unwrap().permissions().mode() & 0o077;
        write_whole(&path, b"a").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_private(&path, b"b").unwrap();
        assert_eq!((fs::read(&path).unwrap(), others()), (b"b".to_vec(), 0));
        assert_eq!(names_in(folder.path()), ["key"]);
    }

    #[test]
    fn temporary_files_have_unique_names_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let first = Temporary::create(folder).unwrap();
        let names = names_in(folder);
        assert!(is_temporary(OsStr::new(&names[0])), "{names:?}");
        let second = Temporary::create(folder).unwrap();
        assert_ne!(first.path, second.path);
        let kept = folder.join("kept");
        second.rename(&kept).unwrap();
        drop(first);
        assert_eq!(names_in(folder), ["kept"]);
        fs::remove_file(kept).unwrap();
        fs::write(folder.join(&names[0]), "").unwrap();
        for name in ["file", "manifest.json.tmp", ".hatebeam-1", ".tmp"] {
            assert!(!is_temporary(OsStr::new(name)), "{name}");
            fs::write(folder.join(name), "").unwrap();
        }
        remove_temporaries(folder).unwrap();
        assert_eq!(
            names_in(folder),
            [".hatebeam-1", ".tmp", "file", "manifest.json.tmp"]
        );
        remove_temporaries(&folder.join("none")).unwrap();
        remove_temporaries(&folder.join("file")).unwrap_err();
    }

    #[test]
    fn missing_folder_is_created_with_its_parents() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b/c");
        for _ in 0..2 {
            create_dir_durably(&dir).unwrap();
            assert!(dir.is_dir());
        }
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        create_dir_durably(&file.join("a")).unwrap_err();
    }

    #[test]
    fn symbolic_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
        fs::create_dir(&here).unwrap();
        fs::create_dir(&there).unwrap();
        let link = here.join("link");
        std::os::unix::fs::symlink("second", &link).unwrap();
        std::os::unix::fs::symlink("../there/file", here.join("second")).unwrap();
        // The file does not exist at first.
        for text in ["a", "b"] {
            write_whole(&link, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(there.join("file")).unwrap(), text);
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names_in(&here), ["link", "second"]);
        assert_eq!(names_in(&there), ["file"]);
        let circle = here.join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        write_whole(&circle, b"c").unwrap_err();
    }

    #[test]
    fn pipe_is_written_and_not_replaced() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        write_whole(&path, b"text").unwrap();
        assert_eq!(reader.join().unwrap(), b"text");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names_in(folder.path()), ["pipe"]);
    }

    #[test]
    fn folder_of_returns_parent_or_current_folder() {
        for (path, folder) in [("a", "."), ("./a", "."), ("a/b", "a"), ("/a", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }
}
