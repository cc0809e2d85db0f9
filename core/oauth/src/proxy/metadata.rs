//! The endpoints, and the document that names them (RFC 8414).

use serde_json::json;

use super::options::ConsentProxyOptions;
use super::reply::ProxyReply;

/// An endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyEndpoint {
    Metadata,
    Keys,
    Register,
    Authorize,
    Consent,
    Callback,
    Token,
    Revoke,
}

impl ProxyEndpoint {
    /// The endpoints whose paths begin with that of the issuer.
    const BENEATH: [(&str, Self); 7] = [
        ("/jwks", Self::Keys),
        ("/register", Self::Register),
        ("/authorize", Self::Authorize),
        ("/consent", Self::Consent),
        ("/callback", Self::Callback),
        ("/token", Self::Token),
        ("/revoke", Self::Revoke),
    ];

    /// The endpoint at a path.
    pub fn of(options: &ConsentProxyOptions, path: &str) -> Option<Self> {
        const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";
        if path.strip_prefix(WELL_KNOWN) == Some(options.path()) {
            return Some(Self::Metadata);
        }
        let path = path.strip_prefix(options.path())?;
        let found = Self::BENEATH.iter().find(|(own, _)| *own == path);
        found.map(|(_, endpoint)| *endpoint)
    }

    /// What a browser asks before a page sends a request, and a method that does not fit. Only endpoints
    /// that a client itself asks are open to pages of other origins.
    pub fn preflight(self, method: &str) -> Option<ProxyReply> {
        let (allowed, is_open) = match self {
            Self::Metadata | Self::Keys => ("GET", true),
            Self::Register | Self::Token | Self::Revoke => ("POST", true),
            Self::Authorize | Self::Callback => ("GET", false),
            Self::Consent => ("POST", false),
        };
        if method == allowed || allowed == "GET" && method == "HEAD" {
            return None;
        }
        let reply = match method {
            "OPTIONS" if is_open => ProxyReply::json(204, &json!({}))
                .readable_anywhere()
                .with("access-control-allow-methods", allowed)
                .with(
                    "access-control-allow-headers",
                    "content-type, mcp-protocol-version",
                )
                .with("access-control-max-age", "86400"),
            _ => ProxyReply::error(405, "invalid_request", &format!("the method is {allowed}"))
                .with("allow", allowed),
        };
        Some(reply)
    }
}

pub fn of_server(options: &ConsentProxyOptions) -> ProxyReply {
    let ConsentProxyOptions { issuer, scopes, .. } = options;
    let at = |path| format!("{issuer}{path}");
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "revocation_endpoint": at("/revoke"),
        "jwks_uri": at("/jwks"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    if !scopes.is_empty() {
        document["scopes_supported"] = json!(scopes);
    }
    ProxyReply::json(200, &document).readable_anywhere()
}
