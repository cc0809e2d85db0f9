//! Connections that clients open: each gets a host, and is driven until both sides have ended.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};

use super::metrics::{Metrics, count};
use super::places::Place;
use super::websocket::WebSocket;
use crate::connection::{Channel, Config, Connection, Framing, RequestSource};
use crate::correlate::CancelToken;
use crate::io::hosted::Hosted;
use crate::io::http::{HttpOptions, Principal};
use crate::io::task::{Terms, drive};
use crate::io::trace::traced;
use crate::io::wait::Notifier;
use crate::server::Hosting;

/// Properties of one accepted connection.
pub struct Accepted {
    pub framing: Framing,
    /// A WebSocket that carries only actions.
    pub actions: bool,
    pub principal: Option<Principal>,
    /// The source of the connection.
    pub source: RequestSource,
    /// How its messages travel.
    pub channel: Channel,
}

/// Serves connections of one stream each, with these options.
pub struct Reception {
    hosting: Arc<dyn Hosting>,
    /// The configuration of WebSockets, which have pings of their own.
    config: Arc<Config>,
    /// The configuration of other connections: the engine pings a silent peer.
    asking: Arc<Config>,
    heartbeat: Option<Duration>,
    grace: Duration,
    opening: Duration,
    stop: CancelToken,
    metrics: Arc<Metrics>,
}

impl Reception {
    /// Serves `hosting` within the limits of `options`.
    pub fn new(hosting: Arc<dyn Hosting>, options: &HttpOptions) -> Self {
        let mut config = Config::clone(hosting.config());
        config.limits = options.limits.clone();
        config.budget.join_network();
        let mut asking = config.clone();
        let interval = &mut asking.limits.keepalive_interval;
        *interval = interval.or(options.heartbeat);
        Self {
            hosting,
            metrics: Metrics::of(config.budget.clone()),
            asking: Arc::new(asking),
            config: Arc::new(config),
            heartbeat: options.heartbeat,
            grace: options.grace,
            opening: options.header_timeout.min(options.limits.handshake_timeout),
            stop: CancelToken::new(),
        }
    }

    /// The server's counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Whether the action dialect is spoken.
    pub fn takes_actions(&self) -> bool {
        self.config.actions
    }

    /// Ends all connections gracefully.
    pub fn stop(&self) {
        self.stop.cancel(None);
    }

    /// Serves one connection until it has ended, or makes room for another.
    ///
    /// # Errors
    /// When the trace that the environment asks for cannot be written.
    pub async fn serve<S>(
        &self,
        stream: S,
        accepted: Accepted,
        place: Option<Place>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let gives_way = place.as_ref().map(|place| place.gives_way());
        // The place is held until the end.
        let served = self.serve_on(stream, accepted, place.clone());
        match gives_way {
            None => served.await,
            Some(gives_way) => tokio::select! {
                served = served => served,
                () = gives_way => Ok(()),
            },
        }
    }

    async fn serve_on<S>(
        &self,
        stream: S,
        accepted: Accepted,
        place: Option<Place>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Accepted {
            framing,
            actions,
            principal,
            source,
            channel,
        } = accepted;
        event!(debug, ?framing, "a connection begins");
        let now = Instant::now();
        let is_websocket = matches!(framing, Framing::WebSocket { .. });
        let config = match is_websocket {
            true => &self.config,
            false => &self.asking,
        };
        let config = traced(config.clone())?;
        let (longest, unfinished) = (config.limits.max_message_bytes, config.limits.stall_timeout);
        let mut connection = Connection::new(config, now);
        if let Some(principal) = principal {
            connection.set_principal(principal);
        }
        connection.set_channel(|| channel);
        let notifier = Notifier::new();
        connection.set_wake(notifier.clone());
        let mut host = self.hosting.host(connection.handle(), None);
        connection.set_source(&source);
        host.sent_from(source);
        let terms = Some(Terms {
            grace: self.grace,
            opening: self.opening,
            unfinished,
            stop: self.stop.clone(),
            opened: place.map(|place| Box::new(move || place.establish()) as _),
        });
        if is_websocket {
            count(&self.metrics.websockets);
            let beat = self.heartbeat;
            let machine = WebSocket::new(connection, host, false, longest, beat, now);
            let machine = match actions {
                true => machine.of_actions(),
                false => machine,
            };
            drive(stream, machine, notifier, terms).await;
        } else {
            let machine = Hosted::new(connection, framing, host).checking_the_first_byte();
            drive(stream, machine, notifier, terms).await;
        }
        event!(debug, lasted = ?now.elapsed(), "a connection has ended");
        Ok(())
    }
}
