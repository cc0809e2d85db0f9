//! Servers and clients on HTTP, WebSocket, TCP and Unix sockets, over real sockets.
#![cfg(all(feature = "http", feature = "http-client"))]

#[path = "../shared/actions.rs"]
mod actions_server;
mod ending;
mod examples;
mod fronts;

mod http;
mod http_client;
mod net;
mod runtimes;
