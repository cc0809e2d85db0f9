//! Returns memory that the allocator keeps to the system when many connections have ended.
//!
//! The memory of a connection is freed when it ends, but glibc's allocator returns only the end of a
//! heap to the system: between short blocks that live on, hundreds of MiB stay resident after a flood
//! of 2,000 connections. `malloc_trim` returns the pages in between. Other allocators return theirs
//! themselves.
//!
//! Why the `unsafe` code is sound:
//!
//! 1. `malloc_trim` may be called at any time and from any thread: it locks each arena, and moves no
//!    memory in use (`malloc_trim(3)`: MT-Safe).

/// Returns free pages to the system; takes some milliseconds if there are many.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code)]
pub fn trim() {
    // SAFETY: 1.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing: other allocators return memory themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim() {}
