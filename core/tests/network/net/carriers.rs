//! Every revision over each carrier, both ways.

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{Address, ConnectOptions, ServeOptions};
use mcpbolt::mcp::Revision;
use mcpbolt::model::Elicited;
use serde_json::json;

use crate::net::{Folder, Served, server};

/// The address that a server listens on, and the one that a client uses.
fn carriers(folder: &Folder) -> Vec<(String, String)> {
    let unix = |name: &str, framing: &str| folder.address(name) + framing;
    let both = |address: &str| (address.to_owned(), String::new());
    vec![
        both("tcp:127.0.0.1:0"),
        both("tcp:[::1]:0?framing=length"),
        ("tcp:127.0.0.1:0?framing=detect".into(), "length".into()),
        ("tcp:127.0.0.1:0?framing=detect".into(), "line".into()),
        both(&unix("line", "")),
        both(&unix("length", "?framing=length")),
        both("ws://127.0.0.1:0/mcp"),
        // WebSocket lives at the path of Streamable HTTP.
        ("http://localhost:0/deep/mcp".into(), "ws".into()),
    ]
}

/// The client's form of the address that a server listens on.
fn seen(address: &Address, how: &str) -> Address {
    let address = address.to_string();
    let address = match how {
        "" => address,
        "ws" => address.replacen("http", "ws", 1),
        framing => address.replace("detect", framing),
    };
    address.parse().unwrap()
}

/// R-STD-15, R-ACT-19, R-WSK-01, R-WSK-02, R-WSK-08, R-CUS-01; R-CUS-02: streams of bytes take the
/// framing of stdin and stdout; R-CUS-03: in 2026-07-28 the question comes in an answer, since servers send no requests.
#[test]
fn every_revision_is_spoken_over_each_carrier() {
    let folder = Folder::new();
    for (address, how) in carriers(&folder) {
        let served = Served::begin(&address, ServeOptions::default());
        let address = seen(served.address(), &how);
        for revision in Revision::ALL {
            let builder = Client::builder("test", "1")
                .revisions([revision].into_iter().collect())
                .on_form(|_, _| async {
                    Ok(Elicited::Accepted(
                        json!({"name": "Ada"}).as_object().unwrap().clone(),
                    ))
                });
            let options = ConnectOptions::default();
            let client = block_on(builder.open(&address, options))
                .unwrap_or_else(|error| panic!("{address}, {revision:?}: {error}"));
            assert_eq!(client.revision(), Some(revision), "{address}");
            exchange(&client, &address);
            if revision >= Revision::V2025_06_18 {
                let asked = client.call_tool("ask", &json!({})).wait().unwrap();
                assert!(asked.text().contains("Ada"), "{address}: {}", asked.text());
            }
        }
    }
}

/// Small and large, many at once, with line ends and more within.
fn exchange(client: &Client, address: &Address) {
    let large = "ä\n\r\u{2028}x".repeat(20_000);
    for text in ["", "one\ntwo", &large] {
        let result = client.call_tool("echo", &json!({"text": text})).wait();
        assert!(result.unwrap().text() == text, "{address}");
    }
    let many: Vec<_> = (0..100)
        .map(|n| client.call_tool("echo", &json!({"text": n.to_string()})))
        .collect();
    for (n, call) in many.into_iter().enumerate() {
        assert_eq!(call.wait().unwrap().text(), n.to_string(), "{address}");
    }
    let tools = block_on(client.list_tools()).unwrap();
    assert_eq!(tools.len(), 4, "{address}");
}

/// R-HTP-07: without a verifier a server is not reached from other machines, unless it is told to.
#[test]
fn a_server_that_anybody_may_use_stays_on_its_machine() {
    let open = server(&Default::default());
    for address in [
        "tcp:0.0.0.0:0",
        "tcp:[::]:0?framing=length",
        "http://0.0.0.0:0/mcp",
        "http://[::]:0/mcp",
        "ws://0.0.0.0:0/mcp",
        "http://[::ffff:0.0.0.0]:0/mcp",
    ] {
        let told = open.serve(address).start();
        let error = told.unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::PermissionDenied,
            "{address}: {error}"
        );
        assert!(error.to_string().contains("`anonymous`"), "{error}");
    }
    for address in [
        "tcp:127.0.0.2:0",
        "http://localhost:0/mcp",
        "ws://127.0.0.3:0/mcp",
    ] {
        Served::begin(address, ServeOptions::default()).end();
    }
    let mut wrong = ServeOptions::default();
    wrong.http.origins.push("app.example".into());
    let told = open.serve("http://127.0.0.1:0/mcp").options(wrong).start();
    let error = told.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(
        error.to_string().contains("origins: \"app.example\""),
        "{error}"
    );
}
