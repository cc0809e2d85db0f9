//! The format of a file with a document: a JSON object that says what it is, in which version, and whose.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

const KIND: &str = "mcpbolt credentials";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Content<'a> {
    kind: &'a str,
    version: u32,
    key: String,
    document: String,
}

/// What is read before the rest, which another version may have changed.
#[derive(Deserialize)]
struct Head {
    kind: String,
    version: u32,
}

/// The text of a file.
pub fn write(key: &str, document: &str) -> io::Result<String> {
    Ok(serde_json::to_string(&Content {
        kind: KIND,
        version: VERSION,
        key: key.to_owned(),
        document: document.to_owned(),
    })?)
}

/// The document in the text of a file. Errors name the file and never quote from it.
pub fn read(key: &str, text: &[u8], file: &Path) -> io::Result<String> {
    let error = |why: &str| {
        let why = format!("the credentials in {} {why}", file.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    let damaged = "are damaged; move the file away and log in again";
    let head: Head = serde_json::from_slice(text).map_err(|_| error(damaged))?;
    if head.kind != KIND {
        return Err(error(damaged));
    }
    if head.version != VERSION {
        return Err(error(&format!(
            "have format {}, this program reads format {VERSION}; update this program, or give it a folder of its own",
            head.version
        )));
    }
    let content: Content<'_> = serde_json::from_slice(text).map_err(|_| error(damaged))?;
    if content.key != key {
        return Err(error(
            "belong to another login; move the file away and log in again",
        ));
    }
    Ok(content.document)
}
