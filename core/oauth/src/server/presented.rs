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
        // The token68 of RFC 9110, section 11.2.
        let is_body = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(byte);
        let body = token.trim_end_matches('=');
        match !body.is_empty() && body.as_bytes().iter().all(is_body) {
            true => Ok(Self { scheme, token }),
            false => Err(malformed),
        }
    }
}

impl std::fmt::Debug for PresentedToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PresentedToken({:?} …)", self.scheme)
    }
}
