//! Metrics and traces of servers, clients and fronts, by the OpenTelemetry conventions for MCP.
//!
//! Everything here is an [`Observer`](crate::connection::Observer), which
//! [`Builder::observer`](crate::server::Builder::observer), `ClientBuilder::observer` and `Front::observer` take. Arguments,
//! results, texts of errors and credentials are never part of what is exported.
//!
//! | files | what they do |
//! |---|---|
//! | `several` | several observers as one |
//! | `series` | which measurements belong together: requests that are alike, bounded in number |
//! | `names` | values of attributes |
//! | `totals` | counts of what is in progress |
//! | `shards` | counters of each thread |
//! | `histogram` | counts durations in buckets, without a lock |
//! | `prometheus`, `text` | keeps counts and writes them as text for Prometheus |
//! | `log` | each request as an event of `tracing` |
//! | `attributes`, `instruments` | attributes of spans and metrics, and the histograms, by the conventions |
//! | `otel`, `spans` | metrics and spans by the OpenTelemetry API |
//! | `host` | requests and sessions for the OpenTelemetry SDKs of other languages |
//! | `hosted` | one request or session of those |
//! | `passing` | the same of requests that a front passes on |
//! | `records` | what such a language reads, as JSON |

#![cfg_attr(
    not(all(feature = "prometheus", feature = "opentelemetry")),
    allow(dead_code, reason = "some parts serve one exporter")
)]

mod attributes;
mod histogram;
#[cfg(feature = "settings")]
mod host;
#[cfg(feature = "settings")]
mod hosted;
mod instruments;
#[cfg(feature = "tracing")]
mod log;
mod names;
#[cfg(feature = "opentelemetry")]
mod otel;
#[cfg(feature = "settings")]
mod passing;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(feature = "settings")]
mod records;
mod series;
mod several;
mod shards;
#[cfg(feature = "opentelemetry")]
mod spans;
#[cfg(feature = "prometheus")]
mod text;
mod totals;

pub use self::histogram::BUCKETS;
#[cfg(feature = "settings")]
pub use self::host::{HostTelemetry, MAX_RECORDS, TelemetryHost};
#[cfg(feature = "tracing")]
pub use self::log::RequestLog;
#[cfg(feature = "opentelemetry")]
pub use self::otel::OpenTelemetry;
#[cfg(feature = "prometheus")]
pub use self::prometheus::Prometheus;
pub use self::series::{MAX_NAMES, MAX_SERIES};
pub use self::several::several;
