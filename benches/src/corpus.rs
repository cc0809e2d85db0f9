//! The inputs: one message per class, and a mixed stream.

use mcpbolt::buffer::PADDING;
use mcpbolt::message::Frame;

/// One message with its padding.
pub struct Input {
    /// The name of its class.
    pub class: &'static str,
    block: Vec<u8>,
    len: usize,
}

impl Input {
    fn new(class: &'static str, text: String) -> Self {
        let mut block = text.into_bytes();
        let len = block.len();
        block.push(b'\n');
        block.resize(len + PADDING, 0);
        Self { class, block, len }
    }

    /// The message without padding.
    pub fn bytes(&self) -> &[u8] {
        &self.block[..self.len]
    }

    /// The message as a frame for the engine.
    pub fn frame(&self) -> Frame<'_> {
        Frame::new(&self.block, self.len).expect("padded")
    }
}

/// The message of one class.
pub fn input(class: &str) -> Option<Input> {
    all()
        .into_iter()
        .chain([action()])
        .find(|input| input.class == class)
}

/// A request of the action dialect, the class `action170`.
pub fn action() -> Input {
    Input::new("action170", r#"{"action":"weather.get_forecast","params":{"location":"New York","units":"si","days":3},"metadata":{"request_id":"req-0042","client_id":"desk7","protocol_version":"1.0"}}"#.into())
}

/// One message of every class, small ones first.
pub fn all() -> Vec<Input> {
    let result = |value: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"{value}"}}]}}}}"#
        )
    };
    let repeat = |part: &str, len: usize| part.repeat(len.div_ceil(part.len()));
    vec![
        Input::new("ping", r#"{"jsonrpc":"2.0","id":123456,"method":"ping"}"#.into()),
        Input::new("cancelled", r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4711,"reason":"the user closed the dialog"}}"#.into()),
        Input::new("error", r#"{"jsonrpc":"2.0","id":42,"error":{"code":-32601,"message":"Method not found"}}"#.into()),
        Input::new("progress", r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"op-0042","progress":37,"total":100,"message":"copying the third part of it"}}"#.into()),
        Input::new("call150", r#"{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"get_weather","arguments":{"location":"New York","units":"si"},"_meta":{"progressToken":77}}}"#.into()),
        Input::new("result", r#"{"result":{"content":[{"type":"text","text":"22 degrees"}],"isError":false},"jsonrpc":"2.0","id":5}"#.into()),
        Input::new("call880", call880()),
        Input::new("tools10k", tools(10_000, false)),
        Input::new("tools100k", tools(100_000, false)),
        Input::new("tools100k_spaced", tools(100_000, true)),
        Input::new("numeric100k", numbers(118_000)),
        Input::new("deep11k", deep(11_000)),
        Input::new("cjk100k", result(&repeat("数据协议引擎的速度😀很快，", 107_000))),
        Input::new("uescape100k", result(&repeat(r"\u6570\u636e\u5f15\u64ce ok ", 105_000))),
        Input::new("text1m", result(&escaped(1_000_000))),
        Input::new("blob10m", result(&repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo", 10_000_000))),
    ]
}

/// Prose with an escape every 25 bytes on average, at gaps that a branch predictor cannot learn.
fn escaped(len: usize) -> String {
    const WORDS: [&str; 6] = ["the", "quick", "brown", "fox", "jumps", "overly"];
    const ESCAPES: [&str; 5] = [r"\n", r#"\""#, r"\\", r"\t", r"\/"];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::with_capacity(len + 32);
    while text.len() < len {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        text += WORDS[(random >> 20) as usize % WORDS.len()];
        text += match random % 21 {
            escape @ 0..5 => ESCAPES[escape as usize],
            _ => " ",
        };
    }
    text
}

fn call880() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"b7c9a2f4-0001","method":"tools/call","params":{{"name":"search_documents","arguments":{{"query":"throughput of protocol engines","filters":{{"language":["en","de","fr"],"after":"2026-01-01","before":"2026-07-28","kinds":["article","paper","thread"]}},"limit":25,"offset":0,"include":{{"snippets":true,"scores":true,"html":false}},"note":"{}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"ExampleClient","version":"1.0.0"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}},"sampling":{{}}}},"progressToken":"tok-1","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"vendor=a"}}}}}}"#,
        "x".repeat(40)
    )
}

fn tools(len: usize, spaced: bool) -> String {
    let (comma, colon) = if spaced { (", ", ": ") } else { (",", ":") };
    let mut tools = Vec::new();
    let mut total = 0;
    while total < len {
        let i = tools.len();
        let tool = format!(
            r#"{{"name":"tool_{i}","title":"Tool {i}","description":"Does the {i}th thing that a client may ask of this server.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Where to look"}},"count":{{"type":"integer","minimum":0,"maximum":{i}}},"force":{{"type":"boolean","default":false}}}},"required":["path","count"]}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#
        );
        // None of these strings contains a comma or colon, so this only adds space between tokens.
        let tool = tool
            .replace(',', comma)
            .replace("\":", &format!("\"{colon}"));
        total += tool.len() + comma.len();
        tools.push(tool);
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"tools":[{}]}}}}"#,
        tools.join(comma)
    )
}

fn numbers(len: usize) -> String {
    let mut random = 88_172_645_463_325_252_u64;
    let mut rows = String::new();
    while rows.len() < len {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (a, b, c) = (random % 100_000, random >> 40, random % 997);
        let comma = if rows.is_empty() { "" } else { "," };
        rows += &format!(r#"{comma}{{"t":{b},"x":{a}.{c},"y":-0.{c},"ok":true,"v":[{c},{a}]}}"#);
    }
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{{"rows":[{rows}]}}}}}}"#)
}

fn deep(len: usize) -> String {
    let unit = format!("{}1{}", r#"{"a":[0,"#.repeat(40), "]}".repeat(40));
    let units = vec![unit.as_str(); len / unit.len()].join(",");
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{{"d":[{units}]}}}}}}"#)
}

/// 4,096 different messages of 149 bytes on average, one per line: two member orders, string
/// and integer ids, requests, notifications, responses and errors.
pub fn mixed() -> Vec<u8> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % end
    };
    let mut stream = Vec::new();
    for i in 0..4096u64 {
        let id = match next(3) {
            0 => format!("\"req-{:x}\"", next(1 << 40)),
            _ => (i * 7 + next(1000)).to_string(),
        };
        let words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu";
        let text = &words[..10 + next(50) as usize];
        let (name, n) = (
            ["echo", "get_weather", "search", "resize_image"][next(4) as usize],
            next(100_000),
        );
        let line = match next(8) {
            0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
            1 => format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":{n},"total":100000,"message":"{text}"}},"jsonrpc":"2.0"}}"#
            ),
            2 => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"{text}","data":{{"at":{n}}}}}}}"#
            ),
            3 => format!(
                r#"{{"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false,"structuredContent":{{"n":{n}}}}},"jsonrpc":"2.0","id":{id}}}"#
            ),
            4 => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"file:///srv/data/{n}/{name}","_meta":{{"progressToken":{n}}}}}}}"#
            ),
            5 => format!(
                r#"{{"method":"tools/call","params":{{"arguments":{{"text":"{text}","n":{n},"on":true}},"name":"{name}"}},"jsonrpc":"2.0","id":{id}}}"#
            ),
            _ => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"text":"{text}","n":{n},"list":[1,{n},3]}},"_meta":{{"progressToken":{id}}}}}}}"#
            ),
        };
        stream.extend_from_slice(line.as_bytes());
        stream.push(b'\n');
    }
    stream
}
