//! A client and a server in one process, joined without a descriptor: for users' own tests.

use std::io::IoSlice;
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Instant;

use mcpbolt::connection::{Connection, Framing, Wake};
use mcpbolt::error::ConnectionError;
use mcpbolt::io::{Hosted, Machine};
use mcpbolt::server::ServerHost;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::client::{ClientHost, ClientOptions};
use crate::error::Result;
use crate::executor::Handlers;
use crate::inbox::Inbox;
use crate::link::{Farewell, Link, spawn};
use crate::offer::Offer;

/// Unparks the thread that moves the bytes; before it runs there is nothing to do.
#[derive(Default)]
struct Mover(OnceLock<Thread>);

impl Wake for Mover {
    fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// Connects a client with a server of `offer`. Gives the server's link, then the client's.
#[napi]
pub fn pair(
    offer: &mut Offer,
    wake_server: Function<'_, (), ()>,
    options: ClientOptions,
    wake_client: Function<'_, (), ()>,
) -> Result<Vec<Link>> {
    let served = offer.serve();
    let now = Instant::now();
    let mover = Arc::new(Mover::default());
    let (mut server, mut client) = (
        Connection::new(served.config, now),
        Connection::new(options.config(), now),
    );
    server.set_wake(mover.clone());
    client.set_wake(mover.clone());
    let (server_inbox, client_inbox) = (
        Arc::new(Inbox::new(&wake_server)?),
        Arc::new(Inbox::new(&wake_client)?),
    );
    let (server_handle, client_handle) = (server.handle(), client.handle());
    let links = vec![
        Link::new(
            server_inbox.clone(),
            server_handle.clone(),
            None,
            served.registry.clone(),
        ),
        Link::new(
            client_inbox.clone(),
            client_handle.clone(),
            None,
            Arc::default(),
        ),
    ];
    spawn("mcpbolt-pair", move || {
        let _ = mover.0.set(thread::current());
        let farewell = |inbox: &Arc<Inbox>| Farewell {
            inbox: inbox.clone(),
            json: "{}".into(),
        };
        let _farewells = [farewell(&server_inbox), farewell(&client_inbox)];
        let handlers = Handlers(server_inbox);
        let mut server_host = ServerHost::new(served.registry, server_handle, handlers);
        let mut client_host = ClientHost {
            inbox: client_inbox,
            handle: client_handle,
        };
        join(
            &mut Hosted::new(&mut server, Framing::Line, &mut server_host),
            &mut Hosted::new(&mut client, Framing::Line, &mut client_host),
        );
    })?;
    Ok(links)
}

/// Moves bytes both ways until one side has ended.
fn join(server: &mut impl Machine, client: &mut impl Machine) {
    loop {
        let now = Instant::now();
        let moved = turn(client, server, now) | turn(server, client, now);
        if server.is_closed() || client.is_closed() {
            server.close(ConnectionError::ClosedByPeer);
            return client.close(ConnectionError::ClosedByPeer);
        }
        if moved {
            continue;
        }
        match [server.poll_timeout(), client.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
        {
            Some(due) => thread::park_timeout(due.saturating_duration_since(now)),
            None => thread::park(),
        }
    }
}

/// One side takes what was submitted and what time brought, and says it to the other.
fn turn(from: &mut impl Machine, to: &mut impl Machine, now: Instant) -> bool {
    from.handle_submissions(now);
    if from.poll_timeout().is_some_and(|due| due <= now) {
        from.handle_timeout(now);
    }
    let mut moved = false;
    while !from.output().is_empty() && to.wants_read() {
        let mut slices = [IoSlice::new(&[]); 16];
        let used = from.output().io_slices(&mut slices);
        let mut taken = 0;
        for slice in slices.iter().take(used) {
            let room = to.input().spare(slice.len());
            let n = slice.len().min(room.len());
            room[..n].copy_from_slice(&slice[..n]);
            to.input().advance(n);
            taken += n;
            if n < slice.len() {
                break;
            }
        }
        from.output().advance(taken);
        to.receive(now);
        moved = true;
    }
    moved
}
