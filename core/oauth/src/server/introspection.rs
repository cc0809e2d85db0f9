//! Questions about tokens to their authorization server (RFC 7662).

use std::fmt;

use url::form_urlencoded::Serializer;

use super::claims::{Claims, TokenInfo, TokenRules};
use super::refusal::TokenRefusal;
use crate::encoding::basic;

/// How this server authenticates to the introspection endpoint. `Debug` omits the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret {
    /// The client id of this resource server.
    pub id: String,
    /// Its secret.
    pub secret: String,
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSecret")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The introspection endpoint of an authorization server.
#[derive(Clone, Debug)]
pub struct Introspection {
    /// The URL.
    pub endpoint: String,
    /// How this server authenticates there, by HTTP Basic (RFC 6749, section 2.3.1).
    pub client: Option<ClientSecret>,
}

impl Introspection {
    /// The value of the `Authorization` header of a question.
    pub fn authorization(&self) -> Option<String> {
        let ClientSecret { id, secret } = self.client.as_ref()?;
        Some(basic(id, secret))
    }

    /// The body of a question about a token, of type `application/x-www-form-urlencoded`.
    pub fn body(token: &str) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("token", token);
        form.append_pair("token_type_hint", "access_token");
        form.finish()
    }

    /// Reads the answer, which had status 200. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Why the token is refused: it is not active, or does not keep the rules. Also
    /// [`Unavailable`](super::RefusalKind::Unavailable) if the answer is none of an introspection endpoint.
    pub fn answer(body: &[u8], rules: &TokenRules, now: f64) -> Result<TokenInfo, TokenRefusal> {
        let claims: Result<Claims, _> = serde_json::from_slice(body);
        match claims {
            Ok(claims) if claims.active == Some(true) => rules.check_claims(claims, now),
            Ok(claims) if claims.active == Some(false) => {
                Err(TokenRefusal::token("the token is not active"))
            }
            _ => Err(TokenRefusal::unavailable(
                "the authorization server did not answer the question about the token",
            )),
        }
    }
}
