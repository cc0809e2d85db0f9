//! Connects a client to a server at an address.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::correlate::CancelToken;
use mcpbolt::error::RequestError;
use mcpbolt::io::Address;
use mcpbolt::settings::{ConnectSettings, Seconds};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::asked::Asked;
use crate::callbacks::Callbacks;
use crate::chain::front::Front;
use crate::client::Link;
use crate::client_events::ClientEvent;
use crate::client_setup::{Described, Setup};
use crate::exceptions::exception;
use crate::inbox::Inbox;
use crate::login::Login;
use crate::panics::{self, caught};
use crate::settings::{read, wrong};
use crate::signal::{Signal, Wake};

/// The words of the command in a `stdio:` address; `None` for any other address.
#[pyfunction]
pub fn command_of(address: &str) -> PyResult<Option<Vec<String>>> {
    Ok(match address.parse().map_err(wrong)? {
        Address::Stdio(words) if words.is_empty() => {
            let why = "a client names the command of its server, as in stdio:COMMAND ARGS";
            return Err(wrong(why));
        }
        Address::Stdio(words) => Some(words),
        _ => None,
    })
}

/// A client that is connecting. Dropping it cancels the attempt and closes what there is by then.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Connecting {
    state: Arc<State>,
    ends: Mutex<Option<Ends>>,
    given_up: CancelToken,
}

/// The Python package's part of the connection.
type Ends = (Arc<Inbox<ClientEvent>>, Arc<Asked>, Callbacks);

struct State {
    signal: Arc<Signal>,
    outcome: Mutex<Option<io::Result<Client>>>,
}

/// Starts to connect to a server at an address. `options` is JSON; `login` is for servers on HTTP.
#[pyfunction]
#[pyo3(signature = (setup, address, options, login=None))]
pub fn connect_to(
    setup: Setup,
    address: &str,
    options: &str,
    login: Option<&Login>,
) -> PyResult<Connecting> {
    let address: Address = address.parse().map_err(wrong)?;
    let mut options = read::<ConnectSettings<Seconds>>(options)?.connect()?;
    options.http.authorization = login.map(Login::authorization);
    begin(setup, async move |builder| {
        builder.open(&address, options).await
    })
}

/// Starts to connect to a chain of this process.
#[pyfunction]
pub fn connect_front(setup: Setup, front: Py<Front>) -> PyResult<Connecting> {
    begin(setup, async move |builder| {
        builder.connect_chain(&front.get().own).await
    })
}

fn begin<F>(setup: Setup, open: F) -> PyResult<Connecting>
where
    F: AsyncFnOnce(ClientBuilder) -> io::Result<Client> + Send + 'static,
{
    let Described {
        builder,
        inbox,
        asked,
        callbacks,
    } = setup.describe()?;
    let state = Arc::new(State {
        signal: Arc::new(Signal::new()?),
        outcome: Mutex::default(),
    });
    let given_up = CancelToken::new();
    let connecting = Connecting {
        state: state.clone(),
        ends: Mutex::new(Some((inbox, asked, callbacks))),
        given_up: given_up.clone(),
    };
    std::thread::Builder::new()
        .name("mcpbolt-open".into())
        .spawn(move || {
            let mut opening = pin!(open(builder));
            let mut given_up = given_up.cancelled();
            let outcome = caught(|| {
                panics::point("open");
                block_on(poll_fn(|cx| {
                    match Pin::new(&mut given_up).poll(cx).is_ready() {
                        true => Poll::Ready(None),
                        false => opening.as_mut().poll(cx).map(Some),
                    }
                }))
            });
            let outcome =
                outcome.unwrap_or_else(|panic| Some(Err(io::Error::other(panic.to_string()))));
            *lock(&state.outcome) = outcome;
            state.signal.raise();
        })?;
    Ok(connecting)
}

#[pymethods]
impl Connecting {
    /// The wakeup that is raised when the attempt has succeeded or failed.
    fn wake(&self) -> Wake {
        Wake(self.state.signal.clone())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.visit(&visit)
    }

    fn __clear__(&self) {
        drop(lock(&self.ends).take());
    }

    /// Ends the attempt, and closes what there is by then.
    fn cancel(&self) {
        self.given_up.cancel(None);
    }

    /// The client's side of the connection; raises the error of a failed attempt.
    fn link(&self, py: Python<'_>) -> PyResult<Link> {
        let outcome = lock(&self.state.outcome).take();
        let ends = lock(&self.ends).take();
        let (Some(outcome), Some((inbox, asked, callbacks))) = (outcome, ends) else {
            return Err(wrong("it is on its way"));
        };
        match outcome {
            Ok(client) => Ok(Link::new(client, inbox, asked, callbacks)),
            Err(error) => Err(told(py, error)),
        }
    }
}

impl Connecting {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.ends.try_lock().as_deref() {
            Ok(Some((_, _, callbacks))) => callbacks.visit(visit),
            _ => Ok(()),
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.given_up.cancel(None);
    }
}

/// The exception for a failed attempt: one of the package's, if the engine gave the reason.
fn told(py: Python<'_>, error: io::Error) -> PyErr {
    let known = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<RequestError>());
    match known {
        Some(known) => exception(py, known),
        None => error.into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
