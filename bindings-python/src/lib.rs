//! `mcpbolt._core`: the engine as the Python package sees it. Private: the face is the package.
//!
//! Engine threads read, parse, validate, answer what needs no Python and write; they never take
//! the interpreter. What is left crosses in batches: plain functions are pulled by worker
//! threads, tasks and the answers to a client's requests are drained by the event loop, one wake
//! for as many as have come.

mod actions;
mod answer;
mod asgi;
mod ask;
mod asked;
mod attached;
mod audit;
mod blocks;
mod bridge;
mod call;
mod catalog;
mod client;
mod client_setup;
mod client_skills;
mod connect;
mod context;
mod definition;
mod engine;
mod exchange;
mod future;
mod hosted;
mod hub;
mod inbox;
mod introduction;
mod kept;
mod kernel;
mod lists;
mod native;
mod news;
mod opening;
mod options;
mod outbox;
mod outcome;
mod pending;
mod read;
mod relay;
mod remote_task;
mod running;
mod serving;
mod session;
mod setup;
mod signal;
mod straight;
mod stream;
mod target;
mod termination;
mod tool_answer;
mod wire;
mod work;
mod worker;
mod workers;
mod write;

/// The engine. Private to the package. It relies on no lock of the interpreter: what is shared is
/// immutable or has a lock of its own.
#[pyo3::pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::actions::{action_results, action_schemas, call_action};
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::asgi::{Endpoint, mount};
    #[pymodule_export]
    use crate::catalog::Catalog;
    #[pymodule_export]
    use crate::client::Link;
    #[pymodule_export]
    use crate::client_skills::{get_skill, list_skills, read_directory, read_skill};
    #[pymodule_export]
    use crate::connect::{connect_child, connect_pair};
    #[pymodule_export]
    use crate::context::{Context, Job};
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
    use crate::kept::{Finished, KeptCall, Results};
    #[pymodule_export]
    use crate::kernel::{Line, Owed};
    #[pymodule_export]
    use crate::lists::{Pages, whole_list};
    #[pymodule_export]
    use crate::opening::{Connecting, command_of, connect_to};
    #[pymodule_export]
    use crate::pending::Pending;
    #[pymodule_export]
    use crate::relay::Relay;
    #[pymodule_export]
    use crate::remote_task::{RemoteTask, list_tasks};
    #[pymodule_export]
    use crate::serving::Serving;
    #[pymodule_export]
    use crate::stream::Stream;
    #[pymodule_export]
    use crate::termination::Termination;
    #[pymodule_export]
    use crate::wire::Wire;

    use pyo3::prelude::*;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// A value as the JSON text that goes on the wire.
    #[pyfunction]
    fn to_json(value: &Bound<'_, PyAny>) -> PyResult<String> {
        crate::write::json(value)
    }
}
