//! Connects a client to a server at any address.

use std::fmt;
use std::io;
use std::time::Duration;

use super::address::Address;
use super::auth::{Auth, ClientCertificate};
use super::child::ChildCommand;
use super::faults::unsupported;
use super::net::connect;
use crate::client::{Client, ClientBuilder};
use crate::connection::{Channel, Framing, NetworkTransport};

/// Options of opening a connection. Options that the transport does not support are ignored: a pipe has
/// no headers.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Credentials, for HTTP and WebSocket (R-AUX-02).
    pub auth: Auth,
    /// Additional headers, for HTTP and WebSocket (R-WSK-05): names and values.
    pub headers: Vec<(String, String)>,
    /// The subprotocols that a WebSocket offers, in order of preference.
    pub protocols: Vec<String>,
    /// How long the transport may take to connect. The handshake of the protocol has its own timeout in
    /// [`Limits`](crate::limits::Limits).
    pub connect_timeout: Duration,
    /// Silence on a WebSocket after which the server is pinged. After the same time without an answer,
    /// it is considered dead (R-WSK-03). `None` disables the pings.
    pub heartbeat: Option<Duration>,
    /// Certificates that are trusted in addition to those of the system: PEM, one or several per entry.
    pub root_certificates: Vec<Vec<u8>>,
    /// The certificate for a server that asks for one (R-AUX-03).
    pub certificate: Option<ClientCertificate>,
    /// Further options of a client on HTTP. Headers, credentials, connect timeout and certificates are
    /// taken from the fields above.
    #[cfg(feature = "http-client")]
    pub http: super::http::HttpClientOptions,
}

/// Omits the values of headers, which may be secrets.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("ConnectOptions");
        shown
            .field("auth", &self.auth)
            .field("headers", &names)
            .field("protocols", &self.protocols)
            .field("connect_timeout", &self.connect_timeout)
            .field("heartbeat", &self.heartbeat)
            .field("root_certificates", &self.root_certificates.len())
            .field("certificate", &self.certificate);
        #[cfg(feature = "http-client")]
        shown.field("http", &self.http);
        shown.finish()
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            auth: Auth::None,
            headers: Vec::new(),
            protocols: vec![super::net::handshake::PROTOCOL.into()],
            connect_timeout: Duration::from_secs(30),
            heartbeat: Some(Duration::from_secs(20)),
            root_certificates: Vec::new(),
            certificate: None,
            #[cfg(feature = "http-client")]
            http: super::http::HttpClientOptions::default(),
        }
    }
}

/// What clients with the same address and options share. Clones share the same.
#[derive(Clone, Default)]
pub(super) struct Siblings {
    #[cfg(feature = "http-client")]
    http: super::http::client::SharedTransport,
}

impl ClientBuilder {
    /// Connects to a server at any address, and waits until the connection is open. The connection is
    /// closed when the last clone of the client is dropped. No async runtime is needed: sockets have
    /// threads of their own.
    ///
    /// ```no_run
    /// use mcpbolt::client::{Client, block_on};
    /// use mcpbolt::io::{Auth, ConnectOptions};
    ///
    /// let options = ConnectOptions {
    ///     auth: Auth::Bearer("a-token".into()),
    ///     ..ConnectOptions::default()
    /// };
    /// let address = "wss://example.com/mcp".parse()?;
    /// let client = block_on(Client::builder("chat", "1.0.0").open(&address, options))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such server, or it does not answer in time or refuses. An error in opening the
    /// connection contains a [`RequestError`](crate::error::RequestError). An address that only a
    /// server can use, or that needs a feature that is not built in, gives
    /// [`Unsupported`](io::ErrorKind::Unsupported).
    pub async fn open(self, address: &Address, options: ConnectOptions) -> io::Result<Client> {
        self.open_beside(address, options, None).await
    }

    /// The same beside other clients with the same address and options.
    pub(super) async fn open_beside(
        self,
        address: &Address,
        options: ConnectOptions,
        #[cfg_attr(
            not(feature = "http-client"),
            expect(unused_variables, reason = "only clients on HTTP share connections")
        )]
        siblings: Option<&Siblings>,
    ) -> io::Result<Client> {
        #[cfg(feature = "oauth")]
        if options.http.authorization.is_some() && !matches!(address, Address::Http(_)) {
            let why = "a login is for a server on HTTP: give other servers a token as credentials";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        match address.clone() {
            Address::Stdio(words) => match words.split_first() {
                Some((program, args)) => self.spawn(ChildCommand::new(program).args(args)).await,
                None => Err(unsupported(
                    "a client names the command of its server, as in stdio:COMMAND ARGS",
                )),
            },
            Address::Unix { path, framing } => {
                let channel = Channel::new(NetworkTransport::Unix)
                    .peer(path.to_string_lossy().as_ref(), None);
                let connect = async move |_| connect::unix(&path).await;
                self.on(told(framing), &options, channel, connect).await
            }
            Address::Tcp {
                host,
                port,
                framing,
            } => {
                let channel = Channel::new(NetworkTransport::Tcp).peer(&*host, Some(port));
                let connect = async move |_| {
                    let stream = connect::tcp(&host, port).await?;
                    Ok(Box::new(stream) as Box<dyn connect::ByteStream>)
                };
                self.on(told(framing), &options, channel, connect).await
            }
            Address::WebSocket(url) => {
                let channel = Channel::websocket().peer(&*url.host, Some(url.port));
                let connect = async move |options| connect::websocket(&url, &options).await;
                let framing = Framing::WebSocket { masked: true };
                self.on(framing, &options, channel, connect).await
            }
            #[cfg(feature = "http-client")]
            Address::Http(_) => {
                let options = super::http::HttpClientOptions {
                    headers: options.headers,
                    auth: options.auth,
                    connect_timeout: options.connect_timeout,
                    root_certificates: options.root_certificates,
                    certificate: options.certificate,
                    ..options.http
                };
                let shared = siblings.map(|siblings| &siblings.http);
                self.http_on(&address.to_string(), options, shared).await
            }
            #[cfg(not(feature = "http-client"))]
            Address::Http(_) => Err(unsupported(
                "this program has no HTTP client built in: feature `http-client` of mcpbolt",
            )),
        }
    }
}

/// The framing of a client: it sends first, so it cannot detect the framing and uses lines.
fn told(framing: Framing) -> Framing {
    match framing {
        Framing::Detect => Framing::Line,
        framing => framing,
    }
}
