//! Credentials that a client sends with each connection or request.

use std::fmt;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::faults::invalid;

/// Credentials that are known in advance (R-AUX-02). `Debug` omits the secrets.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// No credentials.
    #[default]
    None,
    /// A token: `Authorization: Bearer …`.
    Bearer(String),
    /// A name and a password: `Authorization: Basic …` (RFC 7617).
    Basic {
        /// The name; without a colon.
        user: String,
        /// The password.
        password: String,
    },
    /// A key in a separate header.
    ApiKey {
        /// The header's name.
        header: String,
        /// The key.
        key: String,
    },
}

/// The certificate that a client shows to a server that asks for one (mutual TLS, R-AUX-03), in PEM.
/// `Debug` omits the contents.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The client's certificate, followed by the chain of its issuers.
    pub certificates: Vec<u8>,
    /// The private key of the client's certificate.
    pub key: Vec<u8>,
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate(…)")
    }
}

impl Auth {
    /// The header of an API key, unless another is agreed on.
    pub const API_KEY_HEADER: &str = "X-API-Key";

    /// An API key in the usual header.
    pub fn api_key(key: impl Into<String>) -> Self {
        Self::ApiKey {
            header: Self::API_KEY_HEADER.into(),
            key: key.into(),
        }
    }

    /// The header that carries the credentials: name and value.
    ///
    /// # Errors
    /// When a part is not valid in a header, or a user name contains a colon.
    pub fn header(&self) -> io::Result<Option<(String, String)>> {
        let authorization = |value| Some(("Authorization".to_owned(), value));
        let header = match self {
            Self::None => None,
            Self::Bearer(token) => authorization(format!("Bearer {token}")),
            Self::Basic { user, .. } if user.contains(':') => {
                return Err(invalid("a user's name has no colon"));
            }
            Self::Basic { user, password } => {
                let both = STANDARD.encode(format!("{user}:{password}"));
                authorization(format!("Basic {both}"))
            }
            Self::ApiKey { header, key } => Some((header.clone(), key.clone())),
        };
        let fits = |(name, value): &(String, String)| {
            let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            let of_value = |byte: u8| matches!(byte, b' '..=b'~');
            !name.is_empty() && name.bytes().all(of_name) && value.bytes().all(of_value)
        };
        match header {
            Some(header) if !fits(&header) => {
                Err(invalid("the credentials cannot stand in a header"))
            }
            header => Ok(header),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bearer(_) => f.write_str("Bearer(…)"),
            Self::Basic { user, .. } => write!(f, "Basic {{ user: {user:?}, … }}"),
            Self::ApiKey { header, .. } => write!(f, "ApiKey {{ header: {header:?}, … }}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-AUX-02.
    #[test]
    fn credentials_become_a_header() {
        let basic = |user: &str| Auth::Basic {
            user: user.into(),
            password: "open sesame".into(),
        };
        let said = |auth: &Auth| auth.header().unwrap().unwrap();
        assert_eq!(Auth::None.header().unwrap(), None);
        let (name, value) = said(&Auth::Bearer("t.o-k".into()));
        assert_eq!((&*name, &*value), ("Authorization", "Bearer t.o-k"));
        let (name, value) = said(&basic("Aladdin"));
        let expected = ("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!((&*name, &*value), expected);
        let (name, value) = said(&Auth::api_key("k"));
        assert_eq!((&*name, &*value), ("X-API-Key", "k"));
        for bad in [
            basic("a:b"),
            Auth::Bearer("a\r\nX-Evil: 1".into()),
            Auth::ApiKey {
                header: "X Y".into(),
                key: "k".into(),
            },
        ] {
            assert!(bad.header().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let basic = Auth::Basic {
            user: "me".into(),
            password: "secret".into(),
        };
        for auth in [
            Auth::Bearer("secret".into()),
            basic,
            Auth::api_key("secret"),
        ] {
            assert!(!format!("{auth:?}").contains("secret"));
        }
    }
}
