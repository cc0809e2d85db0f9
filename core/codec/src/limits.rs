//! The limits of the codec, with their units and what they prevent.

/// Longest request id kept, in bytes of its raw token; a longer id is refused as an invalid
/// request. Stops a peer from pinning memory with ids.
pub const MAX_ID_BYTES: usize = 4096;

/// Smallest read buffer offered to a driver, in bytes.
pub const READ_BYTES: usize = 16 << 10;

/// Capacity an input buffer keeps after a large message, in bytes. A buffer shrinks to this only
/// after [`SHRINK_AFTER`] small messages, so alternating sizes do not thrash the allocator.
pub const KEEP_BYTES: usize = 256 << 10;

/// Drained reads without a large message after which a grown buffer is freed.
pub const SHRINK_AFTER: u32 = 64;

/// Largest frame that is copied into the output's current segment, in bytes; larger frames are
/// queued without a copy and written vectored.
pub const COPY_IN_BYTES: usize = 32 << 10;
