//! A server at any address.

use std::future::IntoFuture;
use std::io;

use super::{OnStdio, Serve, Stored, own_runtime, runtime, until};
use crate::correlate::CancelToken;
use crate::io::address::{Address, AddressError};
use crate::io::net::serve::{ServeOptions, Serving, bind, is_stdio, serve_with};
use crate::server::Server;

/// An address, and the options of serving there.
#[derive(Clone, Debug)]
pub struct OnAddress {
    address: Result<Address, AddressError>,
    options: ServeOptions,
}

impl Server {
    /// Serves at an [address](Address), such as `"http://127.0.0.1:8000/mcp"` or `"stdio:"`.
    ///
    /// Awaited within a tokio runtime, sockets and handlers are tasks of the runtime.
    /// [`wait`](Serve::wait) and [`start`](Serve::start) use threads of the engine, also for handlers unless
    /// they are called within a runtime; those handlers may use tokio as well.
    ///
    /// ```no_run
    /// use mcpbolt::server::Server;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::builder("hello", "1.0.0").build()?;
    /// server.serve("http://127.0.0.1:8000/mcp").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve<A>(&self, address: A) -> Serve<OnAddress>
    where
        A: TryInto<Address>,
        A::Error: Into<AddressError>,
    {
        let on_address = OnAddress {
            address: address.try_into().map_err(Into::into),
            options: ServeOptions::default(),
        };
        Serve::new(self, on_address)
    }
}

impl Serve<OnAddress> {
    /// Sets the options.
    pub fn options(mut self, options: ServeOptions) -> Self {
        self.carrier.options = options;
        self
    }

    /// Begins to serve in the background, on threads of the engine.
    ///
    /// ```
    /// use mcpbolt::server::Server;
    ///
    /// let server = Server::builder("hello", "1.0.0").build()?;
    /// let serving = server.serve("http://127.0.0.1:0/mcp").start()?;
    /// println!("{}", serving.address());
    /// serving.stop();
    /// serving.wait();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`io::serve`](crate::io::serve); and [`InvalidInput`](io::ErrorKind::InvalidInput) when the text
    /// is not an address.
    pub fn start(self) -> io::Result<Serving> {
        let Self {
            server,
            carrier,
            shutdown,
        } = self;
        let (address, tasks) = (carrier.address?, runtime());
        // Sockets bring a runtime for handlers; stdin and stdout do not.
        let _context = match is_stdio(&address)? {
            true => own_runtime::enter()?,
            false => None,
        };
        let mut own = None;
        let host = |threads| {
            let spawner = tasks.unwrap_or(threads);
            own = Some(spawner.clone());
            server.hosting(spawner)
        };
        let serving = serve_with(host, &address, carrier.options)?;
        if let (Some(signal), Some(spawner)) = (shutdown, own) {
            let stopper = serving.stopper();
            spawner.spawn(Box::pin(async move {
                signal.await;
                stopper.stop();
            }));
        }
        Ok(serving)
    }

    /// Serves until the server is shut down; on `stdio:` also until the client ends. Blocks.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn wait(self) -> io::Result<()> {
        self.start().map(|serving| serving.wait())
    }
}

/// The errors are those of [`start`](Serve::start).
impl IntoFuture for Serve<OnAddress> {
    type Output = io::Result<()>;
    type IntoFuture = Stored<io::Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let OnAddress { address, options } = self.carrier;
            let address = address?;
            if is_stdio(&address)? {
                let on_stdio = Serve {
                    server: self.server,
                    carrier: OnStdio::new(options.stdio),
                    shutdown: self.shutdown,
                };
                return on_stdio.await.map(drop);
            }
            let tasks = runtime().ok_or_else(|| {
                io::Error::other("no tokio runtime runs this future: use `wait` or `start`")
            })?;
            let stop = CancelToken::new();
            let hosting = self.server.hosting(tasks);
            let stopped = stop.cancelled();
            let bound = bind(hosting, &address, options, stopped).await?;
            until(bound.serves, self.shutdown, || _ = stop.cancel(None)).await;
            Ok(())
        })
    }
}
