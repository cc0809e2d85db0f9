//! Credentials in files that only their owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::apart::apart;
use super::turns::KeyTurns;
use super::{CredentialStore, KeyLock, Stored, document, folder};

/// Age from which an unfinished file counts as left behind by a process that died.
const ABANDONED: Duration = Duration::from_secs(600);

/// Largest file that is read as a document.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Keeps each document in a file of its own, which only its owner can read (mode 0600, in a folder of mode
/// 0700). Any number of processes may use one folder.
///
/// A file's name is a digest of its key. A document is replaced by renaming a complete file; its lock is
/// a second file, which stays. A damaged file is reported, and neither replaced nor removed. Blocking
/// calls run on threads of their own, so the futures suit every runtime.
#[derive(Clone)]
pub struct FileStore {
    folder: PathBuf,
    turns: KeyTurns,
}

impl FileStore {
    /// A store in `folder`, which is made when it is first used.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            turns: KeyTurns::default(),
        }
    }

    /// The user's store, which all programs share by default: the folder that the environment variable
    /// [`FOLDER_VARIABLE`](super::FOLDER_VARIABLE) names, else
    ///
    /// - `$XDG_STATE_HOME/mcpbolt/credentials` or `~/.local/state/mcpbolt/credentials`,
    /// - on macOS `~/Library/Application Support/mcpbolt/credentials`,
    /// - on Windows `%LOCALAPPDATA%\mcpbolt\credentials`.
    ///
    /// # Errors
    /// When the environment does not say where the user's folder is.
    pub fn of_the_user() -> io::Result<Self> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        folder::of_the_user(variable).map(Self::at)
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn files(&self, key: &str) -> Files {
        let digest = hmac_sha256::Hash::hash(key.as_bytes());
        // Half of the digest: names stay short, and the file says which key it is for.
        let name = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Files {
            folder: self.folder.clone(),
            name,
            key: key.to_owned(),
        }
    }

    fn on_files<T: Send + 'static>(
        &self,
        key: &str,
        work: impl FnOnce(&Files) -> io::Result<T> + Send + 'static,
    ) -> Stored<'static, T> {
        let files = self.files(key);
        Box::pin(async move { apart(move || work(&files))?.await })
    }
}

impl CredentialStore for FileStore {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.on_files(key, Files::load)
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        let document = document.to_owned();
        self.on_files(key, move |files| files.save(&document))
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        self.on_files(key, Files::remove)
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        let files = self.files(key);
        let turn = self.turns.turn(&files.name);
        Box::pin(async move {
            // The thread keeps the turn, so that a key has one waiting thread even if futures are dropped.
            let turn = turn.await;
            let held = apart(move || Ok((files.lock()?, turn)))?.await?;
            Ok(KeyLock::new(held))
        })
    }
}

impl std::fmt::Debug for FileStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FileStore").field(&self.folder).finish()
    }
}

/// The files of one key.
struct Files {
    folder: PathBuf,
    name: String,
    key: String,
}

impl Files {
    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.name))
    }

    fn load(&self) -> io::Result<Option<String>> {
        let path = self.path("json");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(about(&path, &error)),
        };
        let found = file.metadata().map_err(|error| about(&path, &error))?;
        folder::refuse_shared(&path, &found, "600")?;
        let mut text = Vec::new();
        let mut limited = io::Read::take(file, MAX_FILE_BYTES);
        io::Read::read_to_end(&mut limited, &mut text).map_err(|error| about(&path, &error))?;
        document::read(&self.key, &text, &path).map(Some)
    }

    /// A damaged file stays: the load fails.
    fn save(&self, document: &str) -> io::Result<()> {
        folder::make_private(&self.folder)?;
        self.load()?;
        let text = document::write(&self.key, document)?;
        if text.len() as u64 >= MAX_FILE_BYTES {
            let why = format!("credentials of {} bytes are too large to keep", text.len());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        let next = self.path(&format!(
            "{:08x}.new",
            getrandom::u32().map_err(io::Error::other)?
        ));
        let written = self.write(&next, &text);
        if written.is_err() {
            let _ = fs::remove_file(&next);
        }
        written.map_err(|error| about(&next, &error))?;
        self.remove_abandoned();
        Ok(())
    }

    fn write(&self, next: &Path, text: &str) -> io::Result<()> {
        let mut file = private().create_new(true).open(next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        fs::rename(next, self.path("json"))?;
        // The new name is on the disk only once the folder is.
        #[cfg(unix)]
        File::open(&self.folder)?.sync_all()?;
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        if self.load()?.is_none() {
            return Ok(());
        }
        let path = self.path("json");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(about(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Removes unfinished files of this key that a process left behind when it died.
    fn remove_abandoned(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with(&self.name) || !name.ends_with(".new") {
                continue;
            }
            let written = entry.metadata().and_then(|found| found.modified());
            let age = written.ok().and_then(|written| written.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED) {
                // Another process may do so at the same time.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn lock(&self) -> io::Result<Lock> {
        folder::make_private(&self.folder)?;
        let path = self.path("lock");
        let file = private().create(true).truncate(false).open(&path);
        let file = file.map_err(|error| about(&path, &error))?;
        file.lock().map_err(|error| about(&path, &error))?;
        Ok(Lock(file))
    }
}

/// A locked file. It is unlocked rather than only closed: a forked child may have the descriptor, too.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Opens for writing, for the owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("the credentials in {}: {error}", path.display()),
    )
}
