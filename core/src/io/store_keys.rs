//! The file with the keys of a store.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use crate::store::StoreKeys;

/// The command that makes a file of keys.
const MAKES_KEYS: &str = "openssl rand -hex 64 | fold -w 64 | install -m 600 /dev/stdin store.keys";

/// Reads a file with the keys of a store: on each line a key of 64 hexadecimal digits. The first one names, the second one seals, and further
/// ones open what they have sealed. Empty lines count for nothing. This makes such a file:
///
/// ```sh
/// openssl rand -hex 64 | fold -w 64 | install -m 600 /dev/stdin store.keys
/// ```
///
/// # Errors
/// When the file cannot be read, is not of this form, or can be read by other users or changed by its group. No error quotes it, nor its path.
pub fn read_store_keys(file: &Path) -> io::Result<StoreKeys> {
    let unreadable = |why: io::Error| {
        let text = format!("it cannot be read ({why}); this makes one: {MAKES_KEYS}");
        io::Error::new(why.kind(), text)
    };
    let mut opened = File::open(file).map_err(unreadable)?;
    let mut text = String::new();
    opened.read_to_string(&mut text).map_err(unreadable)?;
    refuse_shared(file, &opened.metadata()?)?;
    parse(&text)
}

fn parse(text: &str) -> io::Result<StoreKeys> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let keys = lines.map(|(number, line)| {
        let why = || format!("line {number} is not a key, which has 64 hexadecimal digits");
        key(line.trim()).ok_or_else(|| wrong(why()))
    });
    let keys: Vec<_> = keys.collect::<io::Result<_>>()?;
    let [names, sealing, older @ ..] = &keys[..] else {
        let count = keys.len();
        let why = format!("keys there: {count}; two are needed; this makes a file: {MAKES_KEYS}");
        return Err(wrong(why));
    };
    if names == sealing {
        return Err(wrong("both keys are the same".to_owned()));
    }
    let keys = StoreKeys::new(*names, *sealing);
    Ok(older.iter().fold(keys, |keys, key| keys.also_opens(*key)))
}

/// Refuses a file that other users can read, or its group can change. Service managers hand secrets to a group that reads.
#[cfg(unix)]
fn refuse_shared(file: &Path, found: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o027 == 0 {
        return Ok(());
    }
    let why = format!(
        "other users can reach the keys (mode {mode:03o}); run: chmod 600 {}",
        file.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Files of a user are private on Windows.
#[cfg(not(unix))]
fn refuse_shared(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

fn key(digits: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(key)
}
