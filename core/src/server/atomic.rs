//! Tools that are undone where they fail (R-ACT-18).

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::FromArguments;
use super::builder::Builder;
use super::context::Context;
use super::definition::Tool;
use super::output::{IntoToolResult, Output};

/// The steps that a call has taken, each with how it is taken back. See
/// [`Builder::atomic_tool`].
#[derive(Clone, Default)]
pub struct Steps(Arc<Mutex<State>>);

enum State {
    /// The call is under way.
    Open(Vec<Undo>),
    /// It has come to a good end.
    Kept,
    /// It has not.
    Undone,
}

type Undo = Box<dyn FnOnce() + Send>;

impl Default for State {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Steps {
    /// Notes how a step that was just taken is taken back; at once, if the call has failed
    /// meanwhile.
    pub fn taken(&self, undo: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Open(steps) => steps.push(Box::new(undo)),
            State::Kept => {}
            State::Undone => {
                drop(state);
                undo();
            }
        }
    }

    fn end(&self, state: State) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let undone = matches!(state, State::Undone);
        let State::Open(steps) = std::mem::replace(&mut *own, state) else {
            return;
        };
        drop(own);
        if undone {
            for undo in steps.into_iter().rev() {
                // One that fails leaves the others their turn.
                let _ = catch_unwind(AssertUnwindSafe(undo));
            }
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps(..)")
    }
}

/// A call under way. Dropped before its good end, it is undone: it failed, panicked, took too long or
/// was cancelled.
#[derive(Default)]
struct Attempt(Steps);

impl Attempt {
    fn keep(self) {
        self.0.end(State::Kept);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.end(State::Undone);
    }
}

impl Builder {
    /// Adds a tool that is undone where it fails: the handler notes with each step how it is taken
    /// back, and unless the call comes to a good end, by a result that fits its output schema, all are,
    /// the last one first: before the call is answered or, where it takes too long or is cancelled, when
    /// its handler is dropped soon after. `mcp.get_schema` shows it as `"atomic": "transactional"`, and so
    /// does its description.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use mcpbolt::server::{Arguments, Context, HandlerError, Server, Steps, Tool};
    ///
    /// let rooms = Arc::new(Mutex::new(vec!["101"]));
    /// let server = Server::builder("hotel", "1.0.0")
    ///     .atomic_tool(Tool::new("stay.book"), move |_: Arguments, _: Context, steps: Steps| {
    ///         let rooms = rooms.clone();
    ///         async move {
    ///             let room = rooms.lock().ok().and_then(|mut rooms| rooms.pop());
    ///             let room = room.ok_or_else(|| HandlerError::typed("CONFLICT", "no room is free"))?;
    ///             steps.taken(move || rooms.lock().map_or((), |mut rooms| rooms.push(room)));
    ///             Err::<(), _>(HandlerError::typed("DEPENDENCY_ERROR", "the card was refused"))
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn atomic_tool<A, F, R>(
        self,
        tool: Tool,
        handler: impl Fn(A, Context, Steps) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let output = Output::of(&tool);
        self.tool(tool.atomic(), move |arguments: A, context| {
            let attempt = Attempt::default();
            let made = handler(arguments, context, attempt.0.clone());
            let output = output.clone();
            async move {
                let result = made.await.into_tool_result();
                if output.is_good(&result) {
                    attempt.keep();
                }
                result
            }
        })
    }
}
