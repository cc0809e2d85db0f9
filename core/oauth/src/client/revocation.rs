//! Has the authorization server end tokens that nobody needs any more (RFC 7009).

use super::credentials::ServerCredentials;
use super::error::{LoginError, LoginStage};
use super::flow::Flow;

impl Flow {
    /// Revokes the refresh token, and with it, at most servers, all that came of it; then the access token.
    pub async fn revoke(self, held: ServerCredentials) -> Result<ServerCredentials, LoginError> {
        let Some(url) = held.revocation_endpoint() else {
            return Ok(held);
        };
        let stage = LoginStage::Revocation;
        // A stored document chose the URL; the guard applies to it all the same.
        let checked = self.guard.check(url);
        checked.map_err(|why| LoginError::new(stage, why))?;
        let refresh = held.tokens.refresh_token.as_deref();
        let access = Some(&*held.tokens.access_token);
        let origin = self.origin_of_now(&held.origin);
        let endpoint = self.endpoint(&origin).await?;
        for (hint, token) in [("refresh_token", refresh), ("access_token", access)] {
            let Some(token) = token else { continue };
            let form = vec![("token", token), ("token_type_hint", hint)];
            match endpoint.answer(stage, url, &form, None).await {
                // Signed tokens cannot be ended everywhere.
                Err(error) if !error.is("unsupported_token_type") => return Err(error),
                _ => {}
            }
        }
        self.accepted().await?;
        Ok(held)
    }
}
