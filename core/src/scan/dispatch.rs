//! Which kernel runs: the best the processor has, unless the program chose another.
//!
//! D1: a kernel compiled for an instruction set is called only right behind the check that the
//! running processor has it. The check is one load of a cached word.

use std::sync::atomic::{AtomicU8, Ordering};

use super::{StringEnd, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, sse2};

/// Text that is escaped sooner byte by byte than by moving it to a block.
#[cfg(target_arch = "x86_64")]
const SHORT: usize = 16;

/// The instruction sets that have kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Isa {
    /// Byte by byte, on every processor.
    Scalar,
    /// x86-64's baseline.
    Sse2,
    /// The default where it exists.
    Avx2,
    /// Never chosen by itself: older processors lower their clock for it.
    Avx512,
}

static CHOSEN: AtomicU8 = AtomicU8::new(u8::MAX);

impl Isa {
    /// All of them, the plainest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Sse2, Self::Avx2, Self::Avx512];

    /// Whether this processor has it.
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

    /// Makes the whole process use it from now on; `false`, and no change, if the processor
    /// does not have it.
    pub fn choose(self) -> bool {
        let available = self.is_available();
        if available {
            CHOSEN.store(self as u8, Ordering::Relaxed);
        }
        available
    }

    /// What the process uses.
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

    /// [`string_end`](super::string_end) by this kernel, or by the scalar one where the
    /// processor does not have it.
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

    /// [`container_end`](super::container_end) by this kernel, or by the scalar one where the
    /// processor does not have it.
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

    /// [`escape_into`](super::escape_into) by this kernel, or by the scalar one where the
    /// processor does not have it and for text of a few bytes.
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
