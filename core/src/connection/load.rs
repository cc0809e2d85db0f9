//! Counts the bytes and requests of one connection against its limits, the common budget and its source.

use std::sync::Arc;
use std::time::Instant;

use super::budget::Share;
use super::config::Config;
use super::rate_limiter::RateLimiter;
use super::source::RequestSource;
use super::source_counts::SourceCount;
use super::stream::{Exchange, Stream};

/// The counts of one connection.
#[derive(Debug)]
pub(super) struct Load {
    config: Arc<Config>,
    /// Requests of the peer that have begun and are not yet answered, on all streams together.
    in_flight: usize,
    /// Requests of the peer passed to a handler since the connection was created.
    calls: usize,
    /// Bytes kept of how the peer described itself in `initialize`.
    introduced: usize,
    /// The current counts of this connection in the configuration's budget.
    share: Share,
    /// This connection's part in its source's count of requests; `None` for an unknown source.
    source: Option<SourceCount>,
    /// Limits how fast the peer may send requests; `None` for no limit.
    requests: Option<RateLimiter>,
}

/// The bytes that the streams of a connection hold.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub output: usize,
    /// Input that is not a whole message yet, and requests that wait to begin.
    pub waiting: usize,
    /// The longest output of a single stream.
    pub longest: usize,
}

impl Sums {
    #[inline]
    pub fn add(&mut self, Stream { reading, exchange }: &Stream) {
        self.output += exchange.output.len();
        self.waiting += reading.input.held() + exchange.waiting.bytes();
        self.longest = self.longest.max(exchange.output.len());
    }
}

impl Load {
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        let mut load = Self {
            config,
            in_flight: 0,
            calls: 0,
            introduced: 0,
            share: Share::default(),
            source: None,
            requests: None,
        };
        load.reset_rate(now);
        load
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Starts the limit of requests anew, with a full burst.
    pub fn reset_rate(&mut self, now: Instant) {
        let rate = self.config.limits.request_rate;
        self.requests = rate.map(|rate| RateLimiter::new(rate, now));
    }

    /// Whether no request of the peer is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether a request on that stream may begin.
    #[inline]
    pub fn has_room(&self, exchange: &Exchange) -> bool {
        let limits = &self.config.limits;
        self.is_below_limit() && exchange.output.len() <= limits.output_mark_bytes
    }

    /// Whether fewer requests are in flight than the connection may have.
    #[inline]
    pub fn is_below_limit(&self) -> bool {
        self.in_flight < self.config.limits.max_incoming
    }

    /// Whether no further request may begin: all connections of the configuration together hold too
    /// much, this connection has to give way, or its source has its full share of the requests in
    /// flight.
    #[inline]
    pub fn is_over_budget(&self) -> bool {
        let budget = &self.config.budget;
        let is_greedy = |source: &SourceCount| budget.is_used_up_by(source.requests());
        budget.is_exceeded() || self.is_to_give_way() || self.source.as_ref().is_some_and(is_greedy)
    }

    /// Whether this connection holds more than is served from the reserve for small messages.
    pub fn has_much(&self) -> bool {
        self.share.large > 0
    }

    /// Whether this connection holds that much while all connections together hold too much.
    pub fn is_to_give_way(&self) -> bool {
        self.has_much() && self.config.budget.is_tight()
    }

    /// Whether there is no room in the budget for what the next read of the stream may allocate.
    pub fn is_short_of_room(&self, stream: Option<&Stream>) -> bool {
        let growth = stream.map_or(0, |stream| stream.reading.input.growth());
        !self.config.budget.has_room(self.share.large, growth)
    }

    /// Whether to hold back what may be left out of the output: progress and log messages.
    pub fn is_crowded(&self, exchange: &Exchange) -> bool {
        exchange.output.len() > self.config.limits.output_mark_bytes || self.is_over_budget()
    }

    /// Counts one request that arrived; returns whether the peer sends requests faster than allowed.
    #[inline]
    pub fn is_too_fast(&mut self, now: Instant) -> bool {
        let requests = self.requests.as_mut();
        requests.is_some_and(|limiter| !limiter.take(now))
    }

    /// Counts a request that is passed to a handler.
    #[inline]
    pub fn begin(&mut self) {
        self.hold();
        self.calls += 1;
    }

    /// Counts a request that no handler gets.
    #[inline]
    pub fn hold(&mut self) {
        self.in_flight += 1;
    }

    /// Counts a request that had begun and is over.
    #[inline]
    pub fn end(&mut self) {
        self.in_flight -= 1;
    }

    /// Counts bytes that are kept of how the peer described itself.
    pub fn introduce(&mut self, bytes: usize) {
        self.introduced = bytes;
    }

    /// Counts the requests of this connection against `source`; returns whether that changes anything.
    pub fn set_source(&mut self, source: &RequestSource) -> bool {
        if self.source.as_ref().is_some_and(|own| own.is_of(source)) {
            return false;
        }
        let requests = self.share.requests;
        self.note_requests(requests, 0);
        self.source = self.config.budget.source_counts.of(source);
        self.note_requests(0, requests);
        true
    }

    fn note_requests(&self, old: usize, new: usize) {
        if let Some(source) = &self.source {
            source.change(old, new);
        }
    }

    /// Updates the budget with what this connection holds now.
    pub fn note(&mut self, sums: Sums) {
        let in_transit = sums.output + sums.waiting;
        self.change(Share {
            requests: self.in_flight,
            calls: self.calls,
            kept: self.introduced,
            bytes: in_transit + self.introduced,
            ..Share::in_transit(in_transit)
        });
    }

    /// Gives back everything that this connection counts in the budget.
    pub fn release(&mut self) {
        self.change(Share {
            calls: self.calls,
            ..Share::default()
        });
    }

    fn change(&mut self, share: Share) {
        self.note_requests(self.share.requests, share.requests);
        self.config.budget.change(&mut self.share, share);
    }
}
