//! Spans that processes of the command send to a collector.

use crate::collector::{CLIENT, Receiver, SERVER, spans_of};
use crate::serving::Serving;
use crate::{Folder, comes};

#[test]
fn a_gateway_and_its_server_on_stdio_are_in_one_trace() {
    let collector = Receiver::new();
    let folder = Folder::new("traces");
    let server = format!(
        "[servers.one]\ncommand = [{:?}, \"serve\", \"stdio:\", \"--otlp\", {:?}]\nenv = {{ OTEL_SERVICE_NAME = \"the server\", OTEL_BSP_SCHEDULE_DELAY = \"100\" }}\n",
        env!("CARGO_BIN_EXE_mcpbolt"),
        collector.address,
    );
    let file = folder.write("gateway.toml", &server);
    let file = file.to_str().unwrap();
    let gateway = Serving::with_env(
        &["gateway", "http://127.0.0.1:0/mcp", "--config", file],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ],
    );
    assert!(
        gateway
            .run(&["call", "one_test_simple_text"])
            .status
            .success()
    );
    let call = |service: &str, kind: i32| {
        let spans = spans_of(&collector, service);
        let named = |name: &str| name.starts_with("tools/call ");
        spans
            .into_iter()
            .find(|span| named(&span.name) && span.kind == kind)
    };
    let all = || {
        [
            call("mcpbolt", SERVER),
            call("mcpbolt", CLIENT),
            call("the server", SERVER),
        ]
    };
    assert!(comes(|| all().iter().all(Option::is_some)), "{:#?}", all());
    let [near, passing, far] = all().map(Option::unwrap);
    assert_eq!(near.name, "tools/call one_test_simple_text");
    assert_eq!(far.name, "tools/call test_simple_text");
    assert_eq!(
        (&near.trace_id, &near.trace_id),
        (&passing.trace_id, &far.trace_id)
    );
    assert_eq!(
        (passing.parent_span_id, far.parent_span_id),
        (near.span_id, passing.span_id)
    );
}

/// Each process counts for itself, so a collector has to tell their counts apart.
#[cfg(unix)]
#[test]
fn each_worker_says_which_instance_of_the_service_it_is() {
    let collector = Receiver::new();
    let args = ["serve", "http://127.0.0.1:0/mcp", "--workers", "2"];
    let _serving = Serving::with_env(
        &[&args[..], &["--otlp", &collector.address]].concat(),
        &[("OTEL_METRIC_EXPORT_INTERVAL", "100")],
    );
    let instances = || collector.got.lock().unwrap().instances.clone();
    assert!(comes(|| instances().len() == 2), "{:?}", instances());
}

/// A collector without TLS takes no certificates of the system; an empty variable names none.
#[cfg(target_os = "linux")]
#[test]
fn a_collector_without_tls_takes_no_certificates() {
    let collector = Receiver::new();
    let serving = Serving::with_env(
        &["serve", "http://127.0.0.1:0/mcp"],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ("SSL_CERT_FILE", "/dev/null"),
            ("SSL_CERT_DIR", "/dev/null"),
        ],
    );
    assert!(serving.run(&["call", "test_simple_text"]).status.success());
    assert!(comes(|| !spans_of(&collector, "mcpbolt").is_empty()));
}
