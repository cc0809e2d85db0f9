//! Our client in Rust, traced by OpenTelemetry's SDK: `interop-traced ADDRESS TOOL…` calls the tools within one span. The server beside
//! it is `mcpbolt serve`.
//!
//! Each span that has ended becomes a line of JSON in the file that the variable SPANS names.

use std::env::{args, var};
use std::error::Error;
use std::fs::File;
use std::future::IntoFuture;
use std::io::Write;

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::ConnectOptions;
use mcpbolt::telemetry::OpenTelemetry;
use opentelemetry::trace::{FutureExt, SpanId, TraceContextExt, Tracer};
use opentelemetry::{Context, global};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use serde_json::json;

/// Writes the lines.
#[derive(Debug)]
struct Lines(File);

impl SpanExporter for Lines {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        for span in spans {
            let parent = span.parent_span_id;
            let parent = (parent != SpanId::INVALID).then(|| parent.to_string());
            let told = json!({
                "name": span.name,
                "kind": format!("{:?}", span.span_kind).to_uppercase(),
                "trace": span.span_context.trace_id().to_string(),
                "id": span.span_context.span_id().to_string(),
                "parent": parent.unwrap_or_default(),
            });
            writeln!(&self.0, "{told}").expect("the file can be written");
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (address, tools) = (args().nth(1).unwrap_or_default(), args().skip(2));
    let file = File::options()
        .append(true)
        .create(true)
        .open(var("SPANS")?)?;
    let provider = SdkTracerProvider::builder().with_simple_exporter(Lines(file));
    global::set_tracer_provider(provider.build());
    let builder = Client::builder("traced", "1").observer(OpenTelemetry::global());
    let address = address.parse()?;
    block_on(async {
        let client = builder.open(&address, ConnectOptions::default()).await?;
        let work = Context::current_with_span(global::tracer("traced").start("work"));
        for tool in tools {
            let call = client.call_tool(&tool, &json!({})).into_future();
            call.with_context(work.clone()).await?;
        }
        client.handle().close();
        Ok(())
    })
}
