//! Opens a client on HTTP.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::carrier::Carrier;
use super::driver::ClientDriver;
use super::engine::Engine;
use super::known_openings::KnownOpening;
use super::options::HttpClientOptions;
use super::transport::{HttpTransport, SharedTransport};
use crate::client::{Client, ClientBuilder};
use crate::connection::{Channel, Connection, Framing, OpeningMode};
use crate::io::faults::invalid;
use crate::io::runtime::drive_beside;
use crate::io::spawn::spawner_of;
use crate::io::trace::traced;
use crate::io::wait::Notifier;

impl ClientBuilder {
    /// Opens a connection to a server on HTTP and waits until it is open. The client finds out which
    /// revision the server speaks, and whether it has the two endpoints of 2024-11-05 (R-ERA-09,
    /// R-ERA-11). That a server opens with a handshake is remembered for an hour (R-ERA-10).
    ///
    /// Every message is an HTTP request of its own, so a failure fails only that message, with
    /// [`RequestError::Carrier`](crate::error::RequestError::Carrier), and the connection goes on. If
    /// the server has ended the session, one new session is begun for all requests, with the same
    /// subscriptions and log level. Messages that were refused because of that are sent again, since
    /// the server did not accept them; requests whose answers were on their way are lost. If the server
    /// then speaks another revision, the connection ends.
    ///
    /// When the last clone of the client is dropped, requests in flight are dropped, and the session is
    /// ended in the background. A program that exits right after should wait with
    /// [`wait_for_clients`](crate::io::wait_for_clients).
    ///
    /// ```no_run
    /// use mcpbolt::client::{Client, block_on};
    /// use mcpbolt::io::{Auth, http::HttpClientOptions};
    /// let options = HttpClientOptions {
    ///     auth: Auth::Bearer("token".into()),
    ///     ..HttpClientOptions::default()
    /// };
    /// let client = Client::builder("chat", "1.0.0").http("https://example.com/mcp", options);
    /// for tool in block_on(block_on(client)?.list_tools())? {
    ///     println!("{}", tool.name);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the URL or an option is not valid, or the connection cannot be opened; the latter contains
    /// a [`RequestError`](crate::error::RequestError).
    pub async fn http(self, url: &str, options: HttpClientOptions) -> io::Result<Client> {
        self.http_on(url, options, None).await
    }

    /// The same on connections that other clients may share.
    pub(in crate::io) async fn http_on(
        self,
        url: &str,
        options: HttpClientOptions,
        shared: Option<&SharedTransport>,
    ) -> io::Result<Client> {
        #[cfg(feature = "oauth")]
        let (patience, extension) = match &options.authorization {
            Some(authorization) => (authorization.patience(), authorization.extension()),
            None => (std::time::Duration::ZERO, None),
        };
        let transport = match shared {
            Some(shared) => shared.to(url, options)?,
            None => Arc::new(HttpTransport::new(url, options)?),
        };
        // R-AUE-04
        #[cfg(feature = "oauth")]
        let this = match extension {
            Some(name) => self.extension(name, "{}"),
            None => self,
        };
        #[cfg(not(feature = "oauth"))]
        let this = self;
        let (mut config, prepared) = this.prepare().map_err(invalid)?;
        // A user who logs in takes longer than a server, and may do so during the probe.
        #[cfg(feature = "oauth")]
        {
            config.limits.handshake_timeout += patience;
            config.limits.probe_timeout += patience;
        }
        let actions = config.opening == OpeningMode::Actions;
        let known = (!actions).then(|| KnownOpening::apply(transport.url(), &mut config));
        let mut connection = Connection::new(traced(Arc::new(config))?, Instant::now());
        connection.set_channel(|| {
            let (url, channel) = (transport.url(), Channel::http(None));
            match url.host_str() {
                Some(host) => channel.peer(host, url.port_or_known_default()),
                None => channel,
            }
        });
        connection.open_stream(Framing::Line);
        let notifier = Notifier::new();
        connection.set_wake(notifier.clone());
        let spawner = spawner_of(&prepared);
        let (client, host) = prepared
            .with_header_arguments()
            .connect(connection.handle(), spawner.clone());
        let engine = Engine::new(connection, host);
        let carrier = Arc::new(Carrier::new(transport, engine, client.clone()));
        let driver = ClientDriver::new(carrier, notifier, actions);
        drive_beside(&*spawner, driver.run())?;
        let opened = client.closing_with_it().until_open().await;
        if let Some(known) = known {
            known.learn(opened.as_ref().ok());
        }
        opened
    }
}
