//! UTF-8 validation of text that arrives in pieces.

/// Validates UTF-8 piece by piece: an invalid text is detected before its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8 {
    /// A character whose end has not arrived.
    open: [u8; 4],
    len: usize,
}

impl Utf8 {
    /// Adds a piece; returns whether the text is valid so far.
    pub fn goes_on(&mut self, mut piece: &[u8]) -> bool {
        while self.len > 0 {
            let Some((&next, rest)) = piece.split_first() else {
                return true;
            };
            piece = rest;
            self.open[self.len] = next;
            self.len += 1;
            match std::str::from_utf8(&self.open[..self.len]) {
                Ok(_) => self.len = 0,
                Err(error) if error.error_len().is_some() => return false,
                // At most three bytes of a character can wait for the rest.
                Err(_) => {}
            }
        }
        if simdutf8::basic::from_utf8(piece).is_ok() {
            return true;
        }
        match std::str::from_utf8(piece) {
            Ok(_) => true,
            Err(error) => {
                let open = &piece[error.valid_up_to()..];
                let is_open = error.error_len().is_none();
                if let Some(room) = self.open.get_mut(..open.len()).filter(|_| is_open) {
                    room.copy_from_slice(open);
                    self.len = open.len();
                }
                is_open
            }
        }
    }

    /// Ends the text; returns whether no character is incomplete. The next piece begins another
    /// text.
    pub fn ends(&mut self) -> bool {
        std::mem::take(&mut self.len) == 0
    }
}
