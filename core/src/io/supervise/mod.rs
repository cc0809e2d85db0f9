//! Several processes that serve one address.
//!
//! ```text
//!   supervisor ── binds the socket, starts workers, replaces those that end
//!     │ stdin of each worker: a control socket
//!     ├──▶ worker 1 ─┐ accepts from the shared socket
//!     ├──▶ worker 2 ─┤            ▲
//!     ╰──▶ worker 3 ─┘            │ a request of a session of worker 1 that came to worker 3
//!              ╰── private socket of worker 1 ◀──╯
//! ```
//!
//! A worker is the same program, started again. It takes its sockets from the control socket, says there when it serves,
//! and drains when the other end closes, which is also what happens when the supervisor dies. So the tree has one way
//! to end, and no process outlives its supervisor.
//!
//! | file | what it is for |
//! |---|---|
//! | `plan` | which workers begin and end, and when, on a clock that is an argument |
//! | `supervisor` | the thread that does so, with processes and sockets |
//! | `member` | one worker, as its supervisor has it |
//! | `worker` | the worker's side |
//! | `control` | the messages on the control socket |

mod control;
mod member;
mod plan;
mod supervisor;
mod worker;

pub use self::supervisor::{Supervising, SupervisionState, Supervisor, SupervisorOptions};
pub use self::worker::WorkerProcess;
#[cfg(test)]
pub(in crate::io) use self::worker::remove_files;
pub(in crate::io) use self::worker::{Standing, private_socket, ready_file};
