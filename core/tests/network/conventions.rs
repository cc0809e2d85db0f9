//! Spans and metrics as a receiver of OTLP gets them, held against the conventions for MCP in `corpus/telemetry.json`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Request, Response};
use mcpbolt::chain::{External, Front, Prefix};
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::RequestOptions;
use mcpbolt::io::{ConnectOptions, ServeOptions};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::model::Root;
use mcpbolt::server::{Arguments, Context, HandlerError, Prompt, Resource, Server, Tool};
use mcpbolt::telemetry::{BUCKETS, OpenTelemetry};
use opentelemetry::Context as Current;
use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_sdk::Resource as Described;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use serde_json::{Value, json};

use crate::collector::{CLIENT, Receiver, SERVER, spans_of, values};

/// Posts over a connection of its own.
#[derive(Debug)]
struct Poster;

type Posting<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Poster {
    fn send_bytes<'s, 'a>(&'s self, request: Request<Bytes>) -> Posting<'a>
    where
        's: 'a,
        Self: 'a,
    {
        let (uri, body) = (request.uri().clone(), request.body().clone());
        let mut stream = TcpStream::connect(uri.authority().unwrap().as_str()).unwrap();
        let head = format!(
            "POST {} HTTP/1.1\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
            uri.path(),
            request.headers()["content-type"].to_str().unwrap(),
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert_eq!(answer, "HTTP/1.1 200 OK\r\n");
        Box::pin(ready(Ok(Response::new(Bytes::new()))))
    }
}

/// One process as far as OpenTelemetry is concerned.
struct Process {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    observer: Arc<OpenTelemetry>,
}

impl Process {
    fn new(receiver: &Receiver, name: &'static str) -> Self {
        let resource = Described::builder().with_service_name(name).build();
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(Poster)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", receiver.address));
        let metrics = MetricExporter::builder()
            .with_http()
            .with_http_client(Poster)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/metrics", receiver.address));
        let tracers = SdkTracerProvider::builder()
            .with_batch_exporter(spans.build().unwrap())
            .with_resource(resource.clone())
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .build();
        let meters = SdkMeterProvider::builder()
            .with_periodic_exporter(metrics.build().unwrap())
            .with_resource(resource)
            .build();
        let observer = OpenTelemetry::new(&tracers, &meters);
        Self {
            tracers,
            meters,
            observer,
        }
    }

    fn flush(&self) {
        self.tracers.force_flush().unwrap();
        self.meters.force_flush().unwrap();
    }
}

fn server(observer: Arc<OpenTelemetry>) -> Server {
    Server::builder("shop", "1.0.0")
        .observer(observer)
        .tool(Tool::new("order"), |_: Arguments, _| async {
            "secret answer"
        })
        .tool(Tool::new("fail"), |_: Arguments, _| async {
            Err::<&str, _>(HandlerError::new("secret failure"))
        })
        .prompt(Prompt::new("ask"), |_, _| async { Ok("secret question") })
        .resource(Resource::new("shop://prices", "prices"), |_, _| async {
            Ok("secret price")
        })
        .build()
        .unwrap()
}

/// The conventions, which the tests of all languages read.
fn conventions() -> Value {
    serde_json::from_str(include_str!("../../../corpus/telemetry.json")).unwrap()
}

const ERROR: i32 = 2;

#[test]
fn spans_and_metrics_are_those_of_the_conventions_on_both_sides() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let receiver = Receiver::new();
        let (near, far) = (
            Process::new(&receiver, "near"),
            Process::new(&receiver, "far"),
        );
        let serving = server(far.observer.clone())
            .serve("http://127.0.0.1:0/mcp")
            .start()
            .unwrap();
        let client = Client::builder("test", "1")
            .revisions(Revisions::only(revision))
            .observer(near.observer.clone());
        let client = client.open(serving.address(), ConnectOptions::default());
        let client = block_on(client).unwrap();
        let arguments = json!({"password": "secret"});
        client.call_tool("order", &arguments).wait().unwrap();
        assert!(
            client
                .call_tool("fail", &arguments)
                .wait()
                .unwrap()
                .is_error
        );
        client.call_tool("unknown", &arguments).wait().unwrap_err();
        block_on(client.get_prompt("ask", &[])).unwrap();
        block_on(client.read_resource("shop://prices")).unwrap();
        block_on(client.list_tools()).unwrap();
        let own = client.request("no/such_method", None, RequestOptions::default());
        block_on(own.unwrap()).unwrap_err();
        drop(client);
        serving.stop();
        serving.wait();
        near.flush();
        far.flush();

        let conventions = conventions();
        // Name; tool, prompt or URI; error.type and whether the span is an error, on the client and on the server; code.
        type Row<'a> = (
            &'a str,
            &'a str,
            Option<&'a str>,
            Option<&'a str>,
            Option<&'a str>,
        );
        let rows: [Row<'_>; 7] = [
            ("tools/call order", "order", None, None, None),
            (
                "tools/call fail",
                "fail",
                Some("tool_error"),
                Some("tool_error"),
                None,
            ),
            (
                "tools/call unknown",
                "unknown",
                Some("-32602"),
                None,
                Some("-32602"),
            ),
            ("prompts/get ask", "ask", None, None, None),
            ("resources/read", "shop://prices", None, None, None),
            ("tools/list", "", None, None, None),
            // The names of spans are few, so a method that no revision defines is not in them.
            ("_OTHER", "", Some("-32601"), None, Some("-32601")),
        ];
        for (service, kind) in [("near", CLIENT), ("far", SERVER)] {
            let spans = spans_of(&receiver, service);
            for (name, about, near_error, far_error, code) in rows {
                let mut own = spans.iter().filter(|span| span.name == name);
                let span = own
                    .next()
                    .unwrap_or_else(|| panic!("{service}: no {name}: {spans:#?}"));
                assert!(own.next().is_none(), "{service}: {name} twice");
                let has = values(&span.attributes);
                let is_near = service == "near";
                assert_eq!(span.kind, kind, "{service}: {name}");
                let defined = conventions["spans"].as_object().unwrap();
                for (attribute, when) in defined {
                    assert!(
                        when != "always" || has.contains_key(attribute),
                        "{name}: no {attribute}"
                    );
                }
                for attribute in has.keys() {
                    let is_defined = defined.contains_key(attribute);
                    assert!(is_defined, "{name}: {attribute} is not in the conventions");
                }
                let get = |name: &str| has.get(name).map(String::as_str);
                let method = match name {
                    "_OTHER" => "no/such_method",
                    name => name.split(' ').next().unwrap(),
                };
                assert_eq!(get("mcp.method.name"), Some(method));
                assert_eq!(get("mcp.protocol.version"), Some(revision.name()));
                let is_call = method == "tools/call";
                assert_eq!(get("gen_ai.tool.name"), is_call.then_some(about));
                assert_eq!(
                    get("gen_ai.operation.name"),
                    is_call.then_some("execute_tool")
                );
                let is_prompt = method == "prompts/get";
                assert_eq!(get("gen_ai.prompt.name"), is_prompt.then_some(about));
                let is_read = method == "resources/read";
                assert_eq!(get("mcp.resource.uri"), is_read.then_some(about));
                assert_eq!(get("network.transport"), Some("tcp"));
                assert_eq!(get("network.protocol.name"), Some("http"));
                assert_eq!(get("server.address"), is_near.then_some("127.0.0.1"));
                assert_eq!(get("server.port").is_some(), is_near);
                assert_eq!(get("client.address"), (!is_near).then_some("127.0.0.1"));
                // Not from 2026-07-28 on.
                let has_session = !is_near && revision == Revision::V2025_11_25;
                assert_eq!(get("mcp.session.id").is_some(), has_session, "{service}");
                let error = if is_near { near_error } else { far_error };
                assert_eq!(get("error.type"), error, "{service}: {name}");
                assert_eq!(get("rpc.response.status_code"), code);
                let status = span.status.as_ref().map_or(0, |status| status.code);
                assert_eq!(status == ERROR, error.is_some(), "{service}: {name}");
            }
        }
        // Each span of the server has that of the client as its parent.
        let (near_spans, far_spans) = (spans_of(&receiver, "near"), spans_of(&receiver, "far"));
        for (name, ..) in rows {
            let of = |spans: &[Span]| spans.iter().find(|span| span.name == name).unwrap().clone();
            let (near, far) = (of(&near_spans), of(&far_spans));
            assert_eq!(
                (near.trace_id, near.span_id),
                (far.trace_id, far.parent_span_id),
                "{name}"
            );
        }
        check_metrics(&receiver);
        let got = receiver.got.lock().unwrap();
        let has = |text: &str| {
            got.bytes
                .windows(text.len())
                .any(|it| it == text.as_bytes())
        };
        assert!(!has("secret") && !has("password"));
    }
}

/// Holds each metric against the conventions. Only the last values of each count.
fn check_metrics(receiver: &Receiver) {
    let conventions = conventions();
    let got = receiver.got.lock().unwrap();
    for (service, role) in [("near", "client"), ("far", "server")] {
        let own = got.metrics.iter().filter(|(of, _)| of == service);
        let own: BTreeMap<_, _> = own
            .map(|(_, metric)| (metric.name.as_str(), metric))
            .collect();
        let operations = format!("mcp.{role}.operation.duration");
        let sessions = format!("mcp.{role}.session.duration");
        for name in [&operations, &sessions] {
            let Some(metric) = own.get(name.as_str()) else {
                // A server of the stateless era has no sessions.
                assert_eq!(name, "mcp.server.session.duration");
                continue;
            };
            assert_eq!(metric.unit, conventions["histograms"][name], "{name}");
            let Some(Data::Histogram(histogram)) = &metric.data else {
                panic!("{name} is no histogram: {metric:?}");
            };
            for point in &histogram.data_points {
                assert_eq!(point.explicit_bounds, BUCKETS, "{name}");
                for bound in conventions["boundaries"].as_array().unwrap() {
                    let bound = bound.as_f64().unwrap();
                    assert!(point.explicit_bounds.contains(&bound), "{bound}");
                }
                let defined = conventions["attributes of histograms"].as_array().unwrap();
                for attribute in values(&point.attributes).keys() {
                    let is_defined = defined.iter().any(|it| it == attribute);
                    assert!(is_defined, "{name}: {attribute}");
                }
            }
            let count = |has: &[(&str, &str)]| -> u64 {
                let points = histogram.data_points.iter().filter(|point| {
                    let own = values(&point.attributes);
                    has.iter()
                        .all(|(name, value)| own.get(*name).is_some_and(|it| it == value))
                });
                points.map(|point| point.count).sum()
            };
            if *name == operations {
                let call = ("mcp.method.name", "tools/call");
                assert_eq!(count(&[call]), 3, "{role}");
                assert_eq!(count(&[call, ("gen_ai.tool.name", "order")]), 1);
                assert_eq!(count(&[("error.type", "tool_error")]), 1);
                // A name that nobody has made good is not told apart.
                let other = [
                    ("gen_ai.tool.name", "_OTHER"),
                    ("rpc.response.status_code", "-32602"),
                ];
                assert_eq!(count(&other), 1);
            } else {
                assert_eq!(count(&[]), 1, "{role}");
            }
        }
        for name in [
            "active_requests",
            "active_sessions",
            "request_bytes",
            "answer_bytes",
        ] {
            let name = format!("mcpbolt.{role}.{name}");
            let Some(Data::Sum(sum)) = own.get(&*name).and_then(|it| it.data.as_ref()) else {
                panic!("no {name}: {:?}", own.keys());
            };
            assert_eq!(sum.is_monotonic, name.ends_with("bytes"));
        }
        // What a client sends does not wait.
        let waits = own.contains_key(&*format!("mcpbolt.{role}.waiting_requests"));
        assert_eq!(waits, role == "server");
    }
}

#[test]
fn a_trace_leads_from_the_client_through_a_gateway_to_the_server() {
    for (near, far) in [
        (Revision::V2025_11_25, Revision::V2025_11_25),
        (Revision::V2025_11_25, Revision::V2026_07_28),
        (Revision::V2026_07_28, Revision::V2025_11_25),
        (Revision::V2026_07_28, Revision::V2026_07_28),
    ] {
        let receiver = Receiver::new();
        let [client, gateway, server_of] =
            ["client", "gateway", "server"].map(|name| Process::new(&receiver, name));
        let serving = server(server_of.observer.clone())
            .serve("tcp:127.0.0.1:0")
            .start()
            .unwrap();
        let external = External::at("shop", serving.address().clone(), ConnectOptions::default())
            .revisions(Revisions::only(far));
        let front = Front::new(external).observer(gateway.observer.clone());
        let anywhere = "http://127.0.0.1:0/mcp".parse().unwrap();
        let passing = front.serve(&anywhere, ServeOptions::default()).unwrap();
        let connected = Client::builder("test", "1")
            .revisions(Revisions::only(near))
            .observer(client.observer.clone())
            .open(passing.address(), ConnectOptions::default());
        let connected = block_on(connected).unwrap();
        let tracer = client.tracers.tracer("the program");
        let trace = tracer.in_span("work", |context| {
            connected.call_tool("order", &json!({})).wait().unwrap();
            context.span().span_context().clone()
        });
        let both = [&client, &gateway, &server_of];
        let begun = std::time::Instant::now();
        let call = |service: &str, kind: i32| {
            let spans = spans_of(&receiver, service);
            spans
                .into_iter()
                .find(|span| span.name == "tools/call order" && span.kind == kind)
        };
        let all = loop {
            both.iter().for_each(|process| process.flush());
            let all = [
                call("client", CLIENT),
                call("gateway", SERVER),
                call("gateway", CLIENT),
                call("server", SERVER),
            ];
            if all.iter().all(Option::is_some) {
                break all.map(Option::unwrap);
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{near} {far}: {all:#?}"
            );
        };
        let mut parent = trace.span_id().to_bytes().to_vec();
        for span in all {
            assert_eq!(span.trace_id, trace.trace_id().to_bytes(), "{near} {far}");
            assert_eq!(span.parent_span_id, parent, "{near} {far}: {}", span.name);
            parent = span.span_id;
        }
    }
}

/// A server that observes its requests, whose handlers have spans of their own and ask their clients.
fn own_part(process: &Process) -> Server {
    let tracer = process.tracers.tracer("the program");
    Server::builder("shop", "1.0.0")
        .observer(process.observer.clone())
        .tool(Tool::new("order"), move |_: Arguments, _| {
            tracer.in_span("work", |_| ());
            async { "done" }
        })
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                context.roots().await?;
                let is_within = Current::current().has_active_span();
                Ok::<_, HandlerError>(if is_within { "done" } else { "no span" })
            },
        )
        .build()
        .unwrap()
}

#[test]
fn a_server_that_external_ones_stand_beside_observes_each_request_once() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let receiver = Receiver::new();
        let process = Process::new(&receiver, "own");
        let own = own_part(&process);
        let far = Server::builder("far", "1.0.0")
            .tool(Tool::new("order"), |_: Arguments, _| async { "done" });
        let far =
            External::server("far", &far.build().unwrap()).prefix(Prefix::new("far").unwrap());
        let front = Front::new(External::server("shop", &own).as_own()).introducing(own.config());
        let front = front.join(far).unwrap();
        let anywhere = "http://127.0.0.1:0/mcp".parse().unwrap();
        let passing = front.serve(&anywhere, ServeOptions::default()).unwrap();
        let client = Client::builder("test", "1")
            .revisions(Revisions::only(revision))
            .roots([Root::new("file:///here")])
            .open(passing.address(), ConnectOptions::default());
        let client = block_on(client).unwrap();
        for name in ["order", "ask", "far_order"] {
            let answer = client.call_tool(name, &json!({})).wait().unwrap();
            assert!(!answer.is_error, "{name}: {answer:?}");
            assert!(!format!("{answer:?}").contains("no span"), "{name}");
        }
        block_on(client.list_tools()).unwrap();
        drop(client);
        passing.stop();
        passing.wait();
        process.flush();

        let spans = spans_of(&receiver, "own");
        let named = |name: &str, kind: i32| -> Vec<&Span> {
            let own = spans.iter();
            own.filter(|span| span.name == name && span.kind == kind)
                .collect()
        };
        // A question of the stateless era is part of an answer, after which the call comes again.
        let is_older = revision == Revision::V2025_11_25;
        let calls = if is_older { 1 } else { 2 };
        for (name, count) in [
            ("tools/call order", 1),
            ("tools/call far_order", 1),
            ("tools/call ask", calls),
            ("tools/list", 1),
        ] {
            let own = named(name, SERVER);
            assert_eq!(own.len(), count, "{revision} {name}: {spans:#?}");
        }
        let [order] = named("tools/call order", SERVER)[..] else {
            unreachable!("counted")
        };
        let work = spans.iter().find(|span| span.name == "work").unwrap();
        assert_eq!(work.parent_span_id, order.span_id, "{revision}");
        // What the front sends is only what it passes on to the other server.
        for (name, within, is_sent) in [
            ("tools/call order", "tools/call far_order", true),
            ("tools/list", "tools/list", true),
            ("roots/list", "tools/call ask", is_older),
            ("tools/call ask", "", false),
        ] {
            let sent = named(name, CLIENT);
            assert_eq!(
                sent.len(),
                usize::from(is_sent),
                "{revision} {name}: {spans:#?}"
            );
            if let [sent] = sent[..] {
                let [within] = named(within, SERVER)[..] else {
                    panic!("one {within}")
                };
                assert_eq!(sent.parent_span_id, within.span_id, "{revision} {name}");
            }
        }
        assert_eq!(
            counted(&receiver, "mcp.server.operation.duration", "tools/call"),
            2 + calls as u64
        );
        assert_eq!(
            counted(&receiver, "mcp.server.operation.duration", "tools/list"),
            1
        );
        assert_eq!(
            counted(&receiver, "mcp.client.operation.duration", "roots/list"),
            u64::from(is_older)
        );
    }
}

/// How many requests with that method a histogram has, by its last values.
fn counted(receiver: &Receiver, name: &str, method: &str) -> u64 {
    let got = receiver.got.lock().unwrap();
    let mut own = got.metrics.iter().rev();
    let last = own.find(|(_, metric)| metric.name == name);
    let Some(Data::Histogram(histogram)) = last.and_then(|(_, metric)| metric.data.as_ref()) else {
        return 0;
    };
    let points = histogram.data_points.iter();
    let of_method = points.filter(|point| values(&point.attributes)["mcp.method.name"] == method);
    of_method.map(|point| point.count).sum()
}
