//! Removal of a run on one machine. The files of its best game are kept.

use super::REPLAYS;
use hatebeam_files::{FolderLock, LOCK, create_dir_durably, is_temporary, sync_dir, write_whole};
use hatebeam_store::{DEPTHS, MANIFEST, StoreError};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file of a run's best game.
struct ReplayFile {
    name: OsString,
    bytes: Vec<u8>,
}

/// Copies the files of a run's best game from the folder `run` to the folder of the same name in `replays`, and flushes
/// them to disk. If that folder contains a file with the same name and other contents, uses the first suitable folder with
/// a number after the name, such as `NAME-2`. Returns the path of the folder, or `None` if the run has no such files.
///
/// # Errors
/// Returns an error if a file cannot be read or written.
pub fn copy_replays(run: &Path, replays: &Path) -> Result<Option<PathBuf>, StoreError> {
    let files = files_in(&run.join(REPLAYS))?;
    if files.is_empty() {
        return Ok(None);
    }
    let folder = free_folder(replays, run.file_name().unwrap_or_default(), &files)?;
    create_dir_durably(&folder).map_err(StoreError::io(&folder))?;
    // The files are copied instead of renamed, because the folders may be on different disks.
    for ReplayFile { name, bytes } in &files {
        let path = folder.join(name);
        write_whole(&path, bytes).map_err(StoreError::io(&path))?;
    }
    for folder in replays.ancestors().take(2) {
        sync_dir(folder).map_err(StoreError::io(folder))?;
    }
    Ok(Some(folder))
}

/// Reads the files in a folder, except for unfinished ones. Returns no files if the folder does not exist.
fn files_in(folder: &Path) -> Result<Vec<ReplayFile>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io(folder))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io(folder))?;
        if is_temporary(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        files.push(ReplayFile {
            name: entry.file_name(),
            bytes: fs::read(&path).map_err(StoreError::io(&path))?,
        });
    }
    Ok(files)
}

/// Returns the first of the folders `NAME`, `NAME-2`, `NAME-3` and so on to which the files can be copied.
fn free_folder(replays: &Path, name: &OsStr, files: &[ReplayFile]) -> Result<PathBuf, StoreError> {
    let mut folder = replays.join(name);
    let mut number = 1;
    while has_other_file(&folder, files)? {
        number += 1;
        let mut numbered = name.to_owned();
        numbered.push(format!("-{number}"));
        folder = replays.join(numbered);
    }
    Ok(folder)
}

/// Returns whether a folder contains a file that has the name of one of these files, but other contents.
fn has_other_file(folder: &Path, files: &[ReplayFile]) -> Result<bool, StoreError> {
    for ReplayFile { name, bytes } in files {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(existing) if existing == *bytes => {}
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&path)(error)),
        }
    }
    Ok(false)
}

/// Removes the folder of a run. `lock` is the lock that [`StateFolder::lock_for_removal`](super::StateFolder::lock_for_removal)
/// has returned. The files by which a run is recognized are removed last, so that an interrupted removal can be repeated.
///
/// # Errors
/// Returns an error if a file cannot be removed.
pub fn remove_run_folder(dir: &Path, lock: FolderLock) -> Result<(), StoreError> {
    const LAST: [&str; 3] = [DEPTHS, MANIFEST, LOCK];
    // If the path is a symbolic link, both the folder and the link are removed.
    let folder = fs::canonicalize(dir).map_err(StoreError::io(dir))?;
    let is_link = fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_symlink());
    for entry in fs::read_dir(&folder).map_err(StoreError::io(dir))? {
        let entry = entry.map_err(StoreError::io(dir))?;
        let name = entry.file_name();
        if LAST.iter().all(|&last| name != last) {
            remove(&entry.path())?;
        }
    }
    for name in LAST {
        remove(&folder.join(name))?;
    }
    drop(lock);
    fs::remove_dir(&folder).map_err(StoreError::io(dir))?;
    if is_link { remove(dir) } else { Ok(()) }
}

/// Removes a file, or a folder with its contents. Does nothing if it does not exist.
fn remove(path: &Path) -> Result<(), StoreError> {
    let removed = fs::symlink_metadata(path).and_then(|meta| {
        if meta.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    });
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(StoreError::io(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::StateFolder;
    use hatebeam_game::Geometry;
    use hatebeam_store::RunStore;

    #[test]
    fn interrupted_removal_can_be_repeated() {
        let root = tempfile::tempdir().unwrap();
        let state = StateFolder::at(root.path()).unwrap();
        let (inside, elsewhere) = (state.runs().join("a"), root.path().join("b"));
        // Each list contains the files that a removal has left.
        let left: [&[&str]; 5] = [
            &["db", DEPTHS, MANIFEST, LOCK],
            &[DEPTHS, MANIFEST, LOCK],
            &[MANIFEST, LOCK],
            &[LOCK],
            &[],
        ];
        for dir in [&inside, &elsewhere] {
            // A folder elsewhere is recognized by its manifest.
            for left in left.iter().filter(|left| *dir == inside || left.len() > 1) {
                drop(RunStore::create(dir, Geometry::STANDARD, &().into()).unwrap());
                fs::create_dir(dir.join(REPLAYS)).unwrap();
                fs::write(dir.join(REPLAYS).join("game.txt"), "1").unwrap();
                for entry in fs::read_dir(dir).unwrap() {
                    let entry = entry.unwrap();
                    if left.iter().all(|&name| entry.file_name() != name) {
                        remove(&entry.path()).unwrap();
                    }
                }
                let lock = state.lock_for_removal(dir).unwrap();
                remove_run_folder(dir, lock).unwrap();
                assert!(!dir.exists(), "{left:?}");
            }
        }
    }

    #[test]
    fn removal_follows_a_symbolic_link_to_the_run_but_none_inside_it() {
        let root = tempfile::tempdir().unwrap();
        let state = StateFolder::at(root.path()).unwrap();
        let (dir, link) = (root.path().join("disk"), state.runs().join("a"));
        drop(RunStore::create(&dir, Geometry::STANDARD, &().into()).unwrap());
        let other = root.path().join("other");
        fs::create_dir_all(other.join("folder")).unwrap();
        std::os::unix::fs::symlink(&other, dir.join("other")).unwrap();
        fs::create_dir(state.runs()).unwrap();
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        let lock = state.lock_for_removal(&link).unwrap();
        remove_run_folder(&link, lock).unwrap();
        assert!(!dir.exists() && fs::symlink_metadata(&link).is_err());
        assert!(other.join("folder").is_dir());
    }

    #[test]
    fn copies_replace_no_file_with_other_contents() {
        let root = tempfile::tempdir().unwrap();
        let (run, replays) = (root.path().join("runs/a"), root.path().join("replays"));
        let source = run.join(REPLAYS);
        fs::create_dir_all(&source).unwrap();
        assert_eq!(copy_replays(&run, &replays).unwrap(), None);
        for (text, folder) in [
            ("1", "a"),
            ("1", "a"),
            ("2", "a-2"),
            ("3", "a-3"),
            ("2", "a-2"),
        ] {
            fs::write(source.join("game.txt"), text).unwrap();
            fs::write(source.join("game.svg"), "picture").unwrap();
            let copied = copy_replays(&run, &replays).unwrap();
            assert_eq!(copied, Some(replays.join(folder)));
        }
        for (folder, text) in [("a", "1"), ("a-2", "2"), ("a-3", "3")] {
            let folder = replays.join(folder);
            assert_eq!(fs::read_to_string(folder.join("game.txt")).unwrap(), text);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        }
    }

    #[test]
    fn unfinished_files_are_not_copied() {
        let root = tempfile::tempdir().unwrap();
        let (run, replays) = (root.path().join("runs/a"), root.path().join("replays"));
        let source = run.join(REPLAYS);
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join(".hatebeam-1-0.tmp"), "1").unwrap();
        assert_eq!(copy_replays(&run, &replays).unwrap(), None);
        fs::write(source.join("game.txt"), "1").unwrap();
        let copied = copy_replays(&run, &replays).unwrap().unwrap();
        assert!(copied.join("game.txt").exists());
        assert_eq!(fs::read_dir(copied).unwrap().count(), 1);
    }

    #[test]
    fn copies_of_an_interrupted_removal_are_completed() {
        let root = tempfile::tempdir().unwrap();
        let (run, replays) = (root.path().join("runs/a"), root.path().join("replays"));
        let source = run.join(REPLAYS);
        fs::create_dir_all(&source).unwrap();
        fs::create_dir_all(replays.join("a")).unwrap();
        fs::write(replays.join("a/game.txt"), "1").unwrap();
        for name in ["game.txt", "game.svg"] {
            fs::write(source.join(name), "1").unwrap();
        }
        let copied = copy_replays(&run, &replays).unwrap();
        assert_eq!(copied, Some(replays.join("a")));
        assert_eq!(fs::read_dir(replays.join("a")).unwrap().count(), 2);
    }

    #[test]
    fn only_a_missing_folder_has_no_files() {
        let root = tempfile::tempdir().unwrap();
        let (run, replays) = (root.path().join("runs/a"), root.path().join("replays"));
        fs::create_dir_all(&run).unwrap();
        assert_eq!(copy_replays(&run, &replays).unwrap(), None);
        assert!(!replays.exists());
        fs::write(run.join(REPLAYS), "").unwrap();
        let error = copy_replays(&run, &replays).unwrap_err();
        assert!(error.to_string().contains(REPLAYS), "{error}");
    }
}
