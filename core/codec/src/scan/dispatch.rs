//! Selects the kernel: the best that the processor supports, unless the program chose another.
//!
//! D1: a kernel compiled for an instruction set is called only directly after a check that the
//! processor supports it. The check is one load of a cached word.

use std::sync::atomic::{AtomicU8, Ordering};

use super::{StringEnd, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, sse2};

/// Shortest text that is moved to a block, in bytes; shorter text is escaped faster byte by byte.
#[cfg(target_arch = "x86_64")]
const SHORT: usize = 16;

/// The instruction sets that have kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Isa {
    /// Byte by byte; for every processor.
    Scalar,
    /// The baseline of x86-64.
    Sse2,
    /// The default where available.
    Avx2,
    /// Never selected by default: older processors lower their clock rate for it.
    Avx512,
}

static CHOSEN: AtomicU8 = AtomicU8::new(u8::MAX);

impl Isa {
    /// All instruction sets, the simplest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512];

    /// Whether this processor supports it.
    #[inline]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Makes the whole process use this instruction set from now on. Returns `false` and changes
    /// nothing if the processor does not support it.
    pub fn choose(self) -> bool {
        let available = self.is_available();
        if available {
            CHOSEN.store(self as u8, Ordering::Relaxed);
        }
        available
    }

    /// The instruction set that the process uses.
    #[inline]
    pub fn chosen() -> Self {
        match CHOSEN.load(Ordering::Relaxed) {
            0 => Self::Scalar,
            1 => Self::Sse2,
            2 => Self::Avx2,
            3 => Self::Avx512,
            _ => Self::detect(),
        }
    }

    #[cold]
    fn detect() -> Self {
        let best = [Self::Avx2, Self::Sse2]
            .into_iter()
            .find(|isa| isa.is_available());
        let best = best.unwrap_or(Self::Scalar);
        best.choose();
        best
    }

    /// [`string_end`](super::string_end) by this kernel, or by the scalar one if the processor does
    /// not support it.
    #[inline]
    pub fn string_end(self, text: &[u8], pos: usize) -> Option<StringEnd> {
        #[cfg(target_arch = "x86_64")]
        if self.is_available() {
            match self {
                // SAFETY: D1.
                Self::Avx512 => return unsafe { avx512::string_end(text, pos) },
                // SAFETY: D1.
                Self::Avx2 => return unsafe { avx2::string_end(text, pos) },
                // SAFETY: D1.
                Self::Sse2 => return unsafe { sse2::string_end(text, pos) },
                Self::Scalar => {}
            }
        }
        scalar::string_end(text, pos)
    }

    /// [`container_end`](super::container_end) by this kernel, or by the scalar one if the
    /// processor does not support it.
    #[inline]
    pub fn container_end(self, text: &[u8], pos: usize) -> Option<usize> {
        #[cfg(target_arch = "x86_64")]
        if self.is_available() {
            match self {
                // SAFETY: D1.
                Self::Avx512 => return unsafe { avx512::container_end(text, pos) },
                // SAFETY: D1.
                Self::Avx2 => return unsafe { avx2::container_end(text, pos) },
                // SAFETY: D1.
                Self::Sse2 => return unsafe { sse2::container_end(text, pos) },
                Self::Scalar => {}
            }
        }
        scalar::container_end(text, pos)
    }

    /// [`escape_into`](super::escape_into) by this kernel, or by the scalar one for short text or
    /// if the processor does not support it.
    #[inline]
    pub fn escape_into(self, out: &mut Vec<u8>, text: &str) {
        let text = text.as_bytes();
        #[cfg(target_arch = "x86_64")]
        if text.len() >= SHORT && self.is_available() {
            match self {
                // SAFETY: D1.
                Self::Avx512 => return unsafe { avx512::escape_into(out, text) },
                // SAFETY: D1.
                Self::Avx2 => return unsafe { avx2::escape_into(out, text) },
                // SAFETY: D1.
                Self::Sse2 => return unsafe { sse2::escape_into(out, text) },
                Self::Scalar => {}
            }
        }
        scalar::escape_into(out, text);
    }
}
