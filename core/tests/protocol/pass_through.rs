//! Parts that peers may add or leave out, and that the engine accepts: odd capabilities, no discovery, settings
//! and metadata of extensions that the engine does not know.

use mcpbolt::client::{Client, block_on};
use mcpbolt::mcp::Revision;
use mcpbolt::server::{Arguments, Context, Resource, ResourceContents, Tool};
use serde_json::json;

use crate::server;
use crate::wire::Wire;

/// R-CAP-07, R-DSC-02: nor does a client need to discover anything first.
#[test]
fn odd_capabilities_break_no_handshake_and_no_first_request() {
    let server = server(1).build().unwrap();
    let odd = json!({"unknown": {"deep": [1]}, "roots": {"listChanged": 7}, "sampling": {"": null}, "tools": true});
    for revision in Revision::ALL {
        let mut wire = Wire::open(&server, revision, odd.clone());
        let first = wire.ask(revision, "tools/list", json!({}));
        assert_eq!(
            first["result"]["tools"][0]["name"], "tool-0",
            "{revision}: {first}"
        );
    }
}

/// R-EXT-05, R-EXT-06: MCP Apps and the authorization extensions, neither of which the engine knows.
#[test]
fn metadata_and_settings_of_unknown_extensions_pass_unchanged() {
    const CREDENTIALS: &str = "io.modelcontextprotocol/oauth-client-credentials";
    let settings = json!({"methods": ["private_key_jwt"], "issuer": null}).to_string();
    let link = json!({"ui": {"resourceUri": "ui://chart", "visibility": ["app"]}});
    let frame = json!({"ui": {"csp": {"connectDomains": ["https://a.example"]}}});
    let page = |uri: String, _: Context| async { Ok(ResourceContents::text(uri, "<p>")) };
    let chart = Resource::new("ui://chart", "chart")
        .mime_type("text/html;profile=mcp-app")
        .meta(frame.to_string());
    let server = server(0)
        .extension(CREDENTIALS, &settings)
        .tool(
            Tool::new("plot").meta(link.to_string()),
            |_: Arguments, _| async { "done" },
        )
        .resource(chart, page)
        .build()
        .unwrap();
    // Definitions have `_meta` from this revision on.
    let with_meta = |revision: &Revision| *revision >= Revision::V2025_06_18;
    for revision in Revision::ALL.into_iter().filter(with_meta) {
        let mut wire = Wire::open(&server, revision, json!({}));
        let tools = wire.ask(revision, "tools/list", json!({}));
        assert_eq!(tools["result"]["tools"][0]["_meta"], link, "{revision}");
        let resources = wire.ask(revision, "resources/list", json!({}));
        let listed = &resources["result"]["resources"][0];
        assert_eq!(listed["_meta"], frame, "{revision}");
        assert_eq!(listed["mimeType"], "text/html;profile=mcp-app");
    }
    let builder = Client::builder("test", "1").extension(CREDENTIALS, "{}");
    let client = block_on(builder.connect(&server)).unwrap();
    assert_eq!(client.extension(CREDENTIALS), Some(&*settings));
}

/// R-BAT-10: one element is answered while the others wait, and a cancelled one gets no answer.
#[test]
fn elements_of_a_batch_run_at_once_and_are_cancelled_alone() {
    let wait = |_: Arguments, context: Context| async move {
        context.cancel_token().cancelled().await;
        "cancelled"
    };
    let server = server(1).tool(Tool::new("wait"), wait).build().unwrap();
    let revision = Revision::V2025_03_26;
    let mut wire = Wire::open(&server, revision, json!({}));
    let call = |id: &str, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}});
    let batch = json!([
        call("first", "wait"),
        call("second", "tool-0"),
        call("third", "wait")
    ]);
    let mut heard = wire.say(&batch.to_string());
    heard.extend(wire.hear_until(|wire| wire.connection.in_flight() == 2));
    for id in ["third", "first"] {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        heard.extend(wire.say(&cancel.to_string()));
    }
    heard.extend(wire.hear_until(|wire| wire.connection.in_flight() == 0));
    let [only] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert_eq!(
        (&only["id"], &only["result"]["content"][0]["text"]),
        (&json!("second"), &json!("done"))
    );
}
