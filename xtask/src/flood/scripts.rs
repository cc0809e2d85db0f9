//! The bytes that hostile connections send, generated once, and how they are sent.

use std::sync::Arc;
use std::time::Duration;

use crate::attacks::{frames, h2::H2};

/// The behaviour of one kind of hostile connection.
pub struct Script {
    /// The bytes to send.
    pub bytes: Arc<[u8]>,
    /// The bytes sent at a time.
    pub piece: usize,
    /// Whether the attacker reads the server's output.
    pub reads: bool,
    /// How long the connection stays open after all bytes are sent, before a new one replaces it.
    pub stays: Duration,
}

const MIB: usize = 1 << 20;
const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(2);
const AT_ONCE: Duration = Duration::from_millis(50);

/// All scripts, for a server with the `Host` header `host`.
pub fn all(host: &str) -> Vec<Script> {
    let post = |more: &str, body: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let upgrade = format!(
        "GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let on_websocket =
        |frames: Vec<Vec<u8>>| [upgrade.clone().into_bytes(), frames.concat()].concat();
    let begin = vec![
        frames::text(initialize("").as_bytes()),
        frames::text(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
    ];
    let subscribe = |number: usize| {
        let uri = format!("notes://{number}{}/text", "x".repeat(64 << 10));
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        frames::text(format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"resources/subscribe","params":{params}}}"#).as_bytes())
    };
    let unfinished = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: {}\r\n\r\n{}",
        15 * MIB,
        "x".repeat(15 * MIB - 1)
    );
    let streams = H2 {
        streams: 200,
        headers: [
            ":method: GET",
            ":scheme: http",
            ":path: /mcp",
            "accept: text/event-stream",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([format!(":authority: {host}")])
        .collect(),
        body: None,
        end: true,
    };
    let stateless = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n";
    let script = |bytes: Vec<u8>, piece, reads, stays| Script {
        bytes: bytes.into(),
        piece,
        reads,
        stays,
    };
    vec![
        // Slow headers.
        script(
            format!(
                "POST /mcp HTTP/1.1\r\nHost: {host}\r\nX-A: {}",
                "x".repeat(4096)
            )
            .into(),
            1,
            false,
            LONG,
        ),
        // Unfinished bodies.
        script(unfinished.into(), 256 << 10, false, LONG),
        // Sessions.
        script(
            post("", &initialize("")).repeat(20).into(),
            8192,
            true,
            AT_ONCE,
        ),
        // Bare GETs.
        script(
            format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n")
                .into(),
            4096,
            false,
            SHORT,
        ),
        // Huge `initialize` requests.
        script(
            post("", &initialize(&"x".repeat(8 * MIB))).into(),
            256 << 10,
            true,
            AT_ONCE,
        ),
        // Wrong keys.
        script(
            post(
                "X-API-Key: key-eve\r\nAuthorization: Bearer x\r\n",
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            )
            .repeat(20)
            .into(),
            8192,
            true,
            AT_ONCE,
        ),
        // Subscriptions.
        script(
            on_websocket(begin.into_iter().chain((1..40).map(subscribe)).collect()),
            128 << 10,
            false,
            SHORT,
        ),
        // Fragments.
        script(on_websocket(fragments()), 128 << 10, false, SHORT),
        // Pings.
        script(
            on_websocket(vec![[0x89, 0x81, 0, 0, 0, 0, b'x'].repeat(20_000)]),
            32 << 10,
            false,
            SHORT,
        ),
        // Unfinished frames.
        script(
            on_websocket(vec![
                [
                    &[0x81, 0xff][..],
                    &(10 * MIB as u64).to_be_bytes(),
                    &[0; 4],
                    &[b' '; 4096],
                ]
                .concat(),
            ]),
            16,
            false,
            LONG,
        ),
        // HTTP/2 streams.
        script(streams.bytes(str::to_owned), 8192, true, SHORT),
        // Calls.
        script(
            post(&format!("{stateless}Mcp-Name: sleep\r\n"), &sleep()).into(),
            8192,
            false,
            SHORT,
        ),
        // Long headers.
        script(
            format!(
                "GET /mcp HTTP/1.1\r\nHost: {host}\r\n{}\r\n",
                "X-A: b\r\n".repeat(10_000)
            )
            .into(),
            8192,
            true,
            AT_ONCE,
        ),
    ]
}

fn initialize(more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"a","version":"1","x":"{more}"}}}}}}"#
    )
}

fn sleep() -> String {
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":1500},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#.to_owned()
}

/// A fragmented text message that never ends.
fn fragments() -> Vec<Vec<u8>> {
    let frame = |opcode: u8| {
        let payload = [b' '; 1024];
        let mut frame = vec![opcode, 0xfe];
        frame.extend(1024_u16.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend_from_slice(&payload);
        frame
    };
    std::iter::once(frame(1))
        .chain((0..12 << 10).map(|_| frame(0)))
        .collect()
}
