//! The connection to the server, or to a cluster: one, on which all verbs of a process are in flight at once and what is published comes in.
//! One task keeps it.
//!
//! ```text
//!   verbs ──▶ phase: opening ─▶ open ─▶ …      wait, use, or fail at once
//!               ▲        ╰─▶ down ─╯
//!             keeper ◀── commands: subscribe, ended, broken
//! ```

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::{PushInfo, PushKind, RedisError, RedisResult, Value};
use tokio::sync::mpsc::{
    UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel,
};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::{StoreConnection, StoreServer};
use super::failure::{failed, is_broken, unreachable};
use super::options::RedisOptions;
use crate::store::{Hints, StoreError, StoreFault};

/// The wait after the first failure to connect; it doubles up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Longest wait between two attempts to connect. A connection that lasts as long has proven itself.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How many channels one command subscribes to.
const CHANNELS: usize = 256;

/// What a process knows of the server.
pub struct StoreLink {
    server: Arc<str>,
    phase: watch::Receiver<Phase>,
    commands: UnboundedSender<Command>,
    hints: Arc<Hints>,
}

#[derive(Clone)]
enum Phase {
    Opening,
    Open(Open),
    /// The last attempt has failed. The next one comes by itself.
    Down(StoreError),
}

#[derive(Clone)]
struct Open {
    number: u64,
    connection: StoreConnection,
}

enum Command {
    Subscribe(Arc<str>, oneshot::Sender<Result<(), StoreError>>),
    /// A topic has no subscription any more.
    Ended(Arc<str>),
    /// The connection of this number is of no more use.
    Broken(u64),
}

impl StoreLink {
    /// Begins to connect, by a task of the runtime in whose context this is called. The task ends with the link.
    pub fn begin(client: StoreServer, server: &str, options: &RedisOptions) -> Self {
        let (commands, received) = unbounded_channel();
        let (phase, seen) = watch::channel(Phase::Opening);
        let server = Arc::<str>::from(server);
        let weak = commands.downgrade();
        let hints = Arc::new(Hints::telling(move |topic| {
            if let Some(commands) = weak.upgrade() {
                let _ = commands.send(Command::Ended(topic.clone()));
            }
        }));
        let keeper = Keeper {
            client,
            server: server.clone(),
            timeouts: (options.connect_timeout, options.timeout),
            channels: Channels(Arc::from(format!("{}h", options.prefix))),
            hints: hints.clone(),
            commands: commands.downgrade(),
            phase,
        };
        drop(tokio::spawn(keeper.keep(received)));
        Self {
            server,
            phase: seen,
            commands,
            hints,
        }
    }

    pub fn hints(&self) -> &Arc<Hints> {
        &self.hints
    }

    /// Runs commands on the connection, once there is one, before the deadline.
    pub async fn run<T, F: Future<Output = RedisResult<T>>>(
        &self,
        deadline: Instant,
        commands: impl FnOnce(StoreConnection) -> F,
    ) -> Result<T, StoreError> {
        let open = timeout_at(deadline, self.open()).await;
        let Open { number, connection } = open.unwrap_or_else(|_| Err(self.unopened()))?;
        let broken = || drop(self.commands.send(Command::Broken(number)));
        match timeout_at(deadline, commands(connection)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                if is_broken(&error) {
                    broken();
                }
                Err(failed(&self.server, &error))
            }
            Err(_) => {
                // Others would wait for the same server as long.
                broken();
                let why = format!("the store at {} did not answer in time", self.server);
                Err(StoreError::new(StoreFault::TimedOut, why))
            }
        }
    }

    /// Has the server tell this process of a topic.
    pub async fn subscribe(&self, deadline: Instant, topic: &str) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let _ = self.commands.send(Command::Subscribe(topic.into(), done));
        match timeout_at(deadline, outcome).await {
            Ok(Ok(outcome)) => outcome,
            _ => Err(self.unopened()),
        }
    }

    async fn open(&self) -> Result<Open, StoreError> {
        let mut phase = self.phase.clone();
        let settled = phase.wait_for(|phase| !matches!(phase, Phase::Opening));
        match settled.await.as_deref() {
            Ok(Phase::Open(open)) => Ok(open.clone()),
            Ok(Phase::Down(why)) => Err(why.clone()),
            Ok(Phase::Opening) | Err(_) => Err(self.unopened()),
        }
    }

    fn unopened(&self) -> StoreError {
        let why = format!("no connection to the store at {} in time", self.server);
        StoreError::new(StoreFault::Unavailable, why)
    }
}

/// The names of channels: those of their topics, with the prefix, and in braces.
#[derive(Clone)]
struct Channels(Arc<str>);

impl Channels {
    fn of(&self, topic: &str) -> String {
        format!("{}{{{topic}}}", self.0)
    }

    fn topic<'a>(&self, channel: &'a [u8]) -> Option<&'a str> {
        let channel = std::str::from_utf8(channel).ok()?;
        let topic = channel.strip_prefix(&*self.0)?.strip_prefix('{')?;
        topic.strip_suffix('}')
    }
}

/// Opens the connection, again and again, and subscribes on it.
struct Keeper {
    client: StoreServer,
    server: Arc<str>,
    /// For connecting, and for an answer.
    timeouts: (Duration, Duration),
    channels: Channels,
    hints: Arc<Hints>,
    /// Ends with the link.
    commands: WeakUnboundedSender<Command>,
    phase: watch::Sender<Phase>,
}

impl Keeper {
    async fn keep(self, mut commands: UnboundedReceiver<Command>) {
        let (mut number, mut wait) = (0, FIRST_WAIT);
        loop {
            number += 1;
            let opened = self.open(number).await;
            let goes_on = match opened {
                Ok(open) => {
                    let since = Instant::now();
                    self.phase.send_replace(Phase::Open(open.clone()));
                    // Hints may have been lost since the connection before.
                    self.hints.publish_all();
                    let goes_on = self.serve(open, &mut commands).await;
                    self.phase.send_replace(Phase::Opening);
                    if since.elapsed() >= LONGEST_WAIT {
                        wait = FIRST_WAIT;
                    } else if goes_on {
                        // A server that ends every connection at once is not asked without a pause.
                        sleep(wait).await;
                        wait = (wait * 2).min(LONGEST_WAIT);
                    }
                    goes_on
                }
                Err(error) => {
                    let why = unreachable(&self.server, &error);
                    self.phase.send_replace(Phase::Down(why.clone()));
                    let goes_on = refuse(&why, wait, &mut commands).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                    goes_on
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    async fn open(&self, number: u64) -> Result<Open, RedisError> {
        let (hints, channels) = (self.hints.clone(), self.channels.clone());
        let commands = self.commands.clone();
        let told = move |push: PushInfo| -> Result<(), RedisError> {
            match (push.kind, push.data.first()) {
                (PushKind::Message, Some(Value::BulkString(channel))) => {
                    if let Some(topic) = channels.topic(channel) {
                        hints.publish(topic);
                    }
                }
                (PushKind::Disconnection, _) => {
                    if let Some(commands) = commands.upgrade() {
                        let _ = commands.send(Command::Broken(number));
                    }
                }
                _ => {}
            }
            Ok(())
        };
        let mut connection = self.client.open(self.timeouts, told).await?;
        let topics = self.hints.topics();
        for topics in topics.chunks(CHANNELS) {
            let channels: Vec<_> = topics.iter().map(|topic| self.channels.of(topic)).collect();
            connection.subscribe(&channels).await?;
        }
        Ok(Open { number, connection })
    }

    /// Serves an open connection until it is broken. Returns whether the link is still there.
    async fn serve(&self, open: Open, commands: &mut UnboundedReceiver<Command>) -> bool {
        let Open {
            number,
            mut connection,
        } = open;
        while let Some(command) = commands.recv().await {
            let outcome = match command {
                // Its subscriber may have been dropped meanwhile, and `Ended` come first.
                Command::Subscribe(topic, done) if !self.hints.has(&topic) => {
                    let _ = done.send(Ok(()));
                    Ok(())
                }
                Command::Subscribe(topic, done) => {
                    let outcome = connection.subscribe(&[self.channels.of(&topic)]).await;
                    let told = outcome
                        .as_ref()
                        .map_err(|error| failed(&self.server, error));
                    let _ = done.send(told.copied());
                    outcome
                }
                // Somebody may have subscribed again; then a command to subscribe follows, or the topic is there.
                Command::Ended(topic) if !self.hints.has(&topic) => {
                    connection.unsubscribe(self.channels.of(&topic)).await
                }
                Command::Broken(broken) if broken == number => return true,
                Command::Ended(_) | Command::Broken(_) => Ok(()),
            };
            if outcome.is_err_and(|error| is_broken(&error)) {
                return true;
            }
        }
        false
    }
}

/// Waits until the next attempt to connect, and refuses commands meanwhile. Returns whether the link is still there.
async fn refuse(
    why: &StoreError,
    wait: Duration,
    commands: &mut UnboundedReceiver<Command>,
) -> bool {
    let refused = async {
        while let Some(command) = commands.recv().await {
            if let Command::Subscribe(_, done) = command {
                let _ = done.send(Err(why.clone()));
            }
        }
    };
    timeout(wait, refused).await.is_err()
}
