//! Initial messages: every kind, both member orders, every type of value.

/// Valid messages and near misses, as text.
pub fn messages() -> Vec<String> {
    let long = "lorem \\\"ipsum\\\" dolor\\n".repeat(20);
    let cjk = "数据😀é".repeat(40);
    let numbers = (0..60)
        .map(|i| format!("{}.{i}e-{i}", i * 7))
        .collect::<Vec<_>>();
    let deep = format!("{}{}", "[{\"a\":".repeat(40) + "1", "}]".repeat(40));
    let escapes = "\\u00e9\\\\\\/\\b\\f\\ud83d\\ude00".repeat(9);
    let mut all = vec![
        r#"{"action":"file_system.read","params":{"path":"/data/file.txt"},"tool":"filesystem_tool","context":"session-123","metadata":{"version":"1.0","client_id":"agent-xyz","request_id":"uuid-xyz-123","timestamp":"2023-10-25T12:34:56Z"}}"#.to_owned(),
        r#"{"metadata":{"request_id":7,"protocol_version":"2.0","auth":{"token":"t"}},"params":{},"action":"a"}"#.to_owned(),
        r#"{"status":"error","error":{"type":"RESOURCE_NOT_FOUND","message":"not found","details":{"path":"p"},"code":404},"metadata":{"request_id":"r"}}"#.to_owned(),
        r#"{"type":"complete","status":"success","data":{"full_text":"The quick brown fox"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r-7","reason":"no longer needed"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p1","progress":0.5,"total":1,"message":"half"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"3f2a","method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":12}}}"#.to_owned(),
        r#"{"method":"resources/read","params":{"uri":"file:\/\/\/a%20b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"info","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1","baggage":"k=v"}},"id":9007199254740993,"jsonrpc":"2.0"}"#.to_owned(),
        r#"{"result":{"content":[{"type":"text","text":"ok"}],"resultType":"complete"},"jsonrpc":"2.0","id":5}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"bad","data":{"a":[1,2,{"b":null}]}}}"#.to_owned(),
        r#" [ {"jsonrpc":"2.0","id":1,"method":"a"} , {"jsonrpc":"2.0","method":"b"} ] "#.to_owned(),
        "{\r\n  \"jsonrpc\" : \"2.0\",\r\n\t\"id\" : \"\\u0037\",\r\n \"method\" : \"x\"\r\n}".to_owned(),
    ];
    for value in [
        format!("\"{long}\""),
        format!("\"{cjk}\""),
        format!("\"{escapes}\""),
        format!("[{}]", numbers.join(",")),
        deep,
        format!("\"{}\"", "QUJD".repeat(100)),
        r#"{"a":[],"b":{},"c":[[]],"d":[{}],"e":[true,false,null,-0,1e+2]}"#.to_owned(),
    ] {
        all.push(format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{value}}}}}"#
        ));
        all.push(format!(
            r#"{{"params":{{"arguments":{{"v":{value}}},"name":"n"}},"method":"tools/call","id":7,"jsonrpc":"2.0"}}"#
        ));
    }
    all
}
