//! Random numbers and random damage, from a seed.

/// A small random number generator (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() >> 11) as usize % end
    }

    /// One of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Damages `bytes` in ways that parsers tend to detect late.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const TOKENS: [&[u8]; 28] = [
            b"\"",
            b"\\",
            b"\\\"",
            b"\\u00e9",
            b"\\ud800",
            b"\\u12",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"null",
            b"true",
            b"fals",
            b"-",
            b"0",
            b"1e5",
            b".5",
            b" ",
            b"\n",
            b"\0",
            b"\x1f",
            b"\xff",
            b"\xe4\xb8\xad",
            b"\"id\":7,",
            b"\"m\\u0065thod\":\"x\",",
            b"\"name\":\"y\",",
        ];
        let at = self.below(bytes.len() + 1);
        match self.below(6) {
            0 if at < bytes.len() => bytes[at] = self.number() as u8,
            1 => bytes.truncate(at),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let end = (at + 1 + self.below(80)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            4 => {
                let run = vec![b'a' + (self.number() % 26) as u8; self.below(200)];
                bytes.splice(at..at, run);
            }
            _ => {
                let token = *self.pick(&TOKENS);
                bytes.splice(at..at, token.iter().copied());
            }
        }
    }
}
