//! Parameters in a query or a form.

use std::borrow::Cow;

use url::form_urlencoded;

/// Longest value of a parameter that is read, in bytes.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// The parameters of a request. One that occurs twice makes the request malformed (RFC 6749, section 3.1).
#[derive(Debug)]
pub struct Form<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Form<'a> {
    /// # Errors
    /// The text for `error_description`.
    pub fn read(encoded: &'a [u8]) -> Result<Self, String> {
        let all: Vec<_> = form_urlencoded::parse(encoded).take(65).collect();
        if all.len() > 64 {
            return Err("the request has more than 64 parameters".into());
        }
        for (at, (name, value)) in all.iter().enumerate() {
            let twice = all.iter().take(at).any(|(before, _)| before == name);
            // `resource` may name several (RFC 8707, section 2); they are looked at one by one.
            if twice && name != "resource" {
                return Err("a parameter is there twice".into());
            }
            if value.len() > MAX_VALUE_BYTES {
                return Err("a parameter is too long".into());
            }
        }
        Ok(Self(all))
    }

    /// The value of a parameter; an empty one counts as none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let own = self.0.iter().filter(move |(own, _)| own == name);
        own.map(|(_, value)| &**value)
            .filter(|value| !value.is_empty())
    }

    /// # Errors
    /// If the parameter is missing.
    pub fn need(&self, name: &str) -> Result<&str, String> {
        self.get(name).ok_or_else(|| format!("{name} is missing"))
    }
}
