//! Descriptors, processes and signals of Unix.

mod descriptor;
mod guard;
mod parent;
mod process;
mod redirect;
mod signals;

pub use descriptor::{ReadEnd, WriteEnd};
pub(super) use guard::Guard;
pub(super) use parent::Parent;
pub(super) use process::Process;
pub(super) use redirect::Redirect;
pub(super) use signals::Signals;
