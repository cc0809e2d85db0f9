//! Logins of clients. What a login asks of the program crosses to JavaScript, each question with a number.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use mcpbolt::io::login::{
    AssertionRequest, Authorization, AuthorizationPage, CredentialStore, DeviceCode, Hooked,
    KeyLock, LoginHooks, MemoryStore, Stored, WithBrowser,
};
use mcpbolt::settings::{LoginSettings, Milliseconds};
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::error::{Result, misuse};
use crate::json::read;

/// The program's answer: a text, nothing, or the reason why there is none.
type Reply = std::result::Result<Option<String>, String>;
type Tell = ThreadsafeFunction<String, (), String, Status, false, true, 0>;

/// Asks for the lock of a key. The number of the question identifies the lock until `{release}`.
const LOCK: &str = "lock";

/// Logins, which several clients may share.
#[napi]
pub struct Login(Authorization);

#[napi]
impl Login {
    /// Describes logins. `has` names what the program has functions for, as `face/login.ts` does. `ask` is called
    /// with JSON, `{number, what, params}` for a question, `{number}` if nobody waits for its answer any more, and
    /// `{release}` to release a lock; it does not keep the process alive.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        settings: String,
        redirect_uri: Option<String>,
        has: Vec<String>,
        replies: &LoginReplies,
        ask: Function<'_, String, ()>,
    ) -> Result<Self> {
        let settings: LoginSettings<Milliseconds> = read(&settings)?;
        let has = |name: &str| has.iter().any(|own| own == name);
        let tell = ask.build_threadsafe_function::<String>().weak::<true>();
        let program = Arc::new(Program {
            tell: tell.build().map_err(misuse)?,
            open: replies.0.clone(),
        });
        let asked = program.clone();
        let browser = match has("onAuthorize") {
            true => WithBrowser::opened_by(move |page| asked.page(page)),
            false => WithBrowser::default(),
        };
        let mut authorization = settings.authorization().map_err(misuse)?;
        if has("store") {
            let turns = (!has(LOCK)).then(MemoryStore::default);
            let program = program.clone();
            authorization = authorization.with_store(ProgramStore { program, turns });
        }
        Ok(Self(authorization.with_hooks(ProgramHooks {
            program,
            browser,
            redirect_uri,
        })))
    }
}

impl Login {
    /// The logins, for the options of a client.
    pub fn authorization(&self) -> Authorization {
        self.0.clone()
    }
}

/// The questions that JavaScript has not yet answered. It refers to no function of JavaScript, so that functions
/// may refer to it.
#[napi]
pub struct LoginReplies(Arc<Open>);

#[napi]
impl LoginReplies {
    #[napi(constructor, catch_unwind)]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Answers a question: with a text, with nothing, or with why there is no answer. Returns whether anybody
    /// waited for the answer.
    #[napi(catch_unwind)]
    pub fn answer(&self, number: u32, text: Option<String>, failure: Option<String>) -> bool {
        let sender = self.0.lock().replies.remove(&number);
        let reply = failure.map_or(Ok(text), Err);
        sender.is_some_and(|sender| sender.send(reply).is_ok())
    }
}

/// The questions in progress.
#[derive(Default)]
struct Open(Mutex<Questions>);

#[derive(Default)]
struct Questions {
    last: u32,
    replies: HashMap<u32, oneshot::Sender<Reply>>,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, Questions> {
        // Every critical section leaves the map whole, also when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program, to ask.
struct Program {
    tell: Tell,
    open: Arc<Open>,
}

impl Program {
    /// Asks. Dropping the future withdraws the question.
    fn ask(
        self: &Arc<Self>,
        what: &'static str,
        params: Value,
    ) -> impl Future<Output = Reply> + use<> {
        let this = self.clone();
        async move { this.begin(what, params).reply().await }
    }

    fn begin(self: &Arc<Self>, what: &'static str, params: Value) -> Question {
        let (sender, reply) = oneshot::channel();
        let number = {
            let mut open = self.open.lock();
            open.last = open.last.wrapping_add(1);
            let number = open.last;
            open.replies.insert(number, sender);
            number
        };
        let json = json!({ "number": number, "what": what, "params": params });
        if !self.say(&json) {
            // Without JavaScript's event loop, there is no answer.
            self.open.lock().replies.remove(&number);
        }
        Question {
            number,
            is_lock: what == LOCK,
            reply,
            program: self.clone(),
        }
    }

    fn say(&self, json: &Value) -> bool {
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        self.tell.call(json.to_string(), mode) == Status::Ok
    }

    /// Has the user open a page; the text is the address with which the browser came back.
    fn page(self: &Arc<Self>, page: AuthorizationPage) -> impl Future<Output = Reply> + use<> {
        let params =
            json!({ "url": page.url, "redirectUri": page.redirect_uri, "state": page.state });
        self.ask("onAuthorize", params)
    }
}

/// A question that is withdrawn when it is dropped.
struct Question {
    number: u32,
    is_lock: bool,
    reply: oneshot::Receiver<Reply>,
    program: Arc<Program>,
}

impl Question {
    async fn reply(mut self) -> Reply {
        let reply = (&mut self.reply).await;
        reply.unwrap_or_else(|_| Err("the program has ended".into()))
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let withdrawn = { self.program.open.lock().replies.remove(&self.number) };
        if withdrawn.is_some() {
            self.program.say(&json!({ "number": self.number }));
        } else if self.is_lock && matches!(self.reply.try_recv(), Ok(Ok(_))) {
            self.program.say(&json!({ "release": self.number }));
        }
    }
}

/// The program's functions, and a browser that comes back to this process unless the program has an address.
struct ProgramHooks {
    program: Arc<Program>,
    browser: WithBrowser,
    redirect_uri: Option<String>,
}

impl LoginHooks for ProgramHooks {
    fn redirect_uri(&self, known: Option<String>) -> Hooked<'_, String> {
        match self.redirect_uri.clone() {
            Some(own) => Box::pin(async { Ok(own) }),
            None => self.browser.redirect_uri(known),
        }
    }

    fn authorize(&self, page: AuthorizationPage) -> Hooked<'_, String> {
        if self.redirect_uri.is_none() {
            return self.browser.authorize(page);
        }
        let asked = self.program.page(page);
        Box::pin(async {
            let address = asked.await?;
            address.ok_or_else(|| {
                "onAuthorize returned nothing; with a redirectUri, return the address with which the browser came back".into()
            })
        })
    }

    fn show_device_code(&self, code: DeviceCode) -> Hooked<'_, ()> {
        let params = json!({
            "userCode": code.user_code,
            "verificationUri": code.verification_uri,
            "verificationUriComplete": code.verification_uri_complete,
            "expiresIn": code.expires_in.as_millis() as u64,
        });
        let asked = self.program.ask("onDeviceCode", params);
        Box::pin(async { asked.await.map(drop) })
    }

    fn assertion(&self, request: AssertionRequest) -> Hooked<'_, String> {
        let params = json!({ "issuer": request.issuer, "resource": request.resource });
        let asked = self.program.ask("assertion", params);
        Box::pin(async {
            let assertion = asked.await?;
            assertion.ok_or_else(|| "assertion returned nothing; return a signed token".into())
        })
    }
}

/// The program's own store.
struct ProgramStore {
    program: Arc<Program>,
    /// The locks of a store without locks, within this process.
    turns: Option<MemoryStore>,
}

impl ProgramStore {
    fn ask(&self, what: &'static str, params: Value) -> Stored<'_, Option<String>> {
        let asked = self.program.ask(what, params);
        Box::pin(async { asked.await.map_err(io::Error::other) })
    }
}

impl CredentialStore for ProgramStore {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.ask("load", json!({ "key": key }))
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        let asked = self.ask("save", json!({ "key": key, "document": document }));
        Box::pin(async { asked.await.map(drop) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        let asked = self.ask("remove", json!({ "key": key }));
        Box::pin(async { asked.await.map(drop) })
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        if let Some(turns) = &self.turns {
            return turns.lock(key);
        }
        let program = self.program.clone();
        Box::pin(async move {
            let question = program.begin(LOCK, json!({ "key": key }));
            let number = question.number;
            question.reply().await.map_err(io::Error::other)?;
            Ok(KeyLock::new(Release { number, program }))
        })
    }
}

/// Releases a lock of the program's store when it is dropped.
struct Release {
    number: u32,
    program: Arc<Program>,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.program.say(&json!({ "release": self.number }));
    }
}
