//! Starts workers, replaces those that end, and ends them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};

use super::member::{Common, RunningWorker};
use super::plan::{Loss, Number, Order, Plan, PlanTerms};
use crate::io::net::listener::Listener;
use crate::io::reconnect::Backoff;
use crate::panics::contain;
use crate::sync::lock;

/// How often a process whose end the system does not report is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the folder of the private sockets is looked for.
const FOLDER_EVERY: Duration = Duration::from_secs(10);

const WAKER: Token = Token(0);

/// Options of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupervisorOptions {
    /// Number of workers; 0 counts as 1.
    pub workers: usize,
    /// The longest time from a worker's start until it serves; a worker that takes longer is killed. 60 s by default.
    pub start_timeout: Duration,
    /// The longest time from the moment a worker is told to end, or was replaced, until its process has ended; then it is
    /// killed. It must be longer than the grace period of the worker's server: by default 60 s.
    pub end_timeout: Duration,
    /// The waits before a worker that has ended is replaced: `first` after one that had served for longer than
    /// `longest`, and twice as long each time in a row that one has not. 100 ms to 10 s by default. The number of
    /// attempts is not limited.
    pub backoff: Backoff,
}

impl Default for SupervisorOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            start_timeout: Duration::from_secs(60),
            end_timeout: Duration::from_secs(60),
            backoff: Backoff {
                longest: Duration::from_secs(10),
                ..Backoff::default()
            },
        }
    }
}

/// Serves one address with several processes: starts workers on listening sockets that this process keeps, so that no
/// connection is lost while one of them is replaced. Each worker is a process in which
/// [`WorkerProcess::inherited`](super::WorkerProcess::inherited) returns its side, usually this same program:
///
/// ```no_run
/// use mcpbolt::io::{Address, Listener, ServeOptions, Supervisor, SupervisorOptions, WorkerProcess};
/// use mcpbolt::server::Server;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let address: Address = "http://127.0.0.1:8000/mcp".parse()?;
///     if let Some(worker) = WorkerProcess::inherited()? {
///         let server = Server::builder("hello", "1.0.0").build()?;
///         let options = ServeOptions { worker: Some(worker), ..ServeOptions::default() };
///         return Ok(server.serve(address).options(options).wait()?);
///     }
///     let program = std::env::current_exe()?;
///     let listeners = vec![Listener::bind(&address)?];
///     let options = SupervisorOptions { workers: 4, ..SupervisorOptions::default() };
///     let start = move || std::process::Command::new(&program);
///     Ok(Supervisor::new(start, listeners, options).start()?.wait()?)
/// }
/// ```
pub struct Supervisor {
    program: Box<dyn FnMut() -> Command + Send>,
    listeners: Vec<Listener>,
    options: SupervisorOptions,
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("listeners", &self.listeners)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The workers of a supervisor at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SupervisionState {
    /// Number of workers that serve.
    pub serving: usize,
    /// Whether all workers have served at the same time once.
    pub is_up: bool,
    /// Whether the workers are ending.
    pub is_stopping: bool,
    /// The process ids of all workers that have not ended, in the order of their start.
    pub processes: Vec<u32>,
}

impl SupervisionState {
    /// Whether requests are served: neither the first workers are starting nor the last ones ending.
    pub fn is_ready(&self) -> bool {
        self.is_up && !self.is_stopping && self.serving > 0
    }
}

/// Workers that a supervisor keeps running. Dropping it ends them, and waits for their end.
#[derive(Debug)]
pub struct Supervising(Arc<Shared>);

/// What the handle and the supervisor's thread share.
#[derive(Debug)]
struct Shared {
    board: Mutex<Board>,
    changed: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Board {
    commands: Vec<Instruction>,
    state: SupervisionState,
    /// How it ended.
    outcome: Option<Result<(), String>>,
}

#[derive(Clone, Copy, Debug)]
enum Instruction {
    Restart,
    Stop,
    Kill,
    Signal(i32),
}

impl Supervisor {
    /// Creates a supervisor. `program` makes the command of a worker; its stdin and the variable `MCPBOLT_WORKER` are set
    /// by the supervisor. With several listeners, worker `n` gets the listener of that number, modulo their count: see
    /// [`Listener::bind_each`].
    pub fn new(
        program: impl FnMut() -> Command + Send + 'static,
        listeners: Vec<Listener>,
        options: SupervisorOptions,
    ) -> Self {
        Self {
            program: Box::new(program),
            listeners,
            options,
        }
    }

    /// Starts the workers, on a thread of its own. Each leads a process group, so signals of a terminal reach the
    /// supervisor alone. If one of the first workers ends before all of them serve, all of them end.
    ///
    /// # Errors
    /// When the folder of the workers' private sockets cannot be created in the system's folder for temporary files, or
    /// the thread cannot be started; [`InvalidInput`](io::ErrorKind::InvalidInput) without a listener.
    pub fn start(self) -> io::Result<Supervising> {
        if self.listeners.is_empty() {
            let why = "a supervisor needs a listening socket for its workers";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let poll = Poll::new()?;
        let shared = Arc::new(Shared {
            board: Mutex::default(),
            changed: Condvar::new(),
            waker: Waker::new(poll.registry(), WAKER)?,
        });
        let terms = PlanTerms {
            start_timeout: self.options.start_timeout,
            end_timeout: self.options.end_timeout,
            backoff: self.options.backoff,
        };
        let tree = Tree {
            common: Common::new()?,
            plan: Plan::new(self.options.workers, terms, Instant::now()),
            supervisor: self,
            poll,
            workers: BTreeMap::new(),
            lost: Vec::new(),
            failure: None,
            shared: shared.clone(),
        };
        thread::Builder::new()
            .name("mcpbolt-supervisor".to_owned())
            .spawn(move || tree.run())?;
        Ok(Supervising(shared))
    }
}

impl Supervising {
    /// The workers at this moment.
    pub fn state(&self) -> SupervisionState {
        lock(&self.0.board).state.clone()
    }

    /// Replaces all workers, one by one: a new one starts, and when it serves, the old one accepts no more connections,
    /// answers what it is asked until its clients have moved on, and ends. If a new one cannot start, the others serve on.
    pub fn restart(&self) {
        self.tell(Instruction::Restart);
    }

    /// Ends the workers gracefully: requests in flight are answered within their grace period. From then on, clients of sockets of
    /// [`Listener::bind`] are refused; those of a socket of a service manager wait, as do those of TCP on other systems than Linux.
    pub fn stop(&self) {
        self.tell(Instruction::Stop);
    }

    /// Kills the workers.
    pub fn kill(&self) {
        self.tell(Instruction::Kill);
    }

    /// Sends a signal to each worker that serves, or has served and is ending.
    pub fn signal(&self, signal: i32) {
        self.tell(Instruction::Signal(signal));
    }

    fn tell(&self, instruction: Instruction) {
        lock(&self.0.board).commands.push(instruction);
        // Fails only if the thread, and with it the poll, is gone.
        let _ = self.0.waker.wake();
    }

    fn wait_for(&self, is_so: impl Fn(&Board) -> bool) -> Option<Result<(), String>> {
        let board = lock(&self.0.board);
        let board = self.0.changed.wait_while(board, |board| !is_so(board));
        let board = board.unwrap_or_else(PoisonError::into_inner);
        board.outcome.clone()
    }

    /// Blocks until all workers serve, or have ended. Returns whether they serve.
    pub fn wait_until_up(&self) -> bool {
        let outcome = self.wait_for(|board| board.state.is_up || board.outcome.is_some());
        outcome.is_none()
    }

    /// Blocks until all workers have ended.
    ///
    /// # Errors
    /// If a worker ended before all served for the first time, the workers could not be watched any more, or the supervisor panicked.
    pub fn wait(&self) -> io::Result<()> {
        let outcome = self.wait_for(|board| board.outcome.is_some());
        outcome.unwrap_or(Ok(())).map_err(io::Error::other)
    }
}

impl Drop for Supervising {
    fn drop(&mut self) {
        self.stop();
        // The error was for whoever has waited.
        let _ = self.wait();
    }
}

/// The supervisor's thread.
struct Tree {
    supervisor: Supervisor,
    plan: Plan,
    poll: Poll,
    /// They remove their files before the folder of these goes.
    workers: BTreeMap<Number, RunningWorker>,
    common: Common,
    /// Workers that could not be started.
    lost: Vec<Number>,
    failure: Option<String>,
    shared: Arc<Shared>,
}

/// What a worker says, and its end, are reported under these tokens.
fn tokens(number: Number) -> (Token, Token) {
    let first = usize::try_from(number).unwrap_or(usize::MAX / 2);
    (Token(first * 2), Token(first * 2 + 1))
}

impl Tree {
    fn run(self) {
        let shared = self.shared.clone();
        // The workers and the folder go before anybody learns of the end.
        let outcome = contain("a supervisor", move || self.supervise());
        let panicked = || Err("the supervisor panicked; its workers were killed".to_owned());
        let mut board = lock(&shared.board);
        board.state = SupervisionState {
            is_up: board.state.is_up,
            is_stopping: true,
            ..SupervisionState::default()
        };
        board.outcome = Some(outcome.unwrap_or_else(panicked));
        shared.changed.notify_all();
    }

    fn supervise(mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(64);
        while !self.plan.is_over() {
            let now = Instant::now();
            self.mend(now);
            self.plan.handle_timeout(now);
            while let Some(order) = self.plan.poll_order() {
                self.follow(order);
            }
            self.show();
            let timeout = self.timeout(Instant::now());
            let waited = self.poll.poll(&mut events, Some(timeout));
            if let Err(error) = waited
                && error.kind() != io::ErrorKind::Interrupted
            {
                // Nothing is heard of the workers any more. They are killed when they are dropped.
                return Err(format!(
                    "the workers cannot be watched, and were killed: {error}"
                ));
            }
            self.obey();
            self.look();
        }
        let failure = self.failure.take().filter(|_| self.plan.has_failed());
        failure.map_or(Ok(()), Err)
    }

    /// Replaces the workers if the folder of their private sockets is gone: other workers pass on no requests of their sessions then.
    fn mend(&mut self, now: Instant) {
        if self.plan.is_stopping() {
            return;
        }
        match self.common.mend() {
            Ok(false) => {}
            Ok(true) => {
                event!(
                    error,
                    "somebody has removed the folder of the private sockets of workers; the workers are replaced"
                );
                self.plan.restart(now);
            }
            Err(error) => {
                event!(error, %error, "somebody has removed the folder of the private sockets of workers, and it cannot be made again");
                drop(error);
            }
        }
    }

    fn timeout(&self, now: Instant) -> Duration {
        let due = self.plan.poll_timeout();
        let due = due.map(|due| due.saturating_duration_since(now));
        let watches = self.workers.values().any(RunningWorker::is_to_be_watched);
        let look = match (self.lost.is_empty(), watches) {
            (false, _) => Duration::ZERO,
            (true, true) => LOOK_EVERY,
            (true, false) => FOLDER_EVERY,
        };
        // An instant passes within the system's next tick of a millisecond.
        due.map_or(look, |due| look.min(due + Duration::from_millis(1)))
    }

    fn follow(&mut self, order: Order) {
        match order {
            Order::Begin(slot, number) => self.start(slot, number),
            Order::Replace(number) => self.with(number, RunningWorker::replace),
            Order::End(number) => self.with(number, |worker| worker.end()),
            Order::Kill(number) => {
                event!(
                    warn,
                    worker = number,
                    "a worker takes too long, and is killed"
                );
                self.with(number, RunningWorker::kill);
            }
        }
    }

    fn with(&mut self, number: Number, act: impl FnOnce(&mut RunningWorker)) {
        if let Some(worker) = self.workers.get_mut(&number) {
            act(worker);
        }
    }

    fn start(&mut self, slot: usize, number: Number) {
        let listeners = &self.supervisor.listeners;
        let Some(listener) = listeners.get(slot % listeners.len()) else {
            return;
        };
        let (says, ends) = tokens(number);
        let registry = (self.poll.registry(), says, ends);
        let command = contain("the command of a worker", &mut self.supervisor.program);
        let command = command.ok_or_else(|| io::Error::other("making its command panicked"));
        let started = command.and_then(|command| {
            RunningWorker::start(command, number, &self.common, listener, registry)
        });
        match started {
            Ok(worker) => {
                event!(info, worker = number, pid = worker.id(), "a worker starts");
                self.workers.insert(number, worker);
            }
            Err(error) => {
                event!(error, worker = number, %error, "a worker cannot be started");
                self.failure = Some(format!("worker {number} cannot be started: {error}"));
                self.lost.push(number);
            }
        }
    }

    /// Does what the handle asks for.
    fn obey(&mut self) {
        let commands = std::mem::take(&mut lock(&self.shared.board).commands);
        let now = Instant::now();
        for command in commands {
            if matches!(command, Instruction::Stop | Instruction::Kill) {
                // Clients do not wait for a worker that never comes.
                self.supervisor.listeners.iter().for_each(Listener::refuse);
            }
            match command {
                Instruction::Restart => self.plan.restart(now),
                Instruction::Stop => self.plan.stop(now),
                Instruction::Kill => self.plan.kill(now),
                Instruction::Signal(signal) => {
                    self.workers.values().for_each(|one| one.signal(signal));
                }
            }
        }
    }

    /// Looks at what the workers say, and which have ended.
    fn look(&mut self) {
        let now = Instant::now();
        for number in std::mem::take(&mut self.lost) {
            self.plan.ended(number, now);
        }
        let mut ended = Vec::new();
        for (number, worker) in &mut self.workers {
            if worker.hear() {
                event!(info, worker = *number, pid = worker.id(), "a worker serves");
                self.plan.ready(*number, now);
            }
            if let Some(status) = worker.take_exit() {
                let status = status.map_or_else(|error| error.to_string(), |it| it.to_string());
                ended.push((*number, worker.id(), status));
            }
        }
        for (number, pid, status) in ended {
            self.workers.remove(&number);
            let loss = self.plan.ended(number, now);
            report(number, pid, &status, loss);
            if loss == Loss::Fatal {
                self.failure = Some(format!("worker {number} could not begin: {status}"));
            }
        }
    }

    /// Shows the state to the handle.
    fn show(&self) {
        let state = SupervisionState {
            serving: self.plan.serving(),
            is_up: self.plan.is_up(),
            is_stopping: self.plan.is_stopping(),
            processes: self.workers.values().map(RunningWorker::id).collect(),
        };
        let mut board = lock(&self.shared.board);
        if board.state != state {
            board.state = state;
            self.shared.changed.notify_all();
        }
    }
}

#[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
fn report(worker: Number, pid: u32, status: &str, loss: Loss) {
    match loss {
        Loss::Expected => event!(info, worker, pid, status, "a worker has ended"),
        Loss::Replaced(after) => {
            event!(
                error,
                worker,
                pid,
                status,
                ?after,
                "a worker has ended; another starts"
            );
        }
        Loss::Kept => {
            event!(
                error,
                worker,
                pid,
                status,
                "a new worker could not begin; the others serve on"
            );
        }
        Loss::Fatal => event!(
            error,
            worker,
            pid,
            status,
            "a worker could not begin; all end"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervising(program: impl FnMut() -> Command + Send + 'static) -> io::Result<()> {
        let address = "tcp:127.0.0.1:0".parse().unwrap();
        let listeners = vec![Listener::bind(&address).unwrap()];
        let options = SupervisorOptions::default();
        Supervisor::new(program, listeners, options).start()?.wait()
    }

    #[test]
    fn a_command_that_cannot_be_made_ends_the_tree_with_an_error() {
        let error = supervising(|| panic!("on purpose")).unwrap_err();
        assert!(
            error.to_string().contains("making its command panicked"),
            "{error}"
        );
    }

    #[test]
    fn a_supervisor_that_panics_ends_with_an_error() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }
        let bomb = Bomb;
        let error = supervising(move || {
            let _ = &bomb;
            Command::new("/none")
        });
        let error = error.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("panicked; its workers were killed"),
            "{error}"
        );
    }
}
