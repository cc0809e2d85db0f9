//! Descriptors, processes and signals on Unix.

mod causes;
mod descriptor;
mod parent;
mod process;
mod redirect;
mod signals;
mod watchdog;

pub(super) use causes::Causes;
pub(super) use descriptor::Descriptor;
pub(super) use process::Process;
pub(super) use redirect::Redirect;

/// The processor time that this process has used since it began.
pub(super) fn processor_time() -> std::time::Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::try_from(used).unwrap_or_default()
}
