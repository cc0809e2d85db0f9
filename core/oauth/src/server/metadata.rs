//! The metadata of a protected resource (RFC 9728).

use serde_json::json;
use url::Url;

use crate::local::is_local;

/// The place of the metadata documents, at the root of the resource's origin.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What a resource server says about itself.
#[derive(Clone, Debug)]
pub struct ResourceMetadata {
    /// The identifier of the resource, byte for byte: the URL at which clients reach it.
    resource: String,
    /// The origin, as the identifier begins.
    origin: String,
    /// The path; empty if there is none.
    path: String,
    /// The issuers of the authorization servers.
    pub authorization_servers: Vec<String>,
    /// The scopes that clients may ask for. `offline_access` is never among those that are published
    /// (R-AUS-09).
    pub scopes: Vec<String>,
    /// A name for people.
    pub name: Option<String>,
    /// A page for developers.
    pub documentation: Option<String>,
    /// The algorithms of proofs, where proofs are accepted.
    pub proof_algorithms: Vec<&'static str>,
    /// Whether every token must be bound to a key.
    pub requires_proofs: bool,
    /// Whether tokens may be bound to certificates.
    pub has_certificates: bool,
}

impl ResourceMetadata {
    /// Describes the resource with this identifier.
    ///
    /// # Errors
    /// If the identifier is not an `https` URL without user, query and fragment. `http` is accepted for
    /// addresses of this machine.
    pub fn new(resource: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("resource {resource:?}: {why}");
        let url = Url::parse(resource)
            .map_err(|_| wrong("write the URL at which clients reach the server"))?;
        if !is_safe(&url) {
            return Err(wrong("the URL must be one of https, or of this machine"));
        }
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("the URL must have no user, query or fragment"));
        }
        // The path as it is written; the parser would make an empty one "/".
        let after = resource.split_once("://").map_or("", |(_, after)| after);
        let path = after.find('/').map_or("", |at| &after[at..]);
        Ok(Self {
            origin: resource[..resource.len() - path.len()].to_owned(),
            path: path.to_owned(),
            resource: resource.to_owned(),
            authorization_servers: Vec::new(),
            scopes: Vec::new(),
            name: None,
            documentation: None,
            proof_algorithms: Vec::new(),
            requires_proofs: false,
            has_certificates: false,
        })
    }

    /// The identifier of the resource.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The audiences by which tokens mean this resource: its identifier, and where that has no path, the
    /// identifier with and without `/`.
    pub fn audiences(&self) -> Vec<String> {
        match &*self.path {
            "" | "/" => vec![self.origin.clone(), format!("{}/", self.origin)],
            _ => vec![self.resource.clone()],
        }
    }

    /// The URL of the document, for challenges.
    pub fn url(&self) -> String {
        format!(
            "{}{WELL_KNOWN}{}",
            self.origin,
            self.path.trim_end_matches('/')
        )
    }

    /// Whether the document is served at this path of a request: with the path of the resource, and at the
    /// root.
    pub fn is_at(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(WELL_KNOWN) else {
            return false;
        };
        let rest = rest.trim_end_matches('/');
        rest.is_empty() || rest == self.path.trim_end_matches('/')
    }

    /// The URL of a request to this resource, as proofs name it: `path` is the path of the request, and
    /// `is_endpoint` whether that is the path at which the server itself serves the resource. A proxy in
    /// front may have changed that path, so the identifier counts.
    pub fn target(&self, path: &str, is_endpoint: bool) -> String {
        match is_endpoint {
            true => self.resource.clone(),
            false => format!("{}{path}", self.origin),
        }
    }

    /// The scopes for challenges and the document.
    pub fn published<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut published: Vec<&str> = Vec::new();
        for scope in scopes {
            if scope != "offline_access" && !published.contains(&scope) {
                published.push(scope);
            }
        }
        published
    }

    /// The document, as JSON.
    pub fn document(&self) -> String {
        let mut document = json!({
            "resource": self.resource,
            "authorization_servers": self.authorization_servers,
            "bearer_methods_supported": ["header"],
        });
        let scopes = Self::published(self.scopes.iter().map(|it| &**it));
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        if let Some(name) = &self.name {
            document["resource_name"] = json!(name);
        }
        if let Some(page) = &self.documentation {
            document["resource_documentation"] = json!(page);
        }
        if !self.proof_algorithms.is_empty() {
            document["dpop_signing_alg_values_supported"] = json!(self.proof_algorithms);
            document["dpop_bound_access_tokens_required"] = json!(self.requires_proofs);
        }
        if self.has_certificates {
            document["tls_client_certificate_bound_access_tokens"] = json!(true);
        }
        document.to_string()
    }
}

/// Whether what is fetched from a URL, or sent to it, cannot be changed on its way: one of https, or of this machine.
pub fn is_safe_url(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_safe(&url))
}

fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_local(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9728, section 3.1.
    #[test]
    fn the_document_is_beside_the_resource_and_at_the_root() {
        for (resource, path, url) in [
            (
                "https://a.example/mcp",
                "/mcp",
                "https://a.example/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "https://a.example",
                "",
                "https://a.example/.well-known/oauth-protected-resource",
            ),
            (
                "https://A.example:8443/",
                "",
                "https://A.example:8443/.well-known/oauth-protected-resource",
            ),
            (
                "http://localhost:80/x/y/",
                "/x/y",
                "http://localhost:80/.well-known/oauth-protected-resource/x/y",
            ),
        ] {
            let metadata = ResourceMetadata::new(resource).unwrap();
            assert_eq!(metadata.url(), url);
            assert_eq!(metadata.resource(), resource);
            assert!(metadata.is_at(&format!("{WELL_KNOWN}{path}")) && metadata.is_at(WELL_KNOWN));
            for other in ["/other", "/mc", "s", "/mcp/x"] {
                assert!(!metadata.is_at(&format!("{WELL_KNOWN}{other}")), "{other}");
            }
            assert!(metadata.audiences().iter().any(|it| it == resource));
        }
        for wrong in [
            "mcp",
            "http://a.example/mcp",
            "ftp://a.example",
            "https://u@a.example",
            "https://a.example/?q",
            "https://a.example/#f",
            "http://127.0.0.1.example/",
        ] {
            assert!(ResourceMetadata::new(wrong).is_err(), "{wrong}");
        }
    }
}
