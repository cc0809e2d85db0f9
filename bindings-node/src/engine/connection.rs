//! A connection that a program drives itself: bytes in, bytes and events out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::connection::{
    Call, CallKey, Config, ConnectionEvent, Framing, OpeningMode, Polled, Progress, RequestOptions,
};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Revision, Revisions, Side};
use mcpbolt::settings::Milliseconds;
use napi::Env;
use napi::bindgen_prelude::{BufferSlice, Int32ArraySlice};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::codec;
use super::events::{self, Kind, Rows};
use crate::describe;
use crate::drain::integers;
use crate::error::{self, Result, misuse, unknown};
use crate::json::{self, duration, read};
use crate::slots::Slots;

/// Settings of a connection.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    side: String,
    name: String,
    version: String,
    capabilities: BTreeMap<String, Box<RawValue>>,
    instructions: Option<String>,
    revisions: Option<Vec<String>>,
    opening: String,
    framing: String,
    max_message_bytes: Option<usize>,
    max_depth: Option<usize>,
    timeout: Option<Milliseconds>,
    now: Option<f64>,
}

/// The state machine of a connection. It does no I/O, and reads the clock only if the program passes no time.
#[napi]
pub struct EngineConnection {
    pub(super) inner: Polled,
    pub(super) calls: Calls,
    /// An event for which the last table had no room.
    waiting: Option<ConnectionEvent>,
    clock: Clock,
}

/// The peer's unanswered requests.
pub type Calls = Slots<CallKey, Call>;

/// Converts milliseconds of the program's clock to the engine's instants.
struct Clock {
    begun: Instant,
    /// The program's clock at `begun`.
    zero: f64,
}

impl Clock {
    /// The instant at which the program's clock says `now`; the current one without `now`.
    fn at(&self, now: Option<f64>) -> Result<Instant> {
        let Some(now) = now else {
            return Ok(Instant::now());
        };
        let passed = duration((now - self.zero).max(0.0))?;
        let at = self.begun.checked_add(passed);
        at.ok_or_else(|| misuse(format!("{now} ms is not a time")))
    }
}

impl Settings {
    fn config(&self) -> Result<Config> {
        let side = Side::parse(&self.side).ok_or_else(|| unknown("side", &self.side))?;
        let mut config = Config::new(side, &self.name, &self.version);
        let capabilities = json::text(&self.capabilities);
        config.capabilities = std::array::from_fn(|_| capabilities.as_str().into());
        config.instructions = self.instructions.as_deref().map(Into::into);
        if let Some(names) = &self.revisions {
            let names = names.iter().map(String::as_str);
            config.revisions = Revisions::parse(names).map_err(|name| unknown("revision", name))?;
        }
        let opening = OpeningMode::parse(&self.opening);
        config.opening = opening.ok_or_else(|| unknown("opening", &self.opening))?;
        let own = Limits::STDIO;
        let timeout = self.timeout.map(Duration::from);
        config.limits = Limits {
            max_message_bytes: self.max_message_bytes.unwrap_or(own.max_message_bytes),
            max_depth: self.max_depth.unwrap_or(own.max_depth),
            request_timeout: timeout.unwrap_or(own.request_timeout),
            ..own
        };
        Ok(config)
    }
}

#[napi]
impl EngineConnection {
    /// Creates a connection with settings as JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: String) -> Result<Self> {
        let settings: Settings = read(&settings)?;
        let clock = Clock {
            begun: Instant::now(),
            zero: settings.now.unwrap_or_default(),
        };
        let now = clock.at(settings.now)?;
        let framing = Framing::parse(&settings.framing);
        let framing = framing.ok_or_else(|| unknown("framing", &settings.framing))?;
        Ok(Self {
            inner: Polled::new(Arc::new(settings.config()?), framing, now),
            calls: Calls::default(),
            waiting: None,
            clock,
        })
    }

    /// Takes received bytes.
    #[napi(catch_unwind)]
    pub fn feed(&mut self, bytes: &[u8], now: Option<f64>) -> Result<()> {
        let now = self.clock.at(now)?;
        self.inner.feed(bytes, now);
        Ok(())
    }

    /// Marks the end of the input.
    #[napi(catch_unwind)]
    pub fn feed_end(&mut self, now: Option<f64>) -> Result<()> {
        let now = self.clock.at(now)?;
        self.inner.feed_end(now);
        Ok(())
    }

    /// Returns the bytes of the events, and fills the table: the number of rows, whether there are more, then
    /// the rows.
    #[napi(catch_unwind)]
    pub fn drain<'e>(
        &mut self,
        env: &'e Env,
        mut table: Int32ArraySlice<'_>,
    ) -> Result<Option<BufferSlice<'e>>> {
        let Some(([count, more], table)) = integers(&mut table).split_first_chunk_mut::<2>() else {
            return Ok(None);
        };
        let mut rows = Rows::new(table);
        self.waiting = self.waiting.take().or_else(|| self.inner.next_event());
        while rows.has_room()
            && let Some(event) = self.waiting.take()
        {
            write(&mut rows, &mut self.calls, event);
            self.waiting = self.inner.next_event();
        }
        *count = rows.used as i32;
        *more = i32::from(self.waiting.is_some());
        match rows.used {
            0 => Ok(None),
            _ => codec::buffer(env, &rows.bytes).map(Some),
        }
    }

    /// Takes all bytes that are to be written.
    #[napi(catch_unwind)]
    pub fn output<'e>(
        &mut self,
        env: &'e Env,
        now: Option<f64>,
    ) -> Result<Option<BufferSlice<'e>>> {
        let now = self.clock.at(now)?;
        let output = self.inner.output(now);
        let head = output.head();
        if head.is_empty() {
            return Ok(None);
        }
        if head.len() == output.len() {
            let bytes = codec::buffer(env, head)?;
            output.advance(bytes.len());
            return Ok(Some(bytes));
        }
        let pieces: Vec<_> = output.take().collect();
        codec::buffer(env, &pieces.concat()).map(Some)
    }

    /// Sends a request; returns the number by which its events identify it.
    #[napi(catch_unwind)]
    pub fn request(
        &mut self,
        method: String,
        params: Option<String>,
        timeout_ms: Option<f64>,
        max_timeout_ms: Option<f64>,
        wants_progress: bool,
        meta: Option<String>,
    ) -> Result<f64> {
        let options = RequestOptions {
            timeout: timeout_ms.map(duration).transpose()?,
            max_timeout: max_timeout_ms.map(duration).transpose()?,
            meta: meta.map(Into::into),
            ..RequestOptions::default()
        };
        let made = self
            .inner
            .request(&method, params.as_deref(), options, wants_progress);
        // Exact: numbers have at most 53 bits.
        made.map(|number| number as f64).map_err(error::request)
    }

    /// Cancels a request of this side.
    #[napi(catch_unwind)]
    pub fn cancel(&mut self, number: f64, reason: Option<String>) {
        self.inner.cancel(number as u64, reason.as_deref());
    }

    /// Sends a notification.
    #[napi(catch_unwind)]
    pub fn notify(&self, method: String, params: Option<String>) -> Result<()> {
        let sent = self.inner.handle().notify(&method, params.as_deref());
        sent.map_err(error::request)
    }

    /// Milliseconds until `handle_timeout` must be called; `None` if no timer is running.
    #[napi(catch_unwind)]
    pub fn timeout(&self, now: Option<f64>) -> Result<Option<f64>> {
        let now = self.clock.at(now)?;
        let due = self.inner.connection().poll_timeout();
        Ok(due.map(|due| due.saturating_duration_since(now).as_secs_f64() * 1000.0))
    }

    /// Handles the timers that have expired.
    #[napi(catch_unwind)]
    pub fn handle_timeout(&mut self, now: Option<f64>) -> Result<()> {
        let now = self.clock.at(now)?;
        self.inner.handle_timeout(now);
        Ok(())
    }

    /// Lets requests in flight finish for at most `grace_ms`, then closes the connection.
    #[napi(catch_unwind)]
    pub fn finish(&self, grace_ms: f64) -> Result<()> {
        self.inner.handle().drain(duration(grace_ms)?);
        Ok(())
    }

    /// Closes the connection once all output is written.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.inner.handle().close();
    }

    #[napi(getter, catch_unwind)]
    pub fn revision(&self) -> Option<&'static str> {
        self.inner.handle().revision().map(Revision::name)
    }

    #[napi(getter, catch_unwind)]
    pub fn is_closed(&self) -> bool {
        self.inner.connection().is_closed()
    }

    #[napi(getter, catch_unwind)]
    pub fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    #[napi(getter, catch_unwind)]
    pub fn in_flight(&self) -> u32 {
        self.inner.connection().in_flight() as u32
    }

    #[napi(getter, catch_unwind)]
    pub fn stray_count(&self) -> f64 {
        self.inner.handle().stray_count() as f64
    }

    /// The peer's description of itself from when the connection opened, as JSON.
    #[napi(getter, catch_unwind)]
    pub fn peer(&self) -> Option<String> {
        let peer = self.inner.handle().peer()?;
        let info = match &*peer.implementation {
            "" => "null",
            info => info,
        };
        Some(format!(
            "{{\"info\":{info},\"capabilities\":{}}}",
            peer.capabilities
        ))
    }
}

/// Writes the row of an event; none for the cancellation of a request that JavaScript does not have.
fn write(rows: &mut Rows<'_>, calls: &mut Calls, event: ConnectionEvent) {
    match event {
        ConnectionEvent::Opened(revision) => {
            rows.text(Kind::Opened, [0, 0], revision.name().as_bytes());
        }
        ConnectionEvent::Request(call) => {
            let revision = call.reply.revision();
            let index = Revision::ALL.iter().position(|known| *known == revision);
            let about = index.unwrap_or_default() as i32 * 2;
            let about = about + i32::from(call.reply.wants_progress());
            let message = call.message.clone();
            let number = calls.insert(call.reply.key(), *call);
            rows.message(Kind::Request, [number as i32, about], &message);
        }
        ConnectionEvent::Cancelled(key, reason) => {
            if let Some(number) = calls.number(key) {
                calls.remove(number);
                let reason = reason.unwrap_or_default();
                rows.text(Kind::Cancelled, [number as i32, 0], reason.as_bytes());
            }
        }
        ConnectionEvent::Notification(message) => {
            rows.message(Kind::Notification, [0, 0], &message)
        }
        ConnectionEvent::Progress {
            number,
            progress,
            total,
            message,
        } => {
            let message = message.as_deref();
            let json = describe::progress(Progress {
                progress,
                total,
                message,
            });
            rows.text(Kind::Progress, events::halves(number), json.as_bytes());
        }
        ConnectionEvent::Answered(number, outcome) => rows.answered(number, &outcome),
        ConnectionEvent::Stray(what, frame) => {
            rows.text(Kind::Stray, [events::stray(what), 0], &frame);
        }
        ConnectionEvent::Closed(why) => rows.closed(&why),
    }
}
