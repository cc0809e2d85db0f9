//! The bytes of a frame on its way from the thread that encoded it to the driver.

use bytes::Bytes;

use crate::limits::COPY_IN_BYTES;

/// Where the bytes of a submitted frame are.
#[derive(Debug)]
pub(crate) enum FramePlace {
    /// In the shared buffer, after the frame before: this many bytes.
    Next(usize),
    /// In a block of its own.
    Own(Bytes),
}

/// The bytes of a submitted frame.
pub(crate) enum Encoded<'a> {
    Copied(&'a [u8]),
    Own(Bytes),
}

impl FramePlace {
    pub fn len(&self) -> usize {
        match self {
            Self::Next(len) => *len,
            Self::Own(bytes) => bytes.len(),
        }
    }

    /// Returns the bytes; those of a short frame are removed from the head of `next`.
    pub fn find<'a>(self, next: &mut &'a [u8]) -> Encoded<'a> {
        match self {
            Self::Next(len) => {
                let (frame, rest) = next.split_at(len.min(next.len()));
                *next = rest;
                Encoded::Copied(frame)
            }
            Self::Own(bytes) => Encoded::Own(bytes),
        }
    }
}

/// Whether a frame of that length is too long to be copied under the queue's lock.
pub(crate) fn is_long(len: usize) -> bool {
    len > COPY_IN_BYTES
}

impl std::ops::Deref for Encoded<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}
