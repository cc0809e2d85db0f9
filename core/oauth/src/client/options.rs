//! Options of a login.

use std::fmt;

use jsonwebtoken::{Algorithm, EncodingKey};

use super::error::{LoginError, LoginStage};
use super::secret::Secret;

/// Options of a login. The defaults suit a program with a user and a browser: it registers itself.
#[derive(Clone, Debug)]
pub struct LoginOptions {
    /// How the access token is got.
    pub grant: Grant,
    /// The name that users see when they consent.
    pub client_name: String,
    /// The client id that the authorization server gave, where somebody registered this program by hand.
    pub client_id: Option<String>,
    /// The secret of `client_id`.
    pub client_secret: Option<Secret>,
    /// The issuer of `client_id`. With any other authorization server, the login fails rather than send
    /// the secret (R-AUC-13). Without it, the secret goes to the authorization servers that MCP servers
    /// name until one accepts it, and then to no other as long as the store lasts: give the issuer if you
    /// know it.
    pub issuer: Option<String>,
    /// The key that the client signs assertions with, in place of a secret (`private_key_jwt`).
    pub signing_key: Option<SigningKey>,
    /// The address of a document about this client, which is used as client id where the authorization
    /// server supports that (R-AUC-11).
    pub client_metadata_url: Option<String>,
    /// Scopes to ask for in addition to those that the server names.
    pub scopes: Vec<String>,
    /// Whether tokens are bound to a key (DPoP, RFC 9449); by default, where the MCP server asks for it.
    pub dpop: Option<bool>,
    /// Whether a server on the internet may name authorization servers in a private network.
    pub allows_private_addresses: bool,
}

impl LoginOptions {
    /// The default options for a program of that name.
    pub fn new(client_name: impl Into<String>) -> Self {
        Self {
            grant: Grant::AuthorizationCode,
            client_name: client_name.into(),
            client_id: None,
            client_secret: None,
            issuer: None,
            signing_key: None,
            client_metadata_url: None,
            scopes: Vec::new(),
            dpop: None,
            allows_private_addresses: false,
        }
    }
}

/// How an access token is got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// The user consents in a browser (authorization code with PKCE).
    #[default]
    AuthorizationCode,
    /// The user consents on another device (RFC 8628).
    DeviceCode,
    /// The program acts for itself, with its secret or signing key (R-AUE-01).
    ClientCredentials,
    /// A workload shows a signed token of its platform (RFC 7523), which the program gives on demand.
    WorkloadJwt,
    /// The identity provider of an enterprise vouches for the user, whose ID token the program gives on
    /// demand (R-AUE-02).
    EnterpriseManaged(IdentityProvider),
}

impl Grant {
    /// Whether a user takes part, who may take minutes.
    pub fn has_user(&self) -> bool {
        matches!(self, Self::AuthorizationCode | Self::DeviceCode)
    }
}

/// The identity provider of an enterprise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Its token endpoint.
    pub token_endpoint: String,
    /// The client id of this program there.
    pub client_id: String,
    /// The secret of that client id.
    pub client_secret: Option<Secret>,
}

/// A private key that a client signs assertions with.
#[derive(Clone)]
pub struct SigningKey {
    pub(super) key: EncodingKey,
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

impl SigningKey {
    /// Reads a key in PEM. `algorithm` is its JWS name, such as `ES256` or `RS256`.
    ///
    /// # Errors
    /// When the algorithm is not one of those for public keys, or the key is not one for it.
    pub fn from_pem(pem: &[u8], algorithm: &str) -> Result<Self, LoginError> {
        let wrong = |why: &str| LoginError::new(LoginStage::Options, why);
        let parsed: Algorithm = algorithm
            .parse()
            .map_err(|_| wrong("the signing algorithm is unknown; use one such as ES256"))?;
        use Algorithm as A;
        let key = match parsed {
            A::ES256 | A::ES384 => EncodingKey::from_ec_pem(pem),
            A::EdDSA => EncodingKey::from_ed_pem(pem),
            A::RS256 | A::RS384 | A::RS512 | A::PS256 | A::PS384 | A::PS512 => {
                EncodingKey::from_rsa_pem(pem)
            }
            A::HS256 | A::HS384 | A::HS512 => {
                return Err(wrong(
                    "an assertion is signed with a private key; use one such as ES256",
                ));
            }
        };
        let key = key.map_err(|_| {
            wrong("the signing key is no private key in PEM (PKCS#8) for its algorithm")
        })?;
        Ok(Self {
            key,
            algorithm: parsed,
            key_id: None,
        })
    }

    /// Names the key (`kid`), for authorization servers that know several of this client.
    #[must_use]
    pub fn with_key_id(self, key_id: impl Into<String>) -> Self {
        Self {
            key_id: Some(key_id.into()),
            ..self
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({:?}, …)", self.algorithm)
    }
}
