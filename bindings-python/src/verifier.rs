//! The program's verifier of credentials: a plain function runs on a worker thread, a coroutine function as a task of the
//! event loop. The engine awaits the verdict.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use mcpbolt::connection::{Principal, Rejection};
use mcpbolt::policy::{Credentials, Policy};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tokio::sync::oneshot;

use crate::hub::{Event, Hub, Notified};
use crate::panics::caught;
use crate::worker::{self, Duty};
use crate::{failures, workers};

type Verdict = Result<Principal, Rejection>;

/// The verdict when the function gives none: it raises, returns something else, or its server ends.
const FAILED: Rejection =
    Rejection::Unavailable(Cow::Borrowed("the verification of the credentials failed"));
/// The verdict on credentials that the program does not accept.
const REFUSED: Rejection = Rejection::Refused(Cow::Borrowed("the credentials are not accepted"));

/// The Python `Verifying`.
#[derive(FromPyObject)]
pub struct Verifying {
    function: Py<PyAny>,
    is_async: bool,
}

/// The verifier of a server.
#[derive(Debug)]
pub struct Verifier {
    function: Py<PyAny>,
    pub is_async: bool,
    failed: Py<PyAny>,
    /// The running servers of the catalog, on whose threads the function runs.
    hubs: Mutex<Vec<Weak<Hub>>>,
}

impl Verifier {
    pub fn new(verifying: Verifying, failed: Py<PyAny>) -> Arc<Self> {
        let Verifying { function, is_async } = verifying;
        Arc::new(Self {
            function,
            is_async,
            failed,
            hubs: Mutex::default(),
        })
    }

    /// Has the policy verify clients by this verifier.
    pub fn of(self: &Arc<Self>, policy: Policy) -> Policy {
        let this = self.clone();
        policy.async_verifier(move |credentials| this.begin(credentials))
    }

    /// Runs the function on the threads of this server, too.
    pub fn serves(&self, hub: &Arc<Hub>) {
        let mut hubs = lock(&self.hubs);
        hubs.retain(|hub| hub.strong_count() > 0);
        hubs.push(Arc::downgrade(hub));
    }

    /// Shows the garbage collector the function, unless a verification holds it, too.
    pub fn visit(this: &Arc<Self>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match Arc::strong_count(this) {
            // The catalog and the policy.
            2 => {
                visit.call(&this.function)?;
                visit.call(&this.failed)
            }
            _ => Ok(()),
        }
    }

    fn hub(&self) -> Option<Arc<Hub>> {
        let hubs = lock(&self.hubs);
        let mut live = hubs.iter().rev().filter_map(Weak::upgrade);
        live.find(|hub| !hub.is_left())
    }

    fn begin(self: &Arc<Self>, credentials: &Credentials<'_>) -> Verification {
        let (sender, verdict) = oneshot::channel();
        let state = Arc::new(Mutex::new(State::Begun));
        let hub = self.hub();
        if let Some(hub) = &hub {
            let question = Arc::new(Question {
                verifier: self.clone(),
                hub: Arc::downgrade(hub),
                brought: Brought::of(credentials),
                state: state.clone(),
                sender: Mutex::new(Some(sender)),
            });
            match self.is_async {
                true => hub.inbox.push(Event::Notified(Arc::new(Asked(question)))),
                false => {
                    let invite = hub.crew.get().map(|crew| || worker::invite(hub, &**crew));
                    let duty = [Duty::Verify(question)];
                    let tag = workers::VERIFIERS;
                    hub.workers.push(tag, duty, invite, || worker::spawn(hub));
                }
            }
        }
        Verification {
            verdict,
            state,
            hub: hub.as_ref().map(Arc::downgrade),
        }
    }
}

/// The credentials, owned: the kind, the secret, the certificate and the user.
#[derive(Debug)]
struct Brought(&'static str, String, Vec<u8>, String);

impl Brought {
    fn of(credentials: &Credentials<'_>) -> Self {
        match credentials {
            Credentials::Bearer(token) => Self::secret("bearer", token),
            Credentials::ApiKey(key) => Self::secret("api_key", key),
            Credentials::Basic { user, password } => {
                let secret = Self::secret("basic", password);
                Self(secret.0, secret.1, secret.2, (*user).into())
            }
            Credentials::Certificate(der) => {
                Self("certificate", String::new(), der.to_vec(), String::new())
            }
            _ => Self::secret("none", ""),
        }
    }

    fn secret(kind: &'static str, secret: &str) -> Self {
        Self(kind, secret.into(), Vec::new(), String::new())
    }

    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = PyDict::new(py);
        let Self(kind, secret, certificate, user) = self;
        arguments.set_item(intern!(py, "user"), user)?;
        arguments.set_item(intern!(py, "kind"), kind)?;
        arguments.set_item(intern!(py, "secret"), secret)?;
        arguments.set_item(intern!(py, "certificate"), PyBytes::new(py, certificate))?;
        Ok(arguments)
    }
}

/// How far a verification is.
#[derive(Debug)]
enum State {
    /// The function has not been called, or its task is not known yet.
    Begun,
    /// A task of the event loop runs.
    Runs(Py<PyAny>),
    /// There is a verdict, or nobody waits for one.
    Over,
}

/// The verdict to come. Dropping it cancels the task.
struct Verification {
    verdict: oneshot::Receiver<Verdict>,
    state: Arc<Mutex<State>>,
    hub: Option<Weak<Hub>>,
}

impl Future for Verification {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Verdict> {
        // No verdict comes if the server ends meanwhile.
        let verdict = Pin::new(&mut self.verdict).poll(cx);
        verdict.map(|verdict| verdict.unwrap_or(Err(FAILED)))
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Over);
        let hub = self.hub.as_ref().and_then(Weak::upgrade);
        if let (State::Runs(task), Some(hub)) = (before, hub) {
            hub.inbox.push(Event::Notified(Arc::new(Abandoned(task))));
        }
    }
}

/// The task of a verification that nobody waits for.
#[derive(Debug)]
struct Abandoned(Py<PyAny>);

impl Notified for Abandoned {
    fn notified(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call_method0(py, intern!(py, "cancel")).map(drop)
    }
}

/// Credentials for the program to verify.
pub struct Question {
    verifier: Arc<Verifier>,
    hub: Weak<Hub>,
    brought: Brought,
    state: Arc<Mutex<State>>,
    sender: Mutex<Option<oneshot::Sender<Verdict>>>,
}

impl Question {
    /// Calls the plain function on this worker thread.
    pub fn run(&self, py: Python<'_>) {
        if self.is_over() {
            return;
        }
        let verdict = caught(|| self.called(py)).unwrap_or_else(|panic| Err(panic.exception(py)));
        self.end(py, verdict);
    }

    fn called<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let hub = self.hub()?;
        let context = hub
            .interpreter
            .context
            .bind(py)
            .call_method0(intern!(py, "copy"))?;
        let arguments = self.brought.arguments(py)?;
        let function = (self.verifier.function.bind(py),);
        context.call_method(intern!(py, "run"), function, Some(&arguments))
    }

    fn hub(&self) -> PyResult<Arc<Hub>> {
        let ended = || PyRuntimeError::new_err("the server has ended");
        self.hub.upgrade().ok_or_else(ended)
    }

    /// Starts the task that awaits the coroutine function.
    fn start(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let hub = self.hub()?;
        let spawn = hub.interpreter.spawn.as_ref();
        let spawn = spawn.ok_or_else(|| PyRuntimeError::new_err("there is no event loop"))?;
        let job = Bound::new(py, VerifierJob(self.clone()))?;
        let function = self.verifier.function.bind(py);
        let task = spawn.call1(py, (job, function, self.brought.arguments(py)?))?;
        let mut state = lock(&self.state);
        match &*state {
            // A task that never waits has ended.
            State::Begun if !task.is_none(py) => *state = State::Runs(task),
            // Its request has ended meanwhile.
            State::Over if !task.is_none(py) => {
                drop(state);
                Abandoned(task).notified(py)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        matches!(*lock(&self.state), State::Over)
    }

    /// Gives the verdict of the function, unless nobody waits for it. An exception is logged, and no verdict.
    fn end(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Over);
        let sender = lock(&self.sender).take();
        let (false, Some(sender)) = (matches!(before, State::Over), sender) else {
            return;
        };
        let verdict = outcome.and_then(|said| said.extract::<Option<Granted>>());
        let verdict = verdict.map(|said| said.map(principal).ok_or(REFUSED));
        let verdict = verdict.unwrap_or_else(|error| {
            failures::report(
                py,
                &self.verifier.failed,
                error,
                "the verifier failed",
                None,
            );
            Err(FAILED)
        });
        // Polls the request, perhaps, which must not wait for the interpreter.
        py.detach(|| drop(sender.send(verdict)));
    }
}

/// The verdict of a verifier: the name, the scopes, the expiry, and the key and the certificate that the credentials are
/// bound to.
type Granted = (
    String,
    Vec<String>,
    Option<u64>,
    Option<String>,
    Option<String>,
);

fn principal((name, scopes, expires_at, key, certificate): Granted) -> Principal {
    let mut principal = Principal::new(name).with_scopes(scopes);
    if let Some(end) = expires_at {
        principal = principal.with_expiry(end);
    }
    if let Some(key) = key {
        principal = principal.bound_to_key(key);
    }
    if let Some(certificate) = certificate {
        principal = principal.bound_to_certificate(certificate);
    }
    principal
}

/// A question to a coroutine function.
#[derive(Debug)]
struct Asked(Arc<Question>);

impl Notified for Asked {
    fn notified(&self, py: Python<'_>) -> PyResult<()> {
        if !self.0.is_over()
            && let Err(error) = self.0.start(py)
        {
            self.0.end(py, Err(error));
        }
        Ok(())
    }
}

/// By which a task of the event loop gives its verdict, as by a [`Job`](crate::job::Job).
#[pyclass(frozen, module = "mcpbolt._core")]
struct VerifierJob(Arc<Question>);

#[pymethods]
impl VerifierJob {
    fn settle(&self, py: Python<'_>, value: Bound<'_, PyAny>) {
        self.0.end(py, Ok(value));
    }

    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) {
        self.0.end(py, Err(PyErr::from_value(error)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").finish_non_exhaustive()
    }
}
