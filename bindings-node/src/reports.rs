//! Reports to a function of JavaScript that nobody waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::error::{Result, internal};

/// The most reports that wait for JavaScript. Further ones are dropped.
const MAX_WAITING: usize = 8192;

type Call = ThreadsafeFunction<String, (), String, Status, false, true, MAX_WAITING>;

/// Passes reports to JavaScript, as JSON. Does not keep the process alive.
#[derive(Clone)]
pub struct Reports(Arc<Inner>);

struct Inner {
    call: Call,
    /// How many were dropped since the last one that was not.
    dropped: AtomicU64,
}

impl Reports {
    /// Reports to `function`.
    pub fn new(function: &Function<'_, String, ()>) -> Result<Self> {
        let call = function
            .build_threadsafe_function::<String>()
            .weak::<true>()
            .max_queue_size::<MAX_WAITING>()
            .build()
            .map_err(internal)?;
        let dropped = AtomicU64::new(0);
        Ok(Self(Arc::new(Inner { call, dropped })))
    }

    /// Reports what `json` writes, which gets how many reports were dropped before this one. Does not wait.
    pub fn tell(&self, json: impl FnOnce(u64) -> String) {
        let dropped = self.0.dropped.swap(0, Ordering::Relaxed);
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        if self.0.call.call(json(dropped), mode) != Status::Ok {
            self.0.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}
