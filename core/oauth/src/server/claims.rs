//! The claims of access tokens (RFC 7519, RFC 9068), and the members of introspection responses, which
//! have the same names (RFC 7662).

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::jws::Jws;
use super::refusal::TokenRefusal;

/// What an access token is bound to. An empty binding is that of an ordinary bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The thumbprint of the key of the DPoP proofs (`cnf.jkt`, RFC 9449).
    pub key: Option<String>,
    /// The SHA-256 digest of the client's certificate (`cnf.x5t#S256`, RFC 8705).
    pub certificate: Option<String>,
}

impl Binding {
    /// Whether the token is an ordinary bearer token.
    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.certificate.is_none()
    }
}

/// What an access token grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenInfo {
    /// The issuer, if it is known.
    pub issuer: String,
    /// The user, or the client if the token is the client's own.
    pub subject: String,
    /// Whether the subject is a client id, since the authorization server names no user. It may be equal to the name
    /// of a user.
    pub is_client: bool,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// When the token ends, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// What the token is bound to.
    pub binding: Binding,
}

/// What a resource server accepts.
#[derive(Clone, Debug, Default)]
pub struct TokenRules {
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<String>,
    /// The audiences of which a token must have one. A token without audience is refused.
    pub audiences: Vec<String>,
    /// Whether an audience is not asked for.
    pub any_audience: bool,
    /// Tolerated difference between the clocks of issuer and server, in seconds.
    pub leeway: u64,
}

const NO_SUBJECT: TokenRefusal = TokenRefusal::unfit("the token names no subject");

/// The claims that count. Each may be given once.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub active: Option<bool>,
    iss: Option<String>,
    sub: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    aud: Vec<String>,
    #[serde(default, deserialize_with = "number")]
    exp: Option<f64>,
    #[serde(default, deserialize_with = "number")]
    nbf: Option<f64>,
    #[serde(default, deserialize_with = "number", rename = "iat")]
    _iat: Option<f64>,
    client_id: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    scope: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    scp: Vec<String>,
    cnf: Option<Map<String, Value>>,
}

/// Reads a number; refuses `null`.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(from).map(Some)
}

/// Reads a text or a list of texts.
fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Texts::deserialize(from)? {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    })
}

impl TokenRules {
    /// Checks the claims of a token whose signature is verified. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Why the token is refused.
    pub fn check(&self, token: &Jws<'_>, now: f64) -> Result<TokenInfo, TokenRefusal> {
        if token.names_type() && !["JWT", "at+jwt"].iter().any(|typ| token.has_type(typ)) {
            return Err(TokenRefusal::unfit("the token is not an access token"));
        }
        let claims: Claims = token.claims()?;
        if claims.iss.is_none() {
            return Err(TokenRefusal::unfit("the token names no issuer"));
        }
        if claims.exp.is_none() {
            return Err(TokenRefusal::unfit("the token has no expiry"));
        }
        // RFC 9068, section 2.2: a client that acts for itself is named here, too.
        if claims.sub.is_none() {
            return Err(NO_SUBJECT);
        }
        self.check_claims(claims, now)
    }

    pub(super) fn check_claims(&self, claims: Claims, now: f64) -> Result<TokenInfo, TokenRefusal> {
        if let Some(issuer) = &claims.iss
            && !self.issuers.contains(issuer)
        {
            return Err(TokenRefusal::unfit(
                "the issuer of the token is not accepted",
            ));
        }
        let has_audience = claims.aud.iter().any(|it| self.audiences.contains(it));
        if !has_audience && !self.any_audience {
            return Err(TokenRefusal::unfit("the token is for another audience"));
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let leeway = self.leeway as f64;
        if claims.exp.is_some_and(|end| now >= end + leeway) {
            return Err(TokenRefusal::unfit("the token has expired"));
        }
        if claims.nbf.is_some_and(|begin| now < begin - leeway) {
            return Err(TokenRefusal::unfit("the token is not valid yet"));
        }
        let is_client = claims.sub.is_none();
        let subject = claims.sub.or(claims.client_id);
        let subject = subject.filter(|it| !it.is_empty()).ok_or(NO_SUBJECT)?;
        let scopes = claims.scope.iter().chain(&claims.scp);
        let scopes = scopes.flat_map(|it| it.split_ascii_whitespace());
        Ok(TokenInfo {
            issuer: claims.iss.unwrap_or_default(),
            subject,
            is_client,
            scopes: scopes.map(Into::into).collect(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            expires_at: claims.exp.map(|end| (end + leeway) as u64),
            binding: binding(claims.cnf.as_ref())?,
        })
    }
}

/// # Errors
/// If the token is bound in a way that is not checked here: it must not become a bearer token.
fn binding(cnf: Option<&Map<String, Value>>) -> Result<Binding, TokenRefusal> {
    const UNKNOWN: TokenRefusal =
        TokenRefusal::unfit("the token is bound to its client in an unknown way");
    let Some(cnf) = cnf else {
        return Ok(Binding::default());
    };
    let text = |name| match cnf.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(UNKNOWN),
    };
    let binding = Binding {
        key: text("jkt")?,
        certificate: text("x5t#S256")?,
    };
    match binding.is_empty() {
        true => Err(UNKNOWN),
        false => Ok(binding),
    }
}
