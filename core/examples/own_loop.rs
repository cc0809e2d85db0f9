//! The engine in a loop of one's own: no threads, no runtime, and a clock that the loop supplies.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use mcpbolt::client::block_on;
use mcpbolt::connection::{Connection, Framing};
use mcpbolt::handler::{Job, Spawner};
use mcpbolt::prelude::*;

/// Collects handlers, which the loop runs itself.
struct Later(Sender<Job>);

impl Spawner for Later {
    fn spawn(&self, job: Job) {
        let _ = self.0.send(job);
    }
}

fn serve(server: &Server, mut reader: impl Read, mut writer: impl Write) -> io::Result<()> {
    let (later, jobs): (_, Receiver<Job>) = channel();
    let mut connection = Connection::new(server.config().clone(), Instant::now());
    let mut host = server.host(connection.handle(), None, Arc::new(Later(later)));
    let stream = connection.open_stream(Framing::Line);
    while !connection.is_closed() {
        // Bytes in …
        let read = reader.read(connection.input(stream).spare(1))?;
        connection.input(stream).advance(read);
        match read {
            0 => connection.receive_end(stream, Instant::now(), &mut host),
            _ => connection.receive(stream, Instant::now(), &mut host),
        }
        // … calls of handlers, and their answers …
        jobs.try_iter().for_each(block_on);
        connection.handle_submissions(Instant::now(), &mut host);
        if connection
            .poll_timeout()
            .is_some_and(|due| due <= Instant::now())
        {
            connection.handle_timeout(Instant::now(), &mut host);
        }
        // … bytes out.
        while !connection.output(stream).is_empty() {
            let mut slices = [io::IoSlice::new(&[]); 16];
            let used = connection.output(stream).io_slices(&mut slices);
            let written = writer.write_vectored(&slices[..used])?;
            connection.output(stream).advance(written);
        }
        writer.flush()?;
        if read == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Greets somebody.
#[tool]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("greeter", "1.0.0")
        .with(handlers![greet])
        .build()?;
    Ok(serve(&server, io::stdin(), io::stdout())?)
}
