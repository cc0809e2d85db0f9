//! The folder of the user's credentials.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable that names another folder than the platform's.
pub const FOLDER_VARIABLE: &str = "MCPBOLT_CREDENTIALS";

/// The folder of the user's credentials: what [`FOLDER_VARIABLE`] says, else by the platform's convention.
pub fn of_the_user(variable: impl Fn(&str) -> Option<PathBuf>) -> io::Result<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    if let Some(folder) = set(FOLDER_VARIABLE) {
        return Ok(folder);
    }
    let state = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // The convention has relative paths ignored.
        set("XDG_STATE_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(".local/state")))
    };
    let missing = || {
        let home = if cfg!(windows) {
            "LOCALAPPDATA"
        } else {
            "HOME"
        };
        let why = format!(
            "no folder for credentials: {home} is not set; set it, or name a folder in {FOLDER_VARIABLE}"
        );
        io::Error::new(io::ErrorKind::NotFound, why)
    };
    Ok(state
        .ok_or_else(missing)?
        .join("mcpbolt")
        .join("credentials"))
}

/// Makes sure that the folder exists and only its owner can use it.
pub fn make_private(folder: &Path) -> io::Result<()> {
    let of_folder = |error: io::Error| {
        let why = format!("the folder for credentials {}: {error}", folder.display());
        io::Error::new(error.kind(), why)
    };
    create(folder).map_err(of_folder)?;
    let found = fs::metadata(folder).map_err(of_folder)?;
    refuse_shared(folder, &found, "700")
}

/// Refuses a file or folder that other users can read or write.
#[cfg(unix)]
pub fn refuse_shared(path: &Path, found: &fs::Metadata, wanted: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    let why = format!(
        "other users can reach the credentials in {path} (mode {mode:03o}); run: chmod {wanted} {path}"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// A user's profile folder is private on Windows.
#[cfg(not(unix))]
pub fn refuse_shared(_: &Path, _: &fs::Metadata, _: &str) -> io::Result<()> {
    Ok(())
}

fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_follows_the_platform_unless_it_is_named() {
        let with = |pairs: &'static [(&str, &str)]| {
            of_the_user(move |name| {
                let pair = pairs.iter().find(|(known, _)| *known == name);
                pair.map(|(_, value)| PathBuf::from(value))
            })
        };
        let named = with(&[(FOLDER_VARIABLE, "/srv/keys"), ("HOME", "/home/me")]);
        assert_eq!(named.unwrap(), Path::new("/srv/keys"));
        let why = with(&[]).unwrap_err().to_string();
        assert!(why.contains(FOLDER_VARIABLE), "{why}");
        if cfg!(all(unix, not(target_os = "macos"))) {
            let home = with(&[("HOME", "/home/me"), ("XDG_STATE_HOME", "not/absolute")]);
            let expected = Path::new("/home/me/.local/state/mcpbolt/credentials");
            assert_eq!(home.unwrap(), expected);
            let state = with(&[("HOME", "/home/me"), ("XDG_STATE_HOME", "/state")]);
            assert_eq!(state.unwrap(), Path::new("/state/mcpbolt/credentials"));
        }
    }
}
