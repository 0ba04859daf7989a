//! Finding the configuration file.

use crate::error::ConfigError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Value of `--config` or [`VARIABLE`] that disables the configuration file.
pub(crate) const NONE: &str = "none";

/// Environment variable that names the configuration file.
pub(crate) const VARIABLE: &str = "HATEBEAM_CONFIG";

/// Location of the configuration file.
#[derive(Clone, Debug)]
pub enum Location {
    /// The file that the command line or the environment names.
    Named(PathBuf),
    /// The default file, which may not exist.
    Default(PathBuf),
    /// The user disabled the configuration file.
    Disabled,
    /// The default file is unknown, because no environment variable names the home folder.
    Unknown,
}

impl Location {
    /// Returns the location of the file. `typed` is the file that `--config` names.
    pub fn of(typed: Option<&Path>) -> Location {
        let in_environment = || variable(VARIABLE).map(PathBuf::from);
        match typed.map(Path::to_owned).or_else(in_environment) {
            Some(path) if path == Path::new(NONE) => Location::Disabled,
            Some(path) => Location::Named(path),
            None => default_file().map_or(Location::Unknown, Location::Default),
        }
    }

    /// Returns the file to read: the named file, or the default file if it exists.
    pub fn existing(&self) -> Option<PathBuf> {
        match self {
            Location::Named(path) => Some(path.clone()),
            Location::Default(path) => path.exists().then(|| path.clone()),
            Location::Disabled | Location::Unknown => None,
        }
    }

    /// Returns the path of the file, which may not exist.
    ///
    /// # Errors
    /// Returns [`ConfigError::Disabled`] or [`ConfigError::NoHome`] if there is no path.
    pub fn path(&self) -> Result<PathBuf, ConfigError> {
        match self {
            Location::Named(path) | Location::Default(path) => Ok(path.clone()),
            Location::Disabled => Err(ConfigError::Disabled),
            Location::Unknown => Err(ConfigError::NoHome),
        }
    }

    /// Returns the path of the file to read.
    ///
    /// # Errors
    /// Returns [`ConfigError::Missing`] if the default file does not exist, and the errors of [`Location::path`].
    pub fn required(&self) -> Result<PathBuf, ConfigError> {
        let path = self.path()?;
        self.existing().ok_or(ConfigError::Missing(path))
    }
}

/// Returns the value of an environment variable, if it is set and not empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the path of the default file, or `None` if no environment variable names the home folder.
fn default_file() -> Option<PathBuf> {
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(folder.join("hatebeam/config.toml"))
}
