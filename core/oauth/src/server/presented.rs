//! The token in the headers of a request (RFC 6750, section 2.1; RFC 9449, section 7.1).

use super::refusal::{RefusalKind, TokenRefusal};

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenScheme {
    /// `Authorization: Bearer …`.
    Bearer,
    /// `Authorization: DPoP …`, with a proof.
    Dpop,
}

/// A token as a request presents it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PresentedToken<'a> {
    /// The scheme.
    pub scheme: TokenScheme,
    /// The token.
    pub token: &'a str,
}

impl<'a> PresentedToken<'a> {
    /// Reads the `Authorization` headers of a request.
    ///
    /// # Errors
    /// If there is no token, or the headers are malformed.
    pub fn read(headers: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, TokenRefusal> {
        const MISSING: TokenRefusal = TokenRefusal {
            kind: RefusalKind::Missing,
            why: "an access token is needed",
        };
        let mut headers = headers.into_iter();
        let header = headers.next().ok_or(MISSING)?;
        if headers.next().is_some() {
            return Err(TokenRefusal::malformed(
                "there is more than one Authorization",
            ));
        }
        let malformed = TokenRefusal::malformed("the Authorization is malformed");
        let header = str::from_utf8(header).map_err(|_| malformed)?.trim();
        let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
        let scheme = match scheme {
            it if it.eq_ignore_ascii_case("bearer") => TokenScheme::Bearer,
            it if it.eq_ignore_ascii_case("dpop") => TokenScheme::Dpop,
            _ => return Err(MISSING),
        };
        let token = token.trim_matches(' ');
        let body = token.trim_end_matches('=');
        match !body.is_empty() && is_token68(body.as_bytes()) {
            true => Ok(Self { scheme, token }),
            false => Err(malformed),
        }
    }
}

/// Whether all bytes may be in a token before its padding (RFC 9110, section 11.2). Tokens are long, so this looks at
/// all of them without a branch, which the compiler makes a loop over vectors.
fn is_token68(body: &[u8]) -> bool {
    let is_allowed = |byte: u8| {
        let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        // `-`, `.`, `/` and the digits follow each other.
        let is_digit = byte.wrapping_sub(b'-') < 13;
        is_letter | is_digit | (byte == b'+') | (byte == b'_') | (byte == b'~')
    };
    body.iter().fold(true, |all, byte| all & is_allowed(*byte))
}

impl std::fmt::Debug for PresentedToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PresentedToken({:?} …)", self.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_characters_of_a_token() {
        for byte in 0..=u8::MAX {
            let expected = byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
            for at in [0, 17, 99] {
                let mut token = [b'a'; 100];
                token[at] = byte;
                assert_eq!(is_token68(&token), expected, "{byte} at {at}");
            }
        }
    }
}
