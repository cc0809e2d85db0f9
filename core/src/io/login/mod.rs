//! Logins of clients on HTTP: [`Authorization`] in their options gets access tokens where servers ask for
//! them. With it, what a program on a user's machine needs: a browser, and the address that the browser comes
//! back to.

mod browser;
mod callback;

pub use browser::open_browser;
pub use callback::Callback;
pub use mcpbolt_oauth::client::{
    AssertionRequest, AuthorizationPage, DeviceCode, Grant, IdentityProvider, LoginError,
    LoginOptions, LoginStage, Secret, ServerCredentials, SigningKey,
};
pub use mcpbolt_oauth::store::{CredentialStore, FileStore, KeyLock, MemoryStore, Stored};

pub use super::http::client::{Authorization, Hooked, LoggedOut, LoginHooks, WithBrowser};
