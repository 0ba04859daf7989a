//! Files and folders that survive crashes: atomic writes, locks on folders, and digests at the end of files.

mod lock;
mod seal;
mod whole;

pub use lock::{FolderLock, FolderLockError, LOCK};
pub use seal::{sealed, unsealed};
pub use whole::{
    Temporary, create_dir_durably, is_temporary, remove_temporaries, sync_dir, write_private,
    write_whole,
};
