//! Logins of clients. What a login asks of the program crosses to the Python package, each question with a number.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::io::login::{
    AssertionRequest, Authorization, AuthorizationPage, CredentialStore, DeviceCode, Hooked,
    KeyLock, LoginHooks, MemoryStore, Stored, WithBrowser,
};
use mcpbolt::settings::{LoginSettings, Seconds};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::settings::read;

/// Asks for the lock of a key. The number of the question identifies the lock until its release.
const LOCK: &str = "lock";

type Reply = Result<Option<String>, String>;

/// Logins, which several clients may share.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Login {
    authorization: Authorization,
    program: Arc<Program>,
}

#[pymethods]
impl Login {
    /// `has` names what the program has functions for. `ask` is called on any thread with a number, a kind and JSON.
    #[new]
    fn new(
        settings: &str,
        redirect_uri: Option<String>,
        has: Vec<String>,
        ask: Py<PyAny>,
    ) -> PyResult<Self> {
        let settings: LoginSettings<Seconds> = read(settings)?;
        let has = |name: &str| has.iter().any(|own| own == name);
        let program = Arc::new(Program {
            ask,
            open: Mutex::default(),
        });
        let asked = program.clone();
        let browser = match has("authorize") {
            true => WithBrowser::opened_by(move |page: AuthorizationPage| {
                let program = asked.clone();
                let params = json!({"url": page.url, "redirect_uri": page.redirect_uri, "state": page.state});
                async move {
                    program
                        .ask("authorize", params)
                        .await
                        .map(|(_, answer)| answer)
                }
            }),
            false => WithBrowser::default(),
        };
        let mut authorization = settings.authorization()?;
        if has("store") {
            authorization = authorization.with_store(ProgramStore {
                program: program.clone(),
                turns: (!has(LOCK)).then(MemoryStore::default),
            });
        }
        let hooks = ProgramHooks {
            program: program.clone(),
            browser,
            redirect_uri,
        };
        Ok(Self {
            authorization: authorization.with_hooks(hooks),
            program,
        })
    }

    /// Answers a question: with a text or nothing, or with the reason why there is no answer. Returns whether anybody
    /// waited for the answer.
    #[pyo3(signature = (number, answer, refusal=None))]
    fn answer(&self, number: u64, answer: Option<String>, refusal: Option<String>) -> bool {
        let sender = self.program.open().senders.remove(&number);
        sender.is_some_and(|sender| sender.send(refusal.map_or(Ok(answer), Err)).is_ok())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program.ask)
    }
}

impl Login {
    /// The logins, for the options of a client.
    pub fn authorization(&self) -> Authorization {
        self.authorization.clone()
    }
}

/// The questions in progress. A login has one at a time.
#[derive(Default)]
struct Open {
    last: u64,
    senders: HashMap<u64, oneshot::Sender<Reply>>,
}

/// The program, to ask.
struct Program {
    ask: Py<PyAny>,
    open: Mutex<Open>,
}

impl Program {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, number: u64, kind: &str, params: &Value) {
        // An interpreter that shuts down answers nothing.
        Python::try_attach(|py| {
            if let Err(error) = self.ask.call1(py, (number, kind, params.to_string())) {
                error.write_unraisable(py, None);
            }
        });
    }

    /// Asks, and waits for the answer. Returns the question's number, too. Dropping the future withdraws the question.
    async fn ask(
        self: &Arc<Self>,
        kind: &'static str,
        params: Value,
    ) -> Result<(u64, Option<String>), String> {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut open = self.open();
            open.last += 1;
            let number = open.last;
            open.senders.insert(number, sender);
            number
        };
        let mut question = Question {
            number,
            kind,
            answer,
            program: self.clone(),
        };
        self.tell(number, kind, &params);
        let answer = (&mut question.answer).await;
        let answer = answer.unwrap_or_else(|_| Err("the program gave no answer".into()));
        answer.map(|answer| (number, answer))
    }
}

/// A question that is withdrawn when it is dropped.
struct Question {
    number: u64,
    kind: &'static str,
    answer: oneshot::Receiver<Reply>,
    program: Arc<Program>,
}

impl Drop for Question {
    fn drop(&mut self) {
        let withdrawn = { self.program.open().senders.remove(&self.number) };
        if withdrawn.is_some() {
            // What a store has begun, it ends.
            if !matches!(self.kind, "load" | "save" | "remove") {
                self.program.tell(self.number, "withdrawn", &Value::Null);
            }
        } else if self.kind == LOCK && matches!(self.answer.try_recv(), Ok(Ok(_))) {
            // The lock came, and nobody has taken it.
            self.program.tell(self.number, "release", &Value::Null);
        }
    }
}

struct ProgramHooks {
    program: Arc<Program>,
    browser: WithBrowser,
    redirect_uri: Option<String>,
}

impl LoginHooks for ProgramHooks {
    fn redirect_uri(&self, known: Option<String>) -> Hooked<'_, String> {
        match &self.redirect_uri {
            Some(own) => Box::pin(std::future::ready(Ok(own.clone()))),
            None => self.browser.redirect_uri(known),
        }
    }

    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        if self.redirect_uri.is_none() {
            return self.browser.authorize(page);
        }
        Box::pin(async move {
            let params =
                json!({"url": page.url, "redirect_uri": page.redirect_uri, "state": page.state});
            let (_, answer) = self.program.ask("authorize", params).await?;
            answer.ok_or_else(|| {
                "on_authorize returned no address, which is needed with redirect_uri".into()
            })
        })
    }

    fn show_device_code(&self, code: DeviceCode) -> Hooked<'_, ()> {
        Box::pin(async move {
            let params = json!({
                "user_code": code.user_code, "verification_uri": code.verification_uri,
                "verification_uri_complete": code.verification_uri_complete,
                "expires_in": code.expires_in.as_secs(),
            });
            self.program.ask("device_code", params).await.map(drop)
        })
    }

    fn assertion(&self, request: AssertionRequest) -> Hooked<'_, String> {
        Box::pin(async move {
            let params = json!({"issuer": request.issuer, "resource": request.resource});
            let (_, answer) = self.program.ask("assertion", params).await?;
            answer.ok_or_else(|| "assertion returned nothing".into())
        })
    }
}

/// Keeps credentials with the program.
struct ProgramStore {
    program: Arc<Program>,
    /// Locks within this process, if the program has none.
    turns: Option<MemoryStore>,
}

impl ProgramStore {
    fn ask<'a>(&'a self, kind: &'static str, params: Value) -> Stored<'a, Option<String>> {
        Box::pin(async move {
            let answer = self.program.ask(kind, params).await;
            answer.map(|(_, answer)| answer).map_err(io::Error::other)
        })
    }
}

impl CredentialStore for ProgramStore {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.ask("load", json!({ "key": key }))
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        let saved = self.ask("save", json!({"key": key, "document": document}));
        Box::pin(async { saved.await.map(drop) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        let removed = self.ask("remove", json!({ "key": key }));
        Box::pin(async { removed.await.map(drop) })
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        if let Some(turns) = &self.turns {
            return turns.lock(key);
        }
        Box::pin(async move {
            let locked = self.program.ask(LOCK, json!({ "key": key })).await;
            let (number, _) = locked.map_err(io::Error::other)?;
            Ok(KeyLock::new(Release(self.program.clone(), number)))
        })
    }
}

/// Releases a lock of the program when it is dropped.
struct Release(Arc<Program>, u64);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.tell(self.1, "release", &Value::Null);
    }
}
