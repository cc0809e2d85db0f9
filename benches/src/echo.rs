//! An echo call through two complete connections in memory: encode, frame, decode, correlate, answer, and
//! the same on the way back, with deadlines, limits and cancellation enabled. No I/O.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use mcpbolt::connection::{
    ActOptions, Answer, Batch, CallKey, Config, Connection, Disposition, Framing, Handle, Host,
    IncomingRequest, Observer, OpeningMode, Operation, RequestOptions, Response, StreamId,
};
use mcpbolt::mcp::{Revision, Revisions, Side};
use mcpbolt::message::Kind;

/// Where the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the driver's thread, from the borrowed frame.
    Inline,
    /// As for handlers on other threads: a batch is handed out, and answers are submitted through the handle.
    Deferred,
}

/// The dialect of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// MCP of that revision.
    Mcp(Revision),
    /// The action dialect.
    Actions,
}

/// The arguments of each call.
const ARGUMENTS: &str = r#"{"text":"hello, world"}"#;
/// The params of a `tools/call` with these arguments.
const PARAMS: &str = r#"{"name":"echo","arguments":{"text":"hello, world"}}"#;

struct Echo {
    way: Way,
    handle: Handle,
}

impl Host for Echo {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        match self.way {
            Way::Inline => answer.result(|result| {
                result.raw(
                    "structuredContent",
                    request.message.arguments().unwrap_or("{}"),
                );
            }),
            Way::Deferred => Disposition::Deferred(Operation::Own(0)),
        }
    }

    fn dispatch(&mut self, batch: Batch) {
        let mut replies = self.handle.replies();
        for call in batch.calls() {
            replies.result(&call.reply, |result| {
                result.raw(
                    "structuredContent",
                    call.message.as_ref().arguments().unwrap_or("{}"),
                );
            });
        }
    }

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}
}

/// The client's host, which gets no requests.
struct Nobody;

impl Host for Nobody {
    fn request(&mut self, _request: IncomingRequest<'_>, _answer: Answer<'_>) -> Disposition {
        unreachable!("a server asks nothing here")
    }

    fn dispatch(&mut self, _batch: Batch) {}

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}
}

/// A connected client and server.
pub struct Pair {
    language: Language,
    client: Connection,
    server: Connection,
    echo: Echo,
    handle: Handle,
    now: Instant,
    waiting: Vec<Response>,
}

impl Pair {
    /// Opens both connections.
    pub fn open(language: Language, way: Way) -> Self {
        Self::observed(language, way, None)
    }

    /// Opens both connections, with an observer of the server's requests.
    pub fn observed(language: Language, way: Way, observer: Option<Arc<dyn Observer>>) -> Self {
        let now = Instant::now();
        let mut config = Config::new(Side::Client, "client", "1");
        match language {
            Language::Mcp(revision) => config.revisions = Revisions::only(revision),
            Language::Actions => config.opening = OpeningMode::Actions,
        }
        let mut client = Connection::new(Arc::new(config), now);
        let mut config = Config::new(Side::Server, "server", "1");
        config.actions = language == Language::Actions;
        config.observer = observer;
        let mut server = Connection::new(Arc::new(config), now);
        client.open_stream(Framing::Line);
        server.open_stream(Framing::Line);
        let mut pair = Self {
            language,
            handle: client.handle(),
            echo: Echo {
                way,
                handle: server.handle(),
            },
            client,
            server,
            now,
            waiting: Vec::new(),
        };
        for _ in 0..4 {
            pair.turn();
        }
        if let Language::Mcp(revision) = language {
            assert_eq!(pair.handle.revision(), Some(revision));
        }
        pair
    }

    /// Moves the client's output to the server, and the server's output back.
    fn turn(&mut self) {
        self.client.handle_submissions(self.now, &mut Nobody);
        carry(&mut self.client, &mut self.server);
        self.server
            .receive(StreamId::FIRST, self.now, &mut self.echo);
        self.server.handle_submissions(self.now, &mut self.echo);
        carry(&mut self.server, &mut self.client);
        self.client.receive(StreamId::FIRST, self.now, &mut Nobody);
    }

    /// Sends one call.
    fn ask(&mut self) {
        let response = match self.language {
            Language::Mcp(_) => {
                let options = RequestOptions::default();
                self.handle.request("tools/call", Some(PARAMS), options)
            }
            Language::Actions => self.handle.act("echo", ARGUMENTS, ActOptions::default()),
        };
        self.waiting.extend(response);
    }

    /// Sends `count` calls at once, and takes all their answers.
    pub fn round(&mut self, count: usize) {
        for _ in 0..count {
            self.ask();
        }
        self.turn();
        let mut cx = Context::from_waker(Waker::noop());
        let mut answered = 0;
        for mut response in self.waiting.drain(..) {
            if let Poll::Ready(Ok(message)) = Pin::new(&mut response).poll(&mut cx) {
                answered += usize::from(match self.language {
                    Language::Mcp(_) => message.as_ref().kind() == Kind::Response,
                    Language::Actions => message.bytes().starts_with(SUCCESS),
                });
            }
        }
        assert_eq!(answered, count);
    }

    /// Panics unless a call is answered with the text that it sent.
    pub fn check(&mut self) {
        self.ask();
        self.turn();
        let mut response = self.waiting.remove(0);
        let answer = match Pin::new(&mut response).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(message)) => String::from_utf8_lossy(message.bytes()).into_owned(),
            other => panic!("{other:?}"),
        };
        let name = match self.language {
            Language::Mcp(_) => "structuredContent",
            Language::Actions => "data",
        };
        let echoed = format!("\"{name}\":{ARGUMENTS}");
        assert!(answer.contains(&echoed), "{answer}");
    }
}

/// The beginning of a successful answer to an action.
const SUCCESS: &[u8] = br#"{"status":"success","data":{"text":"#;

/// Moves all output of one side to the input of the other.
fn carry(from: &mut Connection, to: &mut Connection) {
    let output = from.output(StreamId::FIRST);
    while !output.is_empty() {
        let head = output.head();
        to.input(StreamId::FIRST).extend(head);
        let len = head.len();
        output.advance(len);
    }
}
