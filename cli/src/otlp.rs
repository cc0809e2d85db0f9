//! Sends spans and metrics to a collector of OpenTelemetry, by OTLP over HTTP.

use std::env;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hyper::Uri;
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

/// The variable that names a collector, which has a path for each kind of data.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The variable that names the place for spans, and the path below a collector.
const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "v1/traces");

/// The same for metrics.
const METRICS: (&str, &str) = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "v1/metrics");

/// The variable that says how a collector is spoken to. Those of spans and of metrics override it.
const PROTOCOL_OF_ALL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
];

/// How a collector is spoken to.
const PROTOCOL: &str = "http/protobuf";

/// The collector of what has no place of its own if something else has one.
const BY_DEFAULT: &str = "http://localhost:4318";

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
    /// If that is no URL that can be sent to, or the environment, which names it, asks for another protocol than [`PROTOCOL`].
    pub fn begin(url: Option<&str>) -> Result<Option<Self>> {
        let is_off = said("OTEL_SDK_DISABLED").is_some_and(|it| it.eq_ignore_ascii_case("true"));
        let Some([traces, metrics]) = endpoints(url, said).filter(|_| !is_off) else {
            return Ok(None);
        };
        if url.is_none() {
            check_protocol(said)?;
        }
        let (traces_are, metrics_are) = (is_secure(&traces)?, is_secure(&metrics)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let poster = Poster::new(runtime.handle().clone(), traces_are || metrics_are)?;
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(poster.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&traces);
        let sums = MetricExporter::builder()
            .with_http()
            .with_http_client(poster)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&metrics);
        let sending = |endpoint: &str| format!("sending to {}", public(endpoint));
        let resource = resource();
        let tracers = SdkTracerProvider::builder()
            .with_batch_exporter(spans.build().with_context(|| sending(&traces))?)
            .with_resource(resource.clone())
            .build();
        let meters = SdkMeterProvider::builder()
            .with_periodic_exporter(sums.build().with_context(|| sending(&metrics))?)
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

/// The value of a variable; `None` if it is empty, which for OpenTelemetry is the same as not set.
fn said(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Where spans and metrics are sent: by the option, else by the variables; `None` if neither names a collector.
fn endpoints(url: Option<&str>, said: impl Fn(&str) -> Option<String>) -> Option<[String; 2]> {
    let below = |url: &str, path: &str| format!("{}/{path}", url.trim_end_matches('/'));
    if let Some(url) = url {
        return Some([below(url, TRACES.1), below(url, METRICS.1)]);
    }
    let both = said(ENDPOINT);
    let own = [said(TRACES.0), said(METRICS.0)];
    if both.is_none() && own.iter().all(Option::is_none) {
        return None;
    }
    let both = both.as_deref().unwrap_or(BY_DEFAULT);
    let [traces, metrics] = own;
    Some([
        traces.unwrap_or_else(|| below(both, TRACES.1)),
        metrics.unwrap_or_else(|| below(both, METRICS.1)),
    ])
}

/// Fails if the environment asks for a protocol that is not spoken here.
fn check_protocol(said: impl Fn(&str) -> Option<String>) -> Result<()> {
    for own in PROTOCOLS {
        let named = |name| said(name).map(|value| (name, value));
        let asked = named(own).or_else(|| named(PROTOCOL_OF_ALL));
        let spoken = |value: &str| value.trim().eq_ignore_ascii_case(PROTOCOL);
        if let Some((name, value)) = asked.filter(|(_, value)| !spoken(value)) {
            bail!(
                "{name}: {value:?} is not spoken here; set it to {PROTOCOL}, and the endpoint to the collector's port of OTLP over HTTP (4318)"
            );
        }
    }
    Ok(())
}

/// Whether a place takes TLS. Fails if nothing can be sent there.
fn is_secure(endpoint: &str) -> Result<bool> {
    let shown = public(endpoint);
    let url: Uri = endpoint
        .parse()
        .with_context(|| format!("{shown:?} is not a URL to send spans and metrics to"))?;
    match url.scheme_str() {
        Some("https") => Ok(true),
        Some("http") => Ok(false),
        _ => bail!("{shown:?} is not a URL to send spans and metrics to; write {BY_DEFAULT}"),
    }
}

/// A URL without what may be secret: the name and password of a user, and the query.
fn public(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let place = rest.rsplit('@').next().unwrap_or_default();
    format!("{scheme}{place}")
}

/// What this process is called, unless the environment says so.
fn resource() -> Resource {
    let attributes = said("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let mut resource = Resource::builder();
    if said("OTEL_SERVICE_NAME").is_none() && !has_attribute(&attributes, "service.name") {
        resource = resource.with_service_name("mcpbolt");
    }
    if !has_attribute(&attributes, INSTANCE) {
        // A random UUID (RFC 9562, version 4), as the conventions recommend.
        let random = u128::from_be_bytes(RandomIdGenerator::default().new_trace_id().to_bytes());
        resource = resource.with_attribute(KeyValue::new(INSTANCE, uuid(random)));
    }
    resource.build()
}

/// Whether a list such as `service.name=one,team=two` has an attribute of that name.
fn has_attribute(list: &str, name: &str) -> bool {
    let names = list.split(',').filter_map(|pair| pair.split_once('='));
    names.into_iter().any(|(it, _)| it.trim() == name)
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

    #[test]
    fn the_option_is_before_the_variables_and_a_place_of_its_own_before_the_collector() {
        let places = |url, variables: &[(&str, &str)]| {
            let said = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            endpoints(url, said).map(|places| places.join(" "))
        };
        assert_eq!(places(None, &[]), None);
        let both = (ENDPOINT, "http://a/b/");
        for (url, variables, expected) in [
            (
                Some("http://c/"),
                &[both][..],
                "http://c/v1/traces http://c/v1/metrics",
            ),
            (None, &[both], "http://a/b/v1/traces http://a/b/v1/metrics"),
            (
                None,
                &[both, (TRACES.0, "http://t")],
                "http://t http://a/b/v1/metrics",
            ),
            (
                None,
                &[(METRICS.0, "http://m")],
                "http://localhost:4318/v1/traces http://m",
            ),
        ] {
            assert_eq!(places(url, variables).unwrap(), expected);
        }
    }

    #[test]
    fn a_protocol_that_is_not_spoken_is_refused() {
        let check = |variable: &str, value: &str| {
            let said = |name: &str| (name == variable).then(|| value.to_owned());
            check_protocol(said).map_err(|error| error.to_string())
        };
        for variable in PROTOCOLS.into_iter().chain([PROTOCOL_OF_ALL]) {
            assert_eq!(check(variable, "http/protobuf"), Ok(()));
            for value in ["grpc", "http/json", "pigeon"] {
                let why = check(variable, value).unwrap_err();
                let expected = format!("{variable}: {value:?} is not spoken here");
                assert!(why.starts_with(&expected), "{why}");
            }
        }
        assert_eq!(check("OTEL_SERVICE_NAME", "grpc"), Ok(()));
        // The variables of spans and of metrics override the general one.
        let said = |name: &str| match name {
            PROTOCOL_OF_ALL => Some("grpc".to_owned()),
            _ => PROTOCOLS.contains(&name).then(|| PROTOCOL.to_owned()),
        };
        assert!(check_protocol(said).is_ok());
    }

    #[test]
    fn errors_do_not_show_credentials() {
        for secret in [
            "http://me:secret@host name/v1",
            "ftp://me:secret@host/",
            "me:secret@host?secret",
        ] {
            let said = format!("{:#}", is_secure(secret).unwrap_err());
            assert!(said.contains("host") && !said.contains("secret"), "{said}");
        }
        assert!(is_secure("https://host").unwrap() && !is_secure("http://me:a@host").unwrap());
    }

    #[test]
    fn attributes_are_found_by_their_whole_name() {
        let list = "peer.service.name=other, service.name =mine";
        assert!(has_attribute(list, "service.name") && !has_attribute(list, "name"));
        assert!(!has_attribute("peer.service.name=other", "service.name"));
    }
}
