//! A tokio runtime for the handlers of a program that has none.

use std::io;
use std::sync::OnceLock;
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

/// Enters a runtime on a thread that has none, so that the [`Workers`](crate::io::Workers) which are created
/// meanwhile run handlers in its context. One thread of the process drives the runtime.
///
/// # Errors
/// When the runtime or its thread cannot be started.
pub(super) fn enter() -> io::Result<Option<EnterGuard<'static>>> {
    static OWN: OnceLock<Runtime> = OnceLock::new();
    if Handle::try_current().is_ok() {
        return Ok(None);
    }
    if OWN.get().is_none() {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        if OWN.set(runtime).is_ok() {
            let drive = || {
                if let Some(own) = OWN.get() {
                    own.block_on(std::future::pending::<()>());
                }
            };
            let thread = thread::Builder::new().name("mcpbolt-tokio".to_owned());
            thread.spawn(drive)?;
        }
    }
    Ok(OWN.get().map(Runtime::enter))
}
