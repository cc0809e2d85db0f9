//! Why credentials are not accepted.

use std::borrow::Cow;
use std::fmt;

/// Why a [verifier](crate::policy::Policy::verifier) does not accept credentials. The difference matters: credentials that
/// are wrong are a guess, and may be remembered as wrong; credentials without a verdict may be right. A text becomes
/// [`Refused`](Self::Refused).
///
/// ```
/// use mcpbolt::connection::{Principal, Rejection};
/// use mcpbolt::policy::{Credentials, Policy};
/// # struct Busy;
/// # async fn find_owner(key: String) -> Result<Option<String>, Busy> { Ok(Some(key)) }
/// let policy = Policy::new().async_verifier(|credentials| {
///     let key = match credentials {
///         Credentials::ApiKey(key) => Some((*key).to_owned()),
///         _ => None,
///     };
///     async move {
///         let key = key.ok_or("an API key is needed")?;
///         match find_owner(key).await {
///             Ok(Some(owner)) => Ok(Principal::key(owner)),
///             Ok(None) => Err("the API key is not known".into()),
///             Err(Busy) => Err(Rejection::Unavailable("the database does not answer".into())),
///         }
///     }
/// });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// They are missing or wrong, for this reason: over HTTP status 401. Counts as a guess of the client.
    Refused(Cow<'static, str>),
    /// There is no verdict on them, for this reason: over HTTP status 503 with `Retry-After`. Neither remembered nor
    /// counted as a guess.
    Unavailable(Cow<'static, str>),
}

impl Rejection {
    /// The reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Refused(why) | Self::Unavailable(why) => why,
        }
    }
}

impl From<String> for Rejection {
    fn from(why: String) -> Self {
        Self::Refused(why.into())
    }
}

impl From<&'static str> for Rejection {
    fn from(why: &'static str) -> Self {
        Self::Refused(why.into())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl std::error::Error for Rejection {}
