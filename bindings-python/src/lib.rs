//! `mcpbolt._core`: the native module behind the Python package. Private: programs use the package.
//!
//! Engine threads read, parse, validate, answer what needs no Python, and write; they never attach
//! to the interpreter. The rest crosses in batches: worker threads pull calls of plain functions; the
//! event loop drains calls of coroutine functions and the answers to a client's requests, with one
//! wakeup for all that have arrived.

mod actions;
mod answer;
mod arguments;
mod asgi;
mod ask;
mod asked;
mod attached;
mod audit;
mod beside;
mod blocks;
mod bridge;
mod call;
mod callbacks;
mod cancellation;
mod catalog;
mod chain;
mod client;
mod client_events;
mod client_setup;
mod client_skills;
mod connect;
mod context;
mod definition;
mod engine;
mod exceptions;
mod exchange;
mod failures;
mod forked;
mod future;
mod hosted;
mod hub;
mod inbox;
mod introduction;
mod job;
mod kernel;
mod kernel_calls;
mod lists;
mod login;
mod native;
mod opening;
mod operation;
mod operations;
mod outbox;
mod outcome;
mod panics;
mod pending;
mod permissions;
mod plain;
mod pool;
mod questions;
mod read;
mod relay;
mod remote_task;
mod request_options;
mod result_cache;
mod served;
mod serving;
mod session;
mod settings;
mod signal;
mod straight;
mod stream;
mod supervise;
mod target;
mod telemetry;
mod termination;
mod tool_answer;
mod verifier;
mod wire;
mod worker;
mod workers;
mod write;

/// The native engine. Private to the package. Shared data is immutable or has its own lock, but no interpreter without
/// the GIL has run its tests, so it asks for the GIL.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::supervise::{is_worker, supervise};
    #[pymodule_export]
    use crate::actions::{action_results, action_schemas, call_action};
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::asgi::{Endpoint, mount, mount_front};
    #[pymodule_export]
    use crate::catalog::Catalog;
    #[pymodule_export]
    use crate::chain::front::{External, Front, check_joined};
    #[pymodule_export]
    use crate::chain::handoffs::Handoffs;
    #[pymodule_export]
    use crate::chain::rules::{Prefix, Rule, tool_pin};
    #[pymodule_export]
    use crate::chain::served::ServedFront;
    #[pymodule_export]
    use crate::client::Link;
    #[pymodule_export]
    use crate::client_skills::{get_skill, list_skills, read_directory, read_skill};
    #[pymodule_export]
    use crate::connect::{connect_child, connect_pair};
    #[pymodule_export]
    use crate::context::Context;
    #[pymodule_export]
    use crate::engine::codec::{
        decode, dumps, encode_error, encode_notification, encode_request, encode_response, loads,
        unpack,
    };
    #[pymodule_export]
    use crate::engine::connection::Connection;
    #[pymodule_export]
    use crate::engine::events::{
        Answered, Cancelled, Closed, Notification, Opened, Progress, Request, Stray,
    };
    #[pymodule_export]
    use crate::engine::message::Message;
    #[pymodule_export]
    use crate::exchange::Exchange;
    #[pymodule_export]
    use crate::job::Job;
    #[pymodule_export]
    use crate::kernel_calls::{KernelConnection, KernelRequest};
    #[pymodule_export]
    use crate::lists::{Pages, whole_list};
    #[pymodule_export]
    use crate::login::Login;
    #[pymodule_export]
    use crate::opening::{Connecting, command_of, connect_front, connect_to};
    #[pymodule_export]
    use crate::pending::Pending;
    #[pymodule_export]
    use crate::permissions::Permissions;
    #[pymodule_export]
    use crate::pool::Ledger;
    #[pymodule_export]
    use crate::relay::Relay;
    #[pymodule_export]
    use crate::remote_task::{RemoteTask, call_tool, list_tasks};
    #[pymodule_export]
    use crate::result_cache::{CachedCall, Results};
    #[pymodule_export]
    use crate::serving::{Counter, Serving, check_options};
    #[pymodule_export]
    use crate::signal::Wake;
    #[pymodule_export]
    use crate::stream::{Stream, listen};
    #[pymodule_export]
    use crate::telemetry::Telemetry;
    #[pymodule_export]
    use crate::termination::Termination;
    #[pymodule_export]
    use crate::tool_answer::Finished;
    #[pymodule_export]
    use crate::wire::Wire;

    use std::ffi::OsString;

    use mcpbolt::mcp::revision::{Era, Revision, Rules};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::attached::check_interpreter(module.py())?;
        #[cfg(debug_assertions)]
        module.setattr(
            "_panic_at",
            wrap_pyfunction!(crate::panics::_panic_at, module)?,
        )?;
        crate::forked::watch(module)
    }

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Runs the command `mcpbolt` with these arguments, all but those of Python, and returns its exit status.
    #[pyfunction]
    fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        const RUN: (&str, &str) = (
            "run",
            "Serve the server of a Python file or module, at any address",
        );
        const DEV: (&str, &str) = (
            "dev",
            "Serve as run does, and restart the server when its files change",
        );
        const EXEC: (&str, &str) = (
            "exec",
            "Run a program of this environment unchanged, with its servers on the engine",
        );
        py.detach(|| mcpbolt_cli::run(arguments, &[RUN, DEV, EXEC]))
    }

    /// The protocol revisions that have a feature, oldest first: `handshake`, or `structured_content`.
    #[pyfunction]
    fn revisions(feature: &str) -> Vec<&'static str> {
        let has = |rules: &Rules| match feature {
            "handshake" => rules.era == Era::Handshake,
            _ => rules.structured_content,
        };
        let all = Revision::ALL.into_iter().map(Revision::rules);
        all.filter(|rules| has(rules))
            .map(|rules| rules.name)
            .collect()
    }

    /// Serializes a value to the JSON text that goes on the wire.
    #[pyfunction]
    fn to_json(value: &Bound<'_, PyAny>) -> PyResult<String> {
        crate::write::json(value)
    }
}
