//! Connections that others open: each gets a host, and is driven until both sides have ended.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};

use super::drive::{Terms, drive};
use super::metrics::{Metrics, count};
use super::websocket::WebSocket;
use crate::connection::{Config, Connection, Framing};
use crate::correlate::CancelToken;
use crate::io::hosted::Owned;
use crate::io::http::{HttpOptions, Principal};
use crate::io::trace::traced;
use crate::io::wait::Bell;
use crate::server::Hosting;

/// What is served on connections of one stream each, and how.
pub struct Reception {
    hosting: Arc<dyn Hosting>,
    config: Arc<Config>,
    heartbeat: Option<Duration>,
    grace: Duration,
    opening: Duration,
    stop: CancelToken,
    metrics: Arc<Metrics>,
}

impl Reception {
    /// Serves what is hosted within the bounds of `options`.
    pub fn new(hosting: Arc<dyn Hosting>, options: &HttpOptions) -> Self {
        let mut config = Config::clone(hosting.config());
        config.limits = options.limits.clone();
        Self {
            hosting,
            metrics: Metrics::of(config.budget.clone()),
            config: Arc::new(config),
            heartbeat: options.heartbeat,
            grace: options.grace,
            opening: options.header_timeout,
            stop: CancelToken::new(),
        }
    }

    /// What was done so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// All connections end in good order.
    pub fn stop(&self) {
        self.stop.cancel(None);
    }

    /// Serves on one connection until it has ended; `actions` are all that comes on some
    /// WebSockets.
    ///
    /// # Errors
    /// When the trace that the environment asks for cannot be written.
    pub async fn serve<S>(
        &self,
        stream: S,
        (framing, actions): (Framing, bool),
        principal: Option<&Principal>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        event!(debug, ?framing, "a connection begins");
        let now = Instant::now();
        let config = traced(self.config.clone())?;
        let longest = config.limits.max_message_bytes;
        let mut connection = Connection::new(config, now);
        if let Some(principal) = principal {
            connection.set_principal(principal.clone());
        }
        let bell = Bell::new();
        connection.set_wake(bell.clone());
        let host = self.hosting.host(connection.handle(), None);
        let terms = Terms {
            grace: self.grace,
            opening: Some(self.opening),
            stop: Some(self.stop.clone()),
        };
        match framing {
            Framing::WebSocket { masked } => {
                count(&self.metrics.websockets);
                let beat = self.heartbeat;
                let machine = WebSocket::new(connection, host, masked, longest, beat, now);
                let machine = match actions {
                    true => machine.of_actions(),
                    false => machine,
                };
                drive(stream, machine, bell, terms).await;
            }
            _ => {
                let machine = Owned::new(connection, framing, host);
                drive(stream, machine, bell, terms).await;
            }
        }
        event!(debug, lasted = ?now.elapsed(), "a connection has ended");
        Ok(())
    }
}
