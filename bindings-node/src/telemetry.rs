//! [`Telemetry`]: hands requests and sessions to the program's OpenTelemetry, in `face/telemetry.ts`.

use std::cell::Cell;
use std::fmt;
use std::thread::{self, ThreadId};

use mcpbolt::mcp::TraceContext;
use mcpbolt::telemetry::{HostTelemetry, TelemetryHost};
use napi::bindgen_prelude::{Float64ArraySlice, FnArgs, Function, FunctionRef};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;

use crate::drain::numbers;
use crate::error::{Result, internal};

/// The observer of the servers, clients and fronts of one JavaScript thread whose telemetry is switched on.
#[napi]
pub struct Telemetry {
    pub(crate) observer: HostTelemetry,
}

type Wake = ThreadsafeFunction<(), (), (), Status, false, true, 0>;
type Begin = FunctionRef<FnArgs<(String, u32)>, Option<String>>;

struct Host {
    wake: Wake,
    begin: Begin,
    /// The thread that may call `begin`.
    javascript: ThreadId,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

/// On whose behalf JavaScript's thread sends requests now.
#[derive(Clone, Copy)]
struct Sender {
    env: Env,
    /// The number of the pending request that sends another one, or 0 for what JavaScript has just called.
    number: u32,
}

thread_local! {
    static SENDER: Cell<Option<Sender>> = const { Cell::new(None) };
}

/// Runs `send`, which may send requests: of request `number`, or with 0 those of the caller. Their spans begin in what is current
/// there.
///
/// JavaScript is called meanwhile, while this package's objects are borrowed: `Telemetry::checkFree` in `face/telemetry.ts` keeps it from using them.
pub fn sending<T>(env: Env, number: u32, send: impl FnOnce() -> T) -> T {
    struct Before(Option<Sender>);
    impl Drop for Before {
        fn drop(&mut self) {
            SENDER.set(self.0.take());
        }
    }
    let _before = Before(SENDER.replace(Some(Sender { env, number })));
    send()
}

impl TelemetryHost for Host {
    fn wake(&self) {
        // Fails only while JavaScript's environment is torn down.
        self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }

    fn sent(&self, begun: &dyn Fn() -> String) -> Option<TraceContext> {
        if thread::current().id() != self.javascript {
            return None;
        }
        let Sender { env, number } = SENDER.get()?;
        let begin = self.begin.borrow_back(&env).ok()?;
        let place = begin.call(FnArgs::from((begun(), number))).ok()??;
        Some(context(&place))
    }
}

/// The context of a place as JavaScript writes it.
fn context(place: &str) -> TraceContext {
    let (parent, state) = match place.split_once(' ') {
        Some((parent, state)) => (parent, Some(state.to_owned())),
        None => (place, None),
    };
    TraceContext {
        parent: parent.to_owned(),
        state,
        baggage: None,
    }
}

#[napi]
impl Telemetry {
    /// `wake` is called once there is something to take; it does not keep the process alive. `begin` begins the span of a request that
    /// is about to be sent, by its description and the number of the pending request that sends it, or 0; returns its place: its
    /// `traceparent`, followed by a space and its `tracestate` if it has one.
    #[napi(constructor, catch_unwind)]
    pub fn new(
        wake: Function<'_, (), ()>,
        begin: Function<'_, FnArgs<(String, u32)>, Option<String>>,
    ) -> Result<Self> {
        let wake = wake
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .build()
            .map_err(internal)?;
        let host = Host {
            wake,
            begin: begin.create_ref().map_err(internal)?,
            javascript: thread::current().id(),
        };
        Ok(Self {
            observer: HostTelemetry::new(host),
        })
    }

    /// The histograms, as a JSON object by name.
    #[napi(catch_unwind)]
    pub fn instruments() -> String {
        HostTelemetry::instruments()
    }

    /// The version of this package.
    #[napi(catch_unwind)]
    pub fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// What the requests of a series have in common, as a JSON object; `None` if there is no such series.
    #[napi(catch_unwind)]
    pub fn series(&self, number: u32) -> Option<String> {
        self.observer.series(number)
    }

    /// Takes the records of what has ended. `rows` gets how many numbers follow there, and five of each request that ended well: its
    /// key, its series, seconds and nanoseconds since 1970, and how many seconds it took. All else is returned as a JSON array, `None`
    /// if there is nothing.
    #[napi(catch_unwind)]
    pub fn take(&self, mut rows: Float64ArraySlice<'_>) -> Option<String> {
        let [used, rows @ ..] = numbers(&mut rows) else {
            return self.observer.take();
        };
        let (count, rest) = self.observer.take_rows(rows);
        *used = count as f64;
        rest
    }

    /// Says where the two spans of a request are that a front passes on, by the key of the first; nowhere without an SDK. Returns
    /// whether the second one will end.
    #[napi(catch_unwind)]
    pub fn passed(&self, key: f64, own: Option<String>, sent: Option<String>) -> bool {
        let places = own.zip(sent);
        let places = places.map(|(own, sent)| [own, sent].map(|place| context(&place)));
        self.observer.passed(key as u64, places)
    }
}
