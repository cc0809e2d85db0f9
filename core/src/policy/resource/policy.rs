//! The resource server of a policy.

use mcpbolt_oauth::server::RefusalKind;

use crate::connection::{Principal, Rejection};
use crate::policy::awaited_verifier::{AwaitedVerifier, Verification};
use crate::policy::{Credentials, Policy, ResourceServer};

impl Policy {
    /// Makes the server a resource server of OAuth: see [`ResourceServer`].
    ///
    /// A [verifier](Self::verifier) of the policy verifies other credentials, such as API keys, and tokens, too,
    /// unless the keys or the introspection endpoint of an issuer are set. Its
    /// [principal](crate::connection::Principal) may say when a token [ends](Principal::with_expiry) and
    /// what it is [bound to](Principal::bound_to_key); the binding is checked.
    #[must_use]
    pub fn resource(mut self, resource: ResourceServer) -> Self {
        let own = resource.clone();
        self.bearer = Some(AwaitedVerifier::new(move |credentials| {
            let token = match credentials {
                Credentials::Bearer(token) => Some((*token).to_owned()),
                _ => None,
            };
            let own = own.clone();
            async move {
                let token = token.ok_or(Rejection::from("an access token is needed"))?;
                let verdict = match own.digest(&token).map(|it| (it, own.known(&it))) {
                    Ok((_, Some(verdict))) => verdict,
                    Ok((digest, None)) => own.verify(&token, digest).await,
                    Err(refusal) => Err(refusal),
                };
                verdict.map_err(|refusal| match refusal.kind {
                    RefusalKind::Unavailable => Rejection::Unavailable(refusal.why.into()),
                    _ => Rejection::from(refusal.why),
                })
            }
        }));
        self.resource = Some(resource);
        self
    }

    /// The resource server.
    pub(crate) fn resource_server(&self) -> Option<&ResourceServer> {
        self.resource.as_ref()
    }

    /// Whether the resource server verifies tokens, and not the verifier of the policy.
    pub(crate) fn has_token_source(&self) -> bool {
        let has_verifier = self.verifier.is_some() || self.awaited.is_some();
        let resource = self.resource.as_ref();
        resource.is_some_and(|resource| !(has_verifier && resource.leaves_tokens()))
    }

    /// Whether the policy has a verifier beside the resource server.
    pub(crate) fn has_own_verifier(&self) -> bool {
        self.verifier.is_some() || self.awaited.is_some()
    }

    /// The metadata of the resource.
    pub(crate) fn resource_document(&self) -> Option<String> {
        Some(self.resource.as_ref()?.document(self.scopes.all()))
    }

    /// Whether `who` lacks scopes that every request requires.
    pub(crate) fn lacks_any(&self, who: &Principal) -> bool {
        let resource = self.resource.iter().flat_map(ResourceServer::scopes);
        resource
            .into_iter()
            .any(|scope| !self.scopes.holds(Some(who), scope))
    }

    /// Begins to verify credentials on a carrier without headers. A token there has no proof and no certificate.
    pub(in crate::policy) fn verification(
        &self,
        credentials: &Credentials<'_>,
    ) -> Option<Verification> {
        match credentials {
            Credentials::Bearer(_) if self.has_token_source() => {
                Some(self.bearer.as_ref()?.begin(credentials))
            }
            _ => match &self.awaited {
                Some(verifier) => Some(verifier.begin(credentials)),
                None if self.resource.is_some() => {
                    Some(Verification::over(self.verify(credentials)))
                }
                None => None,
            },
        }
    }
}
