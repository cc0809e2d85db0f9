//! Logins of a client on HTTP: the header of each request, and what a refusal leads to.
//!
//! | file | what it is for |
//! |---|---|
//! | `access` | the credentials for one server, and the login that all waiting requests share |
//! | `agent` | drives a login: sends its requests, asks the user |
//! | `forget` | forgets and revokes tokens |
//! | `hooks` | what a login needs of the program: a browser, assertions |

mod access;
mod agent;
mod forget;
mod hooks;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt_oauth::client::{Grant, LoginOptions};
use mcpbolt_oauth::store::{CredentialStore, MemoryStore};
use url::Url;

pub use self::access::{ServerAccess, Tries};
use self::agent::Agent;
pub use self::forget::LoggedOut;
pub use self::hooks::{Hooked, LoginHooks, WithBrowser};
use super::connections::ConnectionSettings;
use crate::sync::lock;

/// How long a user may take to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// How long opening a connection waits for a login without a user.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);

/// How clients on HTTP get access tokens. Clones share everything, so that many clients, and many servers
/// of one authorization server, need one login each.
///
/// Tokens are got when a server asks for them, with 401; refreshed when they end; and replaced when a
/// server wants more scopes, with 403. The request that was refused is then sent again.
///
/// ```no_run
/// use mcpbolt::client::{Client, block_on};
/// use mcpbolt::io::http::HttpClientOptions;
/// use mcpbolt::io::login::{Authorization, FileStore, LoginOptions};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let login = Authorization::new(LoginOptions::new("My program")).with_store(FileStore::of_the_user()?);
/// let options = HttpClientOptions {
///     authorization: Some(login),
///     ..HttpClientOptions::default()
/// };
/// // Opens the user's browser, if the server asks for a login and there was none before.
/// let client = block_on(Client::builder("chat", "1.0.0").http("https://example.com/mcp", options))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Authorization(Arc<Logins>);

/// What clones share.
pub struct Logins {
    options: Arc<LoginOptions>,
    store: Arc<dyn CredentialStore>,
    hooks: Arc<dyn LoginHooks>,
    timeout: Duration,
    servers: Mutex<HashMap<String, Arc<ServerAccess>>>,
}

impl Authorization {
    /// Logins that open the user's browser, and are forgotten when the process ends.
    pub fn new(options: LoginOptions) -> Self {
        Self(Arc::new(Logins {
            options: Arc::new(options),
            store: Arc::new(MemoryStore::default()),
            hooks: Arc::new(WithBrowser::default()),
            timeout: LOGIN_TIMEOUT,
            servers: Mutex::default(),
        }))
    }

    fn with(&self, change: impl FnOnce(&mut Logins)) -> Self {
        let mut logins = Logins {
            options: self.0.options.clone(),
            store: self.0.store.clone(),
            hooks: self.0.hooks.clone(),
            timeout: self.0.timeout,
            servers: Mutex::default(),
        };
        change(&mut logins);
        Self(Arc::new(logins))
    }

    /// Keeps credentials in this store, which other processes may share.
    #[must_use]
    pub fn with_store(self, store: impl CredentialStore) -> Self {
        self.with(|logins| logins.store = Arc::new(store))
    }

    /// Asks the user, or the program, by these functions.
    #[must_use]
    pub fn with_hooks(self, hooks: impl LoginHooks) -> Self {
        self.with(|logins| logins.hooks = Arc::new(hooks))
    }

    /// How long a user may take to log in, and a workload to give an assertion: 5 minutes by default.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.with(|logins| logins.timeout = timeout)
    }

    /// Tells apart what does not share its logins.
    pub(in crate::io) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// How long opening a connection may wait for a login.
    pub(super) fn patience(&self) -> Duration {
        match self.0.options.grant.has_user() {
            true => self.0.timeout,
            false => self.0.timeout.min(PROGRAM_TIMEOUT),
        }
    }

    /// The extension of the protocol that the grant is (R-AUE-04).
    pub(super) fn extension(&self) -> Option<&'static str> {
        match &self.0.options.grant {
            Grant::ClientCredentials => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Grant::EnterpriseManaged(_) => {
                Some("io.modelcontextprotocol/enterprise-managed-authorization")
            }
            _ => None,
        }
    }

    /// The credentials for the server at `url`, whose logins use connections of that kind.
    pub(super) fn server(&self, url: &Url, http: ConnectionSettings) -> Arc<ServerAccess> {
        let mut servers = lock(&self.0.servers);
        let server = servers.entry(url.to_string()).or_insert_with(|| {
            let agent = Agent::new(url.clone(), http, &self.0);
            Arc::new(ServerAccess::new(url.clone(), agent))
        });
        server.clone()
    }
}

/// Omits secrets, as the options do.
impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authorization")
            .field(&self.0.options)
            .finish()
    }
}
