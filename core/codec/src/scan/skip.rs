//! Skips a container of validated text: counts brackets, and checks nothing.
//!
//! ```text
//!   text:     {"a":"x]","b":[1,{}]} …
//!   strings:   ### ####  ###            between an odd quote and the next
//!   opens:                 [  {         brackets outside of strings
//!   closes:                    } ] }
//! ```

/// All bits from each set bit up to the next one. If `quotes` marks the quotes, these are the bytes
/// inside strings, including opening quotes but not closing ones.
#[inline(always)]
pub(super) fn between(mut quotes: u64) -> u64 {
    quotes ^= quotes << 1;
    quotes ^= quotes << 2;
    quotes ^= quotes << 4;
    quotes ^= quotes << 8;
    quotes ^= quotes << 16;
    quotes ^ quotes << 32
}

/// The position in a block of the closing bracket that closes the last of `depth` open ones.
#[inline]
pub(super) fn last_close(opens: u64, closes: u64, depth: usize) -> Option<usize> {
    let mut rest = closes;
    for closed in 1.. {
        if rest == 0 {
            break;
        }
        let before = (rest & rest.wrapping_neg()) - 1;
        if depth + (opens & before).count_ones() as usize == closed {
            return Some(rest.trailing_zeros() as usize);
        }
        rest &= rest - 1;
    }
    None
}

/// Expands to `container_end` for the named instruction sets.
macro_rules! skip_kernel {
    ($features:literal) => {
        /// See [`container_end`](crate::scan::container_end).
        #[target_feature(enable = $features)]
        pub(super) fn container_end(text: &[u8], mut pos: usize) -> Option<usize> {
            use crate::scan::skip::{between, last_close};
            let mut carry = Carry::default();
            let mut in_string = 0;
            let mut depth = 1;
            let mut tail = [0; 64];
            loop {
                let block = load(chunk(text, pos, &mut tail)?);
                let escaped = carry.escaped(eq(block, b'\\'));
                let strings = between(eq(block, b'"') & !escaped) ^ in_string;
                in_string = (strings as i64 >> 63) as u64;
                // Setting one bit turns a square bracket into the brace of the same direction.
                let folded = fold(block);
                let opens = eq(folded, b'{') & !strings;
                let closes = eq(folded, b'}') & !strings;
                if opens | closes != 0 {
                    let closing = closes.count_ones() as usize;
                    if closing >= depth
                        && let Some(at) = last_close(opens, closes, depth)
                    {
                        return Some(pos + at + 1);
                    }
                    depth = depth + opens.count_ones() as usize - closing;
                }
                pos += 64;
            }
        }
    };
}
pub(super) use skip_kernel;
