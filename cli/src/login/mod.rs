//! The commands `login`, `logout` and `whoami`.

mod terminal;
mod who;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use mcpbolt::client::{Client, block_on};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::io::login::{Authorization, FileStore, Grant, LoggedOut, LoginOptions, SigningKey};
use mcpbolt::io::{Address, wait_for_clients};

use crate::network::Network;
use crate::session::FAREWELL;
use crate::shown;

pub use self::terminal::{Terminal, Way};
pub use self::who::{Whoami, whoami};

/// The environment variable with the client's secret.
const SECRET_VARIABLE: &str = "MCPBOLT_CLIENT_SECRET";

/// A server that clients log in to.
#[derive(clap::Args)]
pub struct Server {
    /// The server's URL: http://… or https://…
    url: Address,
    #[command(flatten)]
    network: Network,
}

impl Server {
    /// The URL as a text.
    fn url(&self) -> Result<String> {
        let is_http = matches!(self.url, Address::Http(_));
        ensure!(is_http, "{}: only servers on HTTP have logins", self.url);
        Ok(self.url.to_string())
    }
}

/// The key of a client that signs its requests.
#[derive(clap::Args)]
struct ClientKey {
    /// A file with the client's private key (PEM), in place of a secret
    #[arg(long, value_name = "FILE")]
    signing_key: Option<PathBuf>,
    /// The algorithm of the signing key
    #[arg(
        long,
        value_name = "NAME",
        default_value = "ES256",
        requires = "signing_key"
    )]
    signing_algorithm: String,
}

impl ClientKey {
    fn read(&self) -> Result<Option<SigningKey>> {
        let Some(file) = &self.signing_key else {
            return Ok(None);
        };
        let key = SigningKey::from_pem(read(file)?.as_bytes(), &self.signing_algorithm);
        Ok(Some(key?))
    }
}

#[derive(clap::Args)]
pub struct Logout {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    key: ClientKey,
}

#[derive(clap::Args)]
pub struct Login {
    #[command(flatten)]
    server: Server,
    /// Show a code to enter on another device
    #[arg(long)]
    device: bool,
    /// Show the page's address, and read the address that the browser ends at: where this machine has no
    /// browser
    #[arg(long, conflicts_with = "device")]
    paste: bool,
    /// Log in as this program rather than as a user, with the client's secret or signing key
    #[arg(long, conflicts_with_all = ["device", "paste"], requires = "client_id")]
    machine: bool,
    /// The client id, if this program was registered by hand; its secret is read from a file or from
    /// MCPBOLT_CLIENT_SECRET
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A file with the client's secret
    #[arg(long, value_name = "FILE", requires = "client_id")]
    client_secret_file: Option<PathBuf>,
    #[command(flatten)]
    key: ClientKey,
    /// The authorization server that knows the client id; with any other, the login fails
    #[arg(long, value_name = "URL", requires = "client_id")]
    issuer: Option<String>,
    /// A scope to ask for in addition to those that the server names; may be given several times
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Bind the tokens to a key (DPoP)
    #[arg(long)]
    dpop: bool,
    /// Let a server on the internet name an authorization server in a private network
    #[arg(long)]
    allow_private: bool,
}

impl Login {
    fn options(&self) -> Result<LoginOptions> {
        ensure!(
            self.key.signing_key.is_none() || self.client_id.is_some(),
            "--signing-key is the key of a client: give its --client-id"
        );
        let secret = match &self.client_secret_file {
            Some(file) => Some(read(file)?.trim_end().to_owned()),
            None => std::env::var(SECRET_VARIABLE).ok(),
        };
        let grant = match (self.machine, self.device) {
            (true, _) => Grant::ClientCredentials,
            (_, true) => Grant::DeviceCode,
            _ => Grant::AuthorizationCode,
        };
        Ok(LoginOptions {
            grant,
            client_id: self.client_id.clone(),
            client_secret: secret
                .filter(|secret| self.client_id.is_some() && !secret.is_empty())
                .map(Into::into),
            issuer: self.issuer.clone(),
            signing_key: self.key.read()?,
            scopes: self.scopes.clone(),
            dpop: self.dpop.then_some(true),
            allows_private_addresses: self.allow_private,
            ..options()
        })
    }
}

fn read(file: &PathBuf) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

fn options() -> LoginOptions {
    LoginOptions::new("mcpbolt")
}

/// The stored login of the user, for a command that does not log in.
pub fn stored() -> Result<Authorization> {
    let authorization = Authorization::new(options()).with_store(FileStore::of_the_user()?);
    Ok(authorization.with_hooks(Terminal::new(Way::Refuse)))
}

/// Logs in, and keeps what the other commands need.
pub fn login(args: &Login) -> Result<u8> {
    let url = args.server.url()?;
    let store = FileStore::of_the_user()?;
    let way = match args.paste {
        true => Way::Paste,
        false => Way::Browser,
    };
    let authorization = Authorization::new(args.options()?)
        .with_store(store.clone())
        .with_hooks(Terminal::new(way));
    let client = block_on(Client::builder("mcpbolt", env!("CARGO_PKG_VERSION")).http(
        &url,
        HttpClientOptions {
            authorization: Some(authorization),
            ..args.server.network.options()?
        },
    ));
    let client = client.with_context(|| format!("logging in to {url}"))?;
    drop(client);
    wait_for_clients(FAREWELL);
    match who::load(&store, &url)? {
        Some(who) => shown::print(&format!("Logged in to {url}\n{}", who.lines()))?,
        None => shown::print(&format!("{url} asks for no login.\n"))?,
    }
    Ok(0)
}

/// Forgets the login, and has the server end the tokens.
pub fn logout(args: &Logout) -> Result<u8> {
    let url = args.server.url()?;
    let login = LoginOptions {
        signing_key: args.key.read()?,
        ..options()
    };
    let authorization = Authorization::new(login).with_store(FileStore::of_the_user()?);
    let outcome = block_on(authorization.log_out(&url, &args.server.network.options()?));
    let told = match outcome.with_context(|| format!("logging out of {url}"))? {
        LoggedOut::NotLoggedIn => format!("There is no login for {url}.\n"),
        LoggedOut::Revoked => format!("Logged out of {url}. The tokens have ended.\n"),
        LoggedOut::Forgotten => format!(
            "Logged out of {url}. Its authorization server ends no tokens early: the access token is valid until its time is over.\n"
        ),
    };
    shown::print(&told)?;
    Ok(0)
}
