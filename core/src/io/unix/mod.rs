//! Descriptors, processes and signals on Unix.

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

/// The processor time that this process has used since it began.
pub(super) fn processor_time() -> std::time::Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::try_from(used).unwrap_or_default()
}
