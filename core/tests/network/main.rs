//! Servers and clients on HTTP, WebSocket, TCP and Unix sockets, over real sockets.
#![cfg(all(feature = "http", feature = "http-client"))]

#[path = "../shared/actions.rs"]
mod actions_server;
#[cfg(feature = "opentelemetry")]
#[path = "../shared/collector.rs"]
mod collector;
#[cfg(feature = "opentelemetry")]
mod conventions;
mod ending;
mod examples;
mod fronts;

mod http;
mod http_client;
mod net;
#[cfg(feature = "prometheus")]
mod prometheus;
mod runtimes;
