//! A collector of OpenTelemetry: takes spans and metrics by OTLP over HTTP, and decodes them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]
#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// Kinds of spans.
pub const CLIENT: i32 = 3;
pub const SERVER: i32 = 2;

/// A collector: takes what is exported over HTTP.
pub struct Receiver {
    pub address: String,
    pub got: Arc<Mutex<Got>>,
}

#[derive(Default)]
pub struct Got {
    pub spans: Vec<(String, Span)>,
    pub metrics: Vec<(String, Metric)>,
    /// What tells processes of one service apart.
    pub instances: BTreeSet<String>,
    pub bytes: Vec<u8>,
}

impl Receiver {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let got = Arc::<Mutex<Got>>::default();
        let all = got.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, all) = (stream.unwrap(), all.clone());
                thread::spawn(move || take(stream, &all));
            }
        });
        Self { address, got }
    }
}

/// Takes the requests of one connection.
fn take(stream: TcpStream, got: &Mutex<Got>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim().to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(("content-type", value)) => assert_eq!(value, "application/x-protobuf"),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut got = got.lock().unwrap();
        got.bytes.extend(&body);
        if first.starts_with("POST /v1/traces ") {
            for of in ExportTraceServiceRequest::decode(&*body)
                .unwrap()
                .resource_spans
            {
                let service = got.service(&of.resource.unwrap().attributes);
                let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
                got.spans.extend(spans.map(|span| (service.clone(), span)));
            }
        } else {
            assert!(first.starts_with("POST /v1/metrics "), "{first}");
            for of in ExportMetricsServiceRequest::decode(&*body)
                .unwrap()
                .resource_metrics
            {
                let service = got.service(&of.resource.unwrap().attributes);
                let metrics = of.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
                got.metrics.extend(metrics.map(|it| (service.clone(), it)));
            }
        }
        drop(got);
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
    }
}

impl Got {
    /// The name of the service with these attributes; notes its instance.
    fn service(&mut self, attributes: &[KeyValue]) -> String {
        let about = values(attributes);
        self.instances
            .extend(about.get("service.instance.id").cloned());
        about["service.name"].clone()
    }
}

/// Attributes by their names, their values as text.
pub fn values(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().unwrap().value.as_ref().unwrap() {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => format!("{number}"),
        other => panic!("{other:?}"),
    };
    let all = attributes
        .iter()
        .map(|it| (it.key.clone(), text(&it.value)));
    all.collect()
}

/// The spans of one service, in the order in which they began.
pub fn spans_of(receiver: &Receiver, service: &str) -> Vec<Span> {
    let got = receiver.got.lock().unwrap();
    let own = got.spans.iter().filter(|(of, _)| of == service);
    let mut own: Vec<_> = own.map(|(_, span)| span.clone()).collect();
    own.sort_by_key(|span| span.start_time_unix_nano);
    own
}
