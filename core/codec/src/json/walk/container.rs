//! Walks objects and arrays without recursion: a bit stack holds the open ones.

use super::{Kind, MAX_DEPTH, Walker, leads};

impl Walker<'_> {
    /// Walks the object or array that opens at `pos`, inside `depth` containers.
    #[inline(never)]
    pub(crate) fn container(&mut self, pos: usize, depth: usize) -> Option<usize> {
        self.walk_container(pos, depth, Shallow(1))
    }

    /// Walks a container below more levels than one word can track.
    #[cold]
    #[inline(never)]
    fn deep_container(&mut self, pos: usize, depth: usize) -> Option<usize> {
        let deep = Deep {
            bits: [0; MAX_DEPTH / 64],
            len: 0,
        };
        self.walk_container(pos, depth, deep)
    }

    #[inline(always)]
    fn walk_container<S: Stack>(
        &mut self,
        mut pos: usize,
        depth: usize,
        mut stack: S,
    ) -> Option<usize> {
        let mut byte = self.byte(pos);
        'open: loop {
            let mut object = byte == b'{';
            if depth + stack.len() >= self.max_depth {
                return self.fail(Kind::TooDeep, pos);
            }
            stack.push(object);
            (pos, byte) = self.next(pos + 1);
            if byte == closer(object) {
                match self.after_close(pos + 1, &mut stack)? {
                    Next::End(end) => return Some(end),
                    Next::Item(next) => (pos, byte, object) = next,
                }
            }
            loop {
                if object {
                    if byte != b'"' {
                        return self.fail(Kind::UnexpectedByte, pos);
                    }
                    (pos, byte) = self.key(pos + 1)?;
                }
                (pos, byte) = match byte {
                    b'"' => match self.string_and_next(pos + 1)? {
                        (end, next) if leads(b',', next) => {
                            (pos, byte) = (end + 1, next[1]);
                            continue;
                        }
                        (end, [byte, _]) if byte > b' ' => (end, byte),
                        (end, _) => self.next(end),
                    },
                    b'{' | b'[' if stack.is_full() => {
                        let end = self.deep_container(pos, depth + stack.len())?;
                        self.next(end)
                    }
                    b'{' | b'[' => continue 'open,
                    _ => {
                        let end = self.scalar(pos, byte)?;
                        self.next(end)
                    }
                };
                if byte == b',' {
                    (pos, byte) = self.next(pos + 1);
                } else if byte == closer(object) {
                    match self.after_close(pos + 1, &mut stack)? {
                        Next::End(end) => return Some(end),
                        Next::Item(next) => (pos, byte, object) = next,
                    }
                } else {
                    return self.fail(Kind::UnexpectedByte, pos);
                }
            }
        }
    }

    /// Pops the container closed before `pos`, and every container that closes directly after it.
    #[inline(always)]
    fn after_close<S: Stack>(&mut self, mut pos: usize, stack: &mut S) -> Option<Next> {
        loop {
            let Some(object) = stack.pop() else {
                return Some(Next::End(pos));
            };
            let byte;
            (pos, byte) = self.next(pos);
            if byte == b',' {
                let (pos, byte) = self.next(pos + 1);
                return Some(Next::Item((pos, byte, object)));
            }
            if byte != closer(object) {
                return self.fail(Kind::UnexpectedByte, pos);
            }
            pos += 1;
        }
    }
}

/// The next step after a closing bracket.
enum Next {
    /// Nothing: the outermost container was closed.
    End(usize),
    /// The next member or element: position, first byte, and whether it is in an object.
    Item((usize, u8, bool)),
}

#[inline(always)]
fn closer(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// The open containers of one walk; a bit for each says whether it is an object.
trait Stack {
    fn push(&mut self, object: bool);
    /// Removes the innermost container; returns whether the one around it is an object, if there is
    /// one.
    fn pop(&mut self) -> Option<bool>;
    fn is_full(&self) -> bool;
    fn len(&self) -> usize;
}

/// Up to 63 levels in one word, below a sentinel bit.
struct Shallow(u64);

impl Stack for Shallow {
    #[inline(always)]
    fn push(&mut self, object: bool) {
        self.0 = self.0 << 1 | u64::from(object);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<bool> {
        self.0 >>= 1;
        (self.0 != 1).then_some(self.0 & 1 == 1)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.0 >> 63 == 1
    }

    #[inline(always)]
    fn len(&self) -> usize {
        63 - self.0.leading_zeros() as usize
    }
}

/// As many levels as any limit allows.
struct Deep {
    bits: [u64; MAX_DEPTH / 64],
    len: usize,
}

impl Stack for Deep {
    fn push(&mut self, object: bool) {
        if let Some(word) = self.bits.get_mut(self.len / 64) {
            let bit = 1 << (self.len % 64);
            *word = if object { *word | bit } else { *word & !bit };
        }
        self.len += 1;
    }

    fn pop(&mut self) -> Option<bool> {
        self.len = self.len.saturating_sub(1);
        let top = self.len.checked_sub(1)?;
        self.bits
            .get(top / 64)
            .map(|word| word >> (top % 64) & 1 == 1)
    }

    fn is_full(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.len
    }
}
