//! The codec beside its peers: `codec [--json FILE] [--rounds N] [CLASS…]`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measuring program stops at the first surprise"
)]

use std::hint::black_box;

use mcpbolt::buffer::{Input, PADDING};
use mcpbolt::frame::line::{LineDeframer, LineEvent};
use mcpbolt::json::string;
use mcpbolt::message::{Envelope, Frame, Message, encode};
use mcpbolt::scan::Isa;
use mcpbolt_benches::contenders::{agree, engine, raw, raw_routes};
use mcpbolt_benches::corpus;
use mcpbolt_benches::harness::{self, Contender, Row};

struct Run {
    rounds: usize,
    only: Vec<String>,
    rows: Vec<Row>,
}

fn main() {
    let mut run = Run {
        rounds: 41,
        only: Vec::new(),
        rows: Vec::new(),
    };
    let mut json = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => json = args.next(),
            "--rounds" => run.rounds = args.next().and_then(|n| n.parse().ok()).expect("a number"),
            class => run.only.push(class.to_owned()),
        }
    }
    println!(
        "kernels: {:?} by default, available {:?}",
        Isa::chosen(),
        available()
    );
    for input in corpus::all() {
        decode(&mut run, &input);
    }
    mixed(&mut run);
    split(&mut run);
    forward(&mut run);
    escape(&mut run);
    if let Some(path) = json {
        harness::save(&path, &run.rows).expect("the file can be written");
    }
}

fn available() -> Vec<Isa> {
    Isa::ALL
        .into_iter()
        .filter(|isa| isa.is_available())
        .collect()
}

impl Run {
    fn wants(&self, class: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == class)
    }

    fn class(&mut self, class: &str, bytes: usize, per_run: u64, mut all: Vec<Contender<'_>>) {
        let rows = harness::measure(class, bytes, per_run, self.rounds, &mut all);
        harness::print(&rows);
        self.rows.extend(rows);
    }
}

fn name(isa: Isa) -> &'static str {
    match isa {
        Isa::Scalar => "mcpbolt scalar",
        Isa::Sse2 => "mcpbolt sse2",
        Isa::Avx2 => "mcpbolt avx2",
        Isa::Avx512 => "mcpbolt avx512",
    }
}

/// The engine with each kernel, the default first.
fn engines<'a>(run: impl Fn() + Clone + 'a) -> Vec<Contender<'a>> {
    let default = Isa::chosen();
    let mut all = available();
    all.sort_by_key(|isa| *isa != default);
    let each = all.into_iter().map(|isa| {
        let run = run.clone();
        Contender::new(name(isa), move || {
            isa.choose();
            run();
        })
    });
    each.collect()
}

fn decode(run: &mut Run, input: &corpus::Input) {
    if !run.wants(input.class) {
        return;
    }
    assert!(agree(input.frame()), "{}: wrong answer", input.class);
    let bytes = input.bytes();
    let mut all = engines(|| {
        let mut envelope = Envelope::new();
        assert!(engine(black_box(input.frame()), &mut envelope));
        black_box(&envelope);
    });
    all.push(Contender::new("serde_json RawValue", || {
        raw(black_box(bytes))
    }));
    all.push(Contender::new("serde_json RawValue+routes", || {
        raw_routes(black_box(bytes))
    }));
    if bytes.len() < 2_000_000 {
        all.push(Contender::new("serde_json Value", || {
            serde_json::from_slice::<serde_json::Value>(black_box(bytes)).expect("valid")
        }));
    }
    #[cfg(feature = "peers")]
    peers(&mut all, bytes);
    run.class(input.class, bytes.len(), 1, all);
    Isa::Avx2.choose();
}

#[cfg(feature = "peers")]
fn peers<'a>(all: &mut Vec<Contender<'a>>, bytes: &'a [u8]) {
    use mcpbolt_benches::peers;
    let message = Message::parse(bytes, 512).expect("valid");
    let kind = message.as_ref().kind();
    let mut copy = Vec::new();
    all.push(Contender::new("simd-json tape (+copy)", move || {
        peers::simd_json_tape(black_box(bytes), &mut copy)
    }));
    let mut copy = Vec::new();
    all.push(Contender::new("simd-json borrowed (+copy)", move || {
        peers::simd_json_borrowed(black_box(bytes), &mut copy)
    }));
    all.push(Contender::new("sonic-rs LazyValue", move || {
        peers::sonic_lazy(black_box(bytes)).is_some()
    }));
    let at_server = kind == mcpbolt::message::Kind::Request;
    for (name, decodes) in [
        ("rmcp at a server", peers::rmcp(bytes, true)),
        ("rmcp at a client", peers::rmcp(bytes, false)),
    ] {
        let this = name == "rmcp at a server";
        if decodes && this == (at_server || !peers::rmcp(bytes, false)) {
            all.push(Contender::new(name, move || {
                assert!(peers::rmcp(black_box(bytes), this));
            }));
        }
    }
    if peers::jsonrpsee(bytes, kind) {
        all.push(Contender::new("jsonrpsee-types", move || {
            assert!(peers::jsonrpsee(black_box(bytes), kind));
        }));
    }
}

/// Splits a stream and hands each frame on.
fn each_frame(padded: &[u8], len: usize, mut visit: impl FnMut(Frame<'_>)) -> u64 {
    let mut deframer = LineDeframer::new(1 << 20);
    let mut count = 0;
    while let Some(LineEvent::Frame(range)) = deframer.next(&padded[..len]) {
        visit(Frame::new(&padded[range.start..], range.len()).expect("padded"));
        count += 1;
    }
    count
}

fn mixed(run: &mut Run) {
    if !run.wants("mixed") {
        return;
    }
    let stream = corpus::mixed();
    let len = stream.len();
    let padded = [&stream[..], &[0; PADDING]].concat();
    let count = each_frame(&padded, len, |frame| {
        assert!(agree(frame), "{}", String::from_utf8_lossy(frame.bytes()));
    });
    let mut all = engines(|| {
        let mut envelope = Envelope::new();
        each_frame(black_box(&padded), len, |frame| {
            assert!(engine(frame, &mut envelope));
            black_box(&envelope);
        });
    });
    all.push(Contender::new("split only", || {
        each_frame(black_box(&padded), len, |frame| {
            black_box(frame);
        })
    }));
    all.push(Contender::new("serde_json RawValue", || {
        each_frame(black_box(&padded), len, |frame| {
            black_box(raw(frame.bytes()));
        })
    }));
    all.push(Contender::new("serde_json RawValue+routes", || {
        each_frame(black_box(&padded), len, |frame| {
            black_box(raw_routes(frame.bytes()));
        })
    }));
    run.class("mixed", len / count as usize, count, all);
    Isa::Avx2.choose();
}

/// Reads of 64 KiB into the engine's own buffer, split, consumed.
fn read_and_split(stream: &[u8], max_len: usize) -> u64 {
    let mut input = Input::new();
    let mut deframer = LineDeframer::new(max_len);
    let mut count = 0;
    for read in stream.chunks(64 << 10) {
        input.extend(read);
        while let Some(event) = deframer.next(input.filled()) {
            black_box(event);
            count += 1;
        }
        input.consume(deframer.drain());
    }
    count
}

fn split(run: &mut Run) {
    if run.wants("split150") {
        let stream = corpus::mixed();
        let count = read_and_split(&stream, 1 << 20);
        let all = vec![
            Contender::new("mcpbolt", || read_and_split(black_box(&stream), 1 << 20)),
            Contender::new("memchr over the stream", || {
                memchr::memchr_iter(b'\n', black_box(&stream)).count()
            }),
        ];
        run.class("split150", stream.len() / count as usize, count, all);
    }
    if run.wants("split10m") {
        let mut stream = corpus::input("blob10m").expect("a class").bytes().to_vec();
        stream.push(b'\n');
        assert_eq!(read_and_split(&stream, 1 << 30), 1);
        let all = vec![
            Contender::new("mcpbolt", || read_and_split(black_box(&stream), 1 << 30)),
            Contender::new("memcpy and memchr", || {
                let copy = black_box(&stream).clone();
                memchr::memchr(b'\n', &copy)
            }),
        ];
        run.class("split10m", stream.len(), 1, all);
    }
}

fn forward(run: &mut Run) {
    for class in ["call150", "tools10k", "text1m"] {
        let label = format!("forward {class}");
        if !run.wants(&label) {
            continue;
        }
        let input = corpus::input(class).expect("a class");
        let message = Message::parse(input.bytes(), 512).expect("valid");
        let mut bytes = message.bytes().to_vec();
        let envelope = *message.as_ref().envelope();
        let mut out = Vec::new();
        let mut copy = Vec::new();
        let all = vec![
            Contender::new("in place", move || {
                let mut record = envelope;
                assert!(encode::rewrite_id(black_box(&mut bytes), &mut record, 7));
            }),
            Contender::new("spliced", || {
                out.clear();
                encode::with_id(&mut out, black_box(message.as_ref()), 123_456_789_u64);
                out.len()
            }),
            Contender::new("memcpy", || {
                copy.clear();
                copy.extend_from_slice(black_box(message.bytes()));
                copy.len()
            }),
        ];
        run.class(&label, input.bytes().len(), 1, all);
    }
}

fn escape(run: &mut Run) {
    let texts = [
        (
            "escape 1m, some",
            "the quick brown fox jumps\nover it and \"so\" on and on. ",
        ),
        (
            "escape 1m, plain",
            "the quick brown fox jumps over it and so on and on, so. ",
        ),
    ];
    for (class, part) in texts {
        if !run.wants(class) {
            continue;
        }
        let text = &part.repeat(1_000_000 / part.len());
        let default = Isa::chosen();
        let mut kernels = available();
        kernels.sort_by_key(|isa| *isa != default);
        let mut all: Vec<Contender<'_>> = Vec::new();
        for isa in kernels {
            let mut out = Vec::new();
            all.push(Contender::new(name(isa), move || {
                out.clear();
                isa.escape_into(&mut out, black_box(text));
                out.len()
            }));
        }
        let mut token = Vec::new();
        string::append(&mut token, text);
        assert_eq!(token, serde_json::to_vec(text).expect("text"));
        let mut out = Vec::new();
        all.push(Contender::new("serde_json", move || {
            out.clear();
            serde_json::to_writer(&mut out, black_box(text)).expect("text");
            out.len()
        }));
        run.class(class, text.len(), 1, all);
    }
}
