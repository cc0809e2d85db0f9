//! Sets of scopes.

/// Most scopes that are asked for at once.
const MOST: usize = 256;

/// Scopes in order, each once. Texts that are no scopes are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// The scopes in a text, separated by spaces.
    pub fn parse(text: &str) -> Self {
        let mut scopes = Self::default();
        scopes.add(text.split(' '));
        scopes
    }

    /// Adds scopes that are missing.
    pub fn add<'a>(&mut self, scopes: impl IntoIterator<Item = &'a str>) {
        for scope in scopes {
            if is_scope(scope) && !self.has(scope) && self.0.len() < MOST {
                self.0.push(scope.to_owned());
            }
        }
    }

    /// Whether a scope is among them.
    pub fn has(&self, scope: &str) -> bool {
        self.0.iter().any(|own| own == scope)
    }

    /// Whether all scopes of `other` are among them.
    pub fn has_all(&self, other: &Self) -> bool {
        other.iter().all(|scope| self.has(scope))
    }

    /// The scopes.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|scope| &**scope)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes separated by spaces; `None` if there is none.
    pub fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.0.join(" "))
    }
}

/// Whether a text is one scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    let fits = |byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
    !text.is_empty() && text.len() <= 256 && text.bytes().all(fits)
}
