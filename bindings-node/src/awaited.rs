//! AwaitedQuestions of the engine to a function of JavaScript, whose answers are awaited.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hashbrown::HashMap;
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use tokio::sync::oneshot;

use crate::error::{Result, internal};

type Tell = ThreadsafeFunction<String, (), String, Status, false, true, 0>;

/// Passes questions to JavaScript as JSON with a `number`, under which JavaScript [`answer`](Self::answer)s; `{number}` alone says
/// that nobody waits for that answer any more. The caller bounds how many there are.
pub struct AwaitedQuestions<A> {
    tell: Tell,
    waiting: Mutex<Waiting<A>>,
}

struct Waiting<A> {
    last: u32,
    answers: HashMap<u32, oneshot::Sender<A>>,
}

impl<A> AwaitedQuestions<A> {
    /// AwaitedQuestions to `ask`, which does not keep the process alive.
    pub fn new(ask: &Function<'_, String, ()>) -> Result<Arc<Self>> {
        let tell = ask.build_threadsafe_function::<String>().weak::<true>();
        let waiting = Waiting {
            last: 0,
            answers: HashMap::new(),
        };
        Ok(Arc::new(Self {
            tell: tell.build().map_err(internal)?,
            waiting: Mutex::new(waiting),
        }))
    }

    /// Asks. `question` are JSON members without braces.
    pub fn ask(self: &Arc<Self>, question: &str) -> Awaited<A> {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut waiting = self.lock();
            waiting.last = waiting.last.wrapping_add(1);
            let number = waiting.last;
            waiting.answers.insert(number, sender);
            number
        };
        self.say(number, format!("{{\"number\":{number},{question}}}"));
        Awaited {
            answer,
            number,
            questions: self.clone(),
        }
    }

    /// Without JavaScript's event loop, there is no answer.
    fn say(&self, number: u32, json: String) {
        let status = self
            .tell
            .call(json, ThreadsafeFunctionCallMode::NonBlocking);
        if status != Status::Ok {
            self.lock().answers.remove(&number);
        }
    }

    /// Gives an answer, unless nobody waits for it.
    pub fn answer(&self, number: u32, answer: A) {
        let sender = self.lock().answers.remove(&number);
        if let Some(sender) = sender {
            drop(sender.send(answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<A>> {
        // Every critical section leaves the map whole, also when it panics.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to come; `None` if there will be none. Dropping it tells JavaScript that nobody waits.
pub struct Awaited<A> {
    answer: oneshot::Receiver<A>,
    number: u32,
    questions: Arc<AwaitedQuestions<A>>,
}

impl<A> Future for Awaited<A> {
    type Output = Option<A>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<A>> {
        Pin::new(&mut self.answer)
            .poll(cx)
            .map(|answer| answer.ok())
    }
}

impl<A> Drop for Awaited<A> {
    fn drop(&mut self) {
        let number = self.number;
        let abandoned = self.questions.lock().answers.remove(&number);
        if abandoned.is_some() {
            let json = format!("{{\"number\":{number}}}");
            self.questions.say(number, json);
        }
    }
}
