//! Tools that roll back when a call fails (R-ACT-18).

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::FromArguments;
use super::builder::Builder;
use super::context::Context;
use super::definition::Tool;
use super::output::{IntoToolResult, Output};

/// The completed steps of a call, each with its undo function. See [`Builder::atomic_tool`].
#[derive(Clone, Default)]
pub struct Steps(Arc<Mutex<State>>);

enum State {
    /// The call is running.
    Open(Vec<Undo>),
    /// The call succeeded.
    Kept,
    /// The call failed.
    Undone,
}

type Undo = Box<dyn FnOnce() + Send>;

impl Default for State {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Steps {
    /// Records how to undo a step that was just taken. If the call has failed meanwhile, `undo`
    /// runs at once.
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
                // An undo that panics does not keep the others from running.
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

/// A running call. Dropping it before success (the call failed, panicked, timed out or was
/// cancelled) undoes its steps.
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
    /// Adds a tool that rolls back when a call fails. The handler records an undo function for each
    /// step. Unless the call ends with a successful result that fits the output schema, all of them
    /// run, the last one first: before the answer or, after a timeout or cancellation, when the
    /// handler is dropped soon after. The tool's description says so, and `mcp.get_schema` shows
    /// `"atomic": "transactional"`.
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
