//! Telling Python what was done: on a thread of its own, so that no engine thread waits for the
//! interpreter.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use mcpbolt::policy::AuditEvent;
use pyo3::prelude::*;

use crate::read;

/// Hands each event to `report`, a dict, in order.
///
/// # Errors
/// When there can be no thread more.
pub fn teller(report: Py<PyAny>) -> PyResult<impl Fn(&AuditEvent<'_>) + Send + Sync + 'static> {
    let (sender, events) = channel::<String>();
    let teller = thread::Builder::new().name("mcpbolt audit".into());
    teller.spawn(move || tell(&report, &events))?;
    Ok(move |event: &AuditEvent<'_>| {
        // Nobody listens any more when the interpreter has ended.
        let _ = sender.send(event.to_json());
    })
}

fn tell(report: &Py<PyAny>, events: &Receiver<String>) {
    for event in events {
        let told = Python::try_attach(|py| {
            let told = read::value(py, &event).and_then(|event| report.call1(py, (event,)));
            if let Err(error) = told {
                error.display(py);
            }
        });
        if told.is_none() {
            return;
        }
    }
}
