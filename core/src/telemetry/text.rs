//! Writes counts as text for Prometheus.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use super::histogram::{BUCKETS, Counts};
use super::instruments;
use super::prometheus::{Measured, Prometheus};
use super::series::Kept;
use super::totals::Total;

/// Labels of one sample, as they are written between the braces, with a comma behind each.
#[derive(Clone, Default)]
struct Labels(String);

impl Labels {
    fn with(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            let value = value.to_string();
            let escaped = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.0, "{name}=\"{escaped}\",");
        }
        self
    }

    fn of(series: &Kept) -> Self {
        if series.is_overflow {
            return Self::default().with("otel_metric_overflow", Some(true));
        }
        let server = series.server.as_ref();
        Self::default()
            .with("mcp_method_name", Some(series.method()))
            .with("gen_ai_tool_name", series.tool())
            .with("gen_ai_prompt_name", series.prompt())
            .with(
                "gen_ai_operation_name",
                series.tool().map(|_| "execute_tool"),
            )
            .with("mcp_protocol_version", Some(series.revision))
            .with(
                "network_transport",
                series.transport.map(|transport| transport.name()),
            )
            .with(
                "network_protocol_name",
                series.protocol.map(|(name, _)| name),
            )
            .with(
                "network_protocol_version",
                series.protocol.and_then(|(_, version)| version),
            )
            .with("server_address", server.map(|(address, _)| address))
            .with("server_port", server.and_then(|(_, port)| *port))
    }
}

/// One metric after another.
struct Writer(String);

impl Writer {
    /// Begins a metric.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &Labels, value: impl Display) {
        let _ = match labels.0.strip_suffix(',') {
            None => writeln!(self.0, "{name} {value}"),
            Some(labels) => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    /// A metric of one sample.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.metric(name, kind, help);
        self.sample(name, &Labels::default(), value);
    }

    fn histogram(&mut self, name: &str, labels: &Labels, counts: &Counts) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in BUCKETS.iter().zip(counts.up_to) {
            self.sample(&bucket, &labels.clone().with("le", Some(bound)), count);
        }
        let last = labels.clone().with("le", Some("+Inf"));
        self.sample(&bucket, &last, counts.count);
        self.sample(&format!("{name}_sum"), labels, counts.seconds);
        self.sample(&format!("{name}_count"), labels, counts.count);
    }
}

/// All counts.
pub(super) fn of(all: &Prometheus) -> String {
    let mut out = Writer(String::new());
    for (side, is_sent) in [("server", false), ("client", true)] {
        let total = match is_sent {
            true => &all.totals.sent,
            false => &all.totals.received,
        };
        requests(&mut out, all, side, is_sent);
        bytes(&mut out, all, side, is_sent);
        sessions(&mut out, all, side, is_sent);
        gauges(&mut out, side, active(all, total, is_sent), total);
    }
    let name = "mcpbolt_server_waiting_requests";
    let help = "Active requests that wait for room.";
    out.single(name, "gauge", help, all.totals.waiting.load(Relaxed));
    let name = "mcpbolt_server_refused_requests_total";
    out.metric(name, "counter", "Requests refused by this side.");
    let refused = &all.ended.refused;
    for (reason, count) in &*refused.lock().unwrap_or_else(PoisonError::into_inner) {
        out.sample(name, &Labels::default().with("reason", Some(reason)), count);
    }
    servers(&mut out, all);
    out.0
}

/// The requests that have begun and are not answered yet.
fn active(all: &Prometheus, total: &Total, is_sent: bool) -> u64 {
    // In this order, since requests begin meanwhile.
    let ended = all.series.sum(is_sent, Measured::ended);
    (all.series.sum(is_sent, Measured::begun) + total.unknown.load(Relaxed)).saturating_sub(ended)
}

fn requests(out: &mut Writer, all: &Prometheus, side: &str, is_sent: bool) {
    let name = format!("mcp_{side}_operation_duration_seconds");
    let help = instruments::of_requests(is_sent).description;
    out.metric(&name, "histogram", help);
    all.series.each(|series, measured: &Measured| {
        if series.is_sent == is_sent {
            let labels = Labels::of(series);
            let all: Vec<_> = measured.counters.each().map(|it| &it.succeeded).collect();
            let succeeded = Counts::of(all.into_iter());
            if succeeded.count > 0 {
                out.histogram(&name, &labels, &succeeded);
            }
            for (ended, histogram) in measured.failed.all() {
                let labels = labels
                    .clone()
                    .with("error_type", ended.error.as_ref())
                    .with("rpc_response_status_code", ended.code.as_ref());
                let failed = Counts::of([&*histogram].into_iter());
                out.histogram(&name, &labels, &failed);
            }
        }
    });
}

fn bytes(out: &mut Writer, all: &Prometheus, side: &str, is_sent: bool) {
    for (what, help) in [
        ("request", "Bytes of requests, without their framing."),
        ("answer", "Bytes of answers, without their framing."),
    ] {
        let name = format!("mcpbolt_{side}_{what}_bytes_total");
        out.metric(&name, "counter", help);
        all.series.each(|series, measured: &Measured| {
            if series.is_sent == is_sent {
                let bytes = measured.counters.sum(|it| match what {
                    "request" => &it.request_bytes,
                    _ => &it.answer_bytes,
                });
                out.sample(&name, &Labels::of(series), bytes);
            }
        });
    }
}

fn sessions(out: &mut Writer, all: &Prometheus, side: &str, is_client: bool) {
    let name = format!("mcp_{side}_session_duration_seconds");
    out.metric(&name, "histogram", "Duration of sessions that have ended.");
    let ended = &all.ended.sessions;
    for ((of_client, revision, transport, error), histogram) in
        &*ended.lock().unwrap_or_else(PoisonError::into_inner)
    {
        if *of_client == is_client {
            let labels = Labels::default()
                .with("mcp_protocol_version", Some(revision))
                .with("network_transport", *transport)
                .with("error_type", *error);
            let counts = Counts::of([&**histogram].into_iter());
            out.histogram(&name, &labels, &counts);
        }
    }
}

fn gauges(out: &mut Writer, side: &str, active: u64, total: &Total) {
    let (name, help) = (
        format!("mcpbolt_{side}_active_requests"),
        "Requests that are not answered yet.",
    );
    out.single(&name, "gauge", help, active);
    let name = format!("mcpbolt_{side}_active_sessions");
    let help = "Sessions that are open.";
    out.single(&name, "gauge", help, total.sessions.load(Relaxed));
}

/// The counters of the servers that are watched, together.
fn servers(out: &mut Writer, all: &Prometheus) {
    let servers = all.servers.lock().unwrap_or_else(PoisonError::into_inner);
    if servers.is_empty() {
        return;
    }
    let counts: Vec<_> = servers.iter().map(|server| server.counts()).collect();
    let mut single = |name: &str, kind: &str, help: &str, of: fn(&crate::io::Counts) -> u64| {
        let value: u64 = counts.iter().map(of).sum();
        out.single(&format!("mcpbolt_{name}"), kind, help, value);
    };
    let gauge = "gauge";
    single("open_connections", gauge, "Open connections.", |it| {
        it.open_connections
    });
    single("memory_bytes", gauge, "Bytes held for peers.", |it| {
        it.held_bytes
    });
    let help = "The most bytes that are held for peers.";
    single("memory_limit_bytes", gauge, help, |it| it.max_held_bytes);
    let counter = "counter";
    let help = "Connections since the start.";
    single("connections_total", counter, help, |it| it.connections);
    let help = "HTTP requests since the start.";
    single("http_requests_total", counter, help, |it| it.http_requests);
    let help = "Bytes received on sockets.";
    single("received_bytes_total", counter, help, |it| it.bytes_read);
    let help = "Bytes sent on sockets.";
    single("sent_bytes_total", counter, help, |it| it.bytes_written);
    let name = "mcpbolt_http_errors_total";
    let help = "HTTP requests answered with a status of 400 or more.";
    out.metric(name, counter, help);
    let mut by_status = BTreeMap::<_, u64>::new();
    for (status, count) in servers.iter().flat_map(|server| server.http_errors()) {
        *by_status.entry(status).or_default() += count;
    }
    for (status, count) in by_status {
        let labels = Labels::default().with("http_response_status_code", Some(status));
        out.sample(name, &labels, count);
    }
}
