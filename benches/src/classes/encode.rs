//! Forwarding, escaping, encoding.

use std::hint::black_box;

use mcpbolt::json::{append_value, string};
use mcpbolt::message::{Message, encode};
use mcpbolt::scan::Isa;

use super::{Run, available, name};
use crate::corpus;
use crate::harness::Contender;

pub(super) fn forward(run: &mut Run) {
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

pub(super) fn escape(run: &mut Run) {
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

/// Encoding a serde value: a result with a long text, and a list of tools with many small members.
pub(super) fn value(run: &mut Run) {
    for (label, class) in [("encode text1m", "text1m"), ("encode tools10k", "tools10k")] {
        if !run.wants(label) {
            continue;
        }
        let input = corpus::input(class).expect("a class");
        let value: serde_json::Value = serde_json::from_slice(input.bytes()).expect("valid");
        let mut own = Vec::new();
        append_value(&mut own, &value).expect("a value");
        assert_eq!(own, serde_json::to_vec(&value).expect("a value"));
        let mut theirs = Vec::new();
        let all = vec![
            Contender::new("mcpbolt", || {
                own.clear();
                append_value(&mut own, black_box(&value)).expect("a value");
                own.len()
            }),
            Contender::new("serde_json", || {
                theirs.clear();
                serde_json::to_writer(&mut theirs, black_box(&value)).expect("a value");
                theirs.len()
            }),
        ];
        run.class(label, input.bytes().len(), 1, all);
    }
}
