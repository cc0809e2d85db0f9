//! Sends spans and metrics to a collector of OpenTelemetry, by OTLP over HTTP.

use std::env;
use std::sync::Arc;

use anyhow::{Context, Result};
use mcpbolt::telemetry::OpenTelemetry;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider};
use tokio::runtime::Runtime;

use crate::poster::Poster;

/// Variables that name a collector.
const ENDPOINTS: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
];

/// What is sent to a collector. Sends what is left when it is dropped, for which it takes a few seconds at most.
pub struct Otlp {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    observer: Arc<OpenTelemetry>,
    /// Sends; `None` once it has ended.
    runtime: Option<Runtime>,
}

impl Otlp {
    /// Begins to send to the collector at `url`, or to the one that the environment names; `None` if neither does.
    ///
    /// # Errors
    /// If that is no URL that can be sent to.
    pub fn begin(url: Option<&str>) -> Result<Option<Self>> {
        let is_named = ENDPOINTS.iter().any(|name| env::var_os(name).is_some());
        let is_off = env::var("OTEL_SDK_DISABLED").is_ok_and(|it| it.eq_ignore_ascii_case("true"));
        if is_off || url.is_none() && !is_named {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let poster = Poster::new(runtime.handle().clone())?;
        let mut spans = SpanExporter::builder()
            .with_http()
            .with_http_client(poster.clone())
            .with_protocol(Protocol::HttpBinary);
        let mut metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(poster)
            .with_protocol(Protocol::HttpBinary);
        if let Some(url) = url.map(|url| url.trim_end_matches('/')) {
            spans = spans.with_endpoint(format!("{url}/v1/traces"));
            metrics = metrics.with_endpoint(format!("{url}/v1/metrics"));
        }
        let why = || {
            format!(
                "sending to {}",
                url.unwrap_or("the collector of OTEL_EXPORTER_OTLP_…")
            )
        };
        let resource = resource();
        let tracers = SdkTracerProvider::builder()
            .with_batch_exporter(spans.build().with_context(why)?)
            .with_resource(resource.clone())
            .build();
        let meters = SdkMeterProvider::builder()
            .with_periodic_exporter(metrics.build().with_context(why)?)
            .with_resource(resource)
            .build();
        let observer = OpenTelemetry::new(&tracers, &meters);
        Ok(Some(Self {
            tracers,
            meters,
            observer,
            runtime: Some(runtime),
        }))
    }

    /// What makes spans and metrics of requests.
    pub fn observer(&self) -> Arc<OpenTelemetry> {
        self.observer.clone()
    }
}

/// The attribute that tells processes of one service apart.
const INSTANCE: &str = "service.instance.id";

/// What this process is called, unless the environment says so.
fn resource() -> Resource {
    let said = env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let says = |name: &str| said.contains(&format!("{name}="));
    let mut resource = Resource::builder();
    if env::var_os("OTEL_SERVICE_NAME").is_none() && !says("service.name") {
        resource = resource.with_service_name("mcpbolt");
    }
    if !says(INSTANCE) {
        // A random UUID (RFC 9562, version 4), as the conventions recommend.
        let random = u128::from_be_bytes(RandomIdGenerator::default().new_trace_id().to_bytes());
        resource = resource.with_attribute(KeyValue::new(INSTANCE, uuid(random)));
    }
    resource.build()
}

/// The UUID of version 4 with these random bits, but for the six that say so.
fn uuid(random: u128) -> String {
    let bits = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let mut text = format!("{bits:032x}");
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // Nobody is left to tell if the collector cannot be reached.
        let _ = self.tracers.shutdown();
        let _ = self.meters.shutdown();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_says_its_version_and_its_variant() {
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
