//! Request ids that outlive their frame.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::id::RequestId;
use crate::json;
use crate::scan;

/// A request id that outlives its frame.
#[derive(Clone)]
pub struct OwnedId(Store);

#[derive(Clone)]
enum Store {
    Inline {
        len: u8,
        bytes: [u8; OwnedId::INLINE_BYTES],
    },
    Heap(Box<str>),
}

impl OwnedId {
    /// Longest token kept without an allocation, in bytes; UUIDs with quotes need 38.
    pub const INLINE_BYTES: usize = 38;

    pub(super) fn copy(token: &str) -> Self {
        let mut bytes = [0; Self::INLINE_BYTES];
        Self(match bytes.get_mut(..token.len()) {
            Some(room) => {
                room.copy_from_slice(token.as_bytes());
                Store::Inline {
                    len: token.len() as u8,
                    bytes,
                }
            }
            None => Store::Heap(token.into()),
        })
    }

    /// The same id, borrowed.
    #[inline]
    pub fn as_ref(&self) -> RequestId<'_> {
        RequestId::from_decoded(match &self.0 {
            Store::Inline { len, bytes } => bytes
                .get(..usize::from(*len))
                .and_then(scan::text)
                .unwrap_or("0"),
            Store::Heap(token) => token,
        })
    }
}

impl From<u64> for OwnedId {
    fn from(id: u64) -> Self {
        Self::copy(itoa::Buffer::new().format(id))
    }
}

impl From<&str> for OwnedId {
    /// A string id with this value.
    fn from(text: &str) -> Self {
        let mut token = Vec::with_capacity(text.len() + 2);
        json::string::append(&mut token, text);
        Self::copy(std::str::from_utf8(&token).unwrap_or("\"\""))
    }
}

impl PartialEq for OwnedId {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for OwnedId {}

impl Hash for OwnedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_ref().hash(state);
    }
}

impl fmt::Debug for OwnedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedId({})", self.as_ref())
    }
}
