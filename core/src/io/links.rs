//! Links of chains: how an [`External`] server is reached, and carriers on which a [`Front`] is served.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::child::ChildCommand;
use super::faults::invalid;
use super::pair::{join, server_side};
use super::spawn::{spawner_of, workers};
use super::trace::traced;
use crate::chain::{External, Front};
use crate::client::{Client, ClientBuilder};
use crate::connection::Connection;
use crate::server::{Hosting, Server};

/// The most child processes of one server.
const MAX_CHILDREN: usize = 256;

impl External {
    /// A server that runs as a child process, one for each client whose questions it could mix up, unless
    /// [`isolation`](Self::isolation) says otherwise; at most 256 at a time ([`max_connections`](Self::max_connections)).
    /// `command` makes the command of each.
    pub fn command(
        name: impl Into<Arc<str>>,
        command: impl Fn() -> ChildCommand + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, move |client: ClientBuilder| {
            let command = command();
            Box::pin(client.spawn(command)) as _
        })
        .max_connections(MAX_CHILDREN)
    }

    /// A server at an address. A command of its own stands in `stdio:COMMAND ARGS`. Clients on HTTP share connections; up to 8,192 requests of
    /// each connection to the server are in flight, unless `options` say otherwise.
    #[cfg(feature = "net")]
    pub fn at(
        name: impl Into<Arc<str>>,
        address: super::Address,
        #[cfg_attr(not(feature = "http-client"), allow(unused_mut))]
        mut options: super::ConnectOptions,
    ) -> Self {
        #[cfg(feature = "http-client")]
        {
            // Slow calls of one client are not to hold up those of all.
            let most = crate::limits::Limits::NETWORK.max_incoming;
            options.http.max_concurrent.get_or_insert(most);
        }
        let siblings = super::open::Siblings::default();
        let is_of_requests = matches!(address, super::Address::Http(_));
        let external = Self::new(name, move |client: ClientBuilder| {
            let (address, options, siblings) = (address.clone(), options.clone(), siblings.clone());
            Box::pin(async move { client.open_beside(&address, options, Some(&siblings)).await })
                as _
        });
        match is_of_requests {
            true => external.of_requests(),
            false => external,
        }
    }

    /// A server in this process. It is told who the verified client of each request is.
    pub fn server(name: impl Into<Arc<str>>, server: &Server) -> Self {
        let server = server.clone();
        Self::new(name, move |client: ClientBuilder| {
            let server = server.clone();
            Box::pin(async move { client.connect(&server).await }) as _
        })
    }

    /// Another chain in this process, which is told the same.
    pub fn chain(name: impl Into<Arc<str>>, front: &Front) -> Self {
        Self::hosted(name, front.hosting(workers()))
    }

    /// A server in this process, whatever implements it, which is told the same.
    pub fn hosted(name: impl Into<Arc<str>>, hosting: Arc<dyn Hosting>) -> Self {
        Self::new(name, move |client: ClientBuilder| {
            let hosting = hosting.clone();
            Box::pin(async move { client.connect_hosted(&*hosting).await }) as _
        })
    }
}

impl ClientBuilder {
    /// Connects to a chain in this process and waits until the connection is open. The connection is closed when the last
    /// clone of the client is dropped.
    ///
    /// # Errors
    /// When a thread cannot be started, or the connection cannot be opened.
    pub async fn connect_chain(self, front: &Front) -> io::Result<Client> {
        let hosting = front.hosting(workers());
        let client = self.joined(&*hosting)?;
        // Calls that wait for the client's answers are kept there.
        client.closing_with(hosting).until_open().await
    }

    /// Connects to a server in this process, whatever implements it: see [`connect_chain`](Self::connect_chain).
    ///
    /// # Errors
    /// As [`connect_chain`](Self::connect_chain).
    pub async fn connect_hosted(self, hosting: &dyn Hosting) -> io::Result<Client> {
        self.joined(hosting)?.closing_with_it().until_open().await
    }

    fn joined(self, hosting: &dyn Hosting) -> io::Result<Client> {
        let callers = self.callers();
        let (config, prepared) = self.prepare().map_err(invalid)?;
        let now = Instant::now();
        let far = server_side(hosting.config(), callers, now)?;
        let host = hosting.host(far.handle(), None);
        let near = Connection::new(traced(Arc::new(config))?, now);
        let spawner = spawner_of(&prepared);
        let (client, own) = prepared.connect(near.handle(), spawner);
        join((far, host), (near, own))?;
        Ok(client)
    }
}

#[cfg(feature = "http")]
impl Front {
    /// Begins to serve at an address, in the background, on threads of the engine.
    ///
    /// # Errors
    /// As [`serve_with`](super::serve_with).
    pub fn serve(
        &self,
        address: &super::Address,
        options: super::ServeOptions,
    ) -> io::Result<super::Serving> {
        super::serve_with(|spawner| self.hosting(spawner), address, options)
    }
}
