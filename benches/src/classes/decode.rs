//! Decoding one message.

use std::hint::black_box;

use mcpbolt::message::Envelope;

use super::{Run, engines};
use crate::contenders::{
    agree, agree_on_action, engine, engine_of_actions, raw, raw_action, raw_routes,
};
use crate::corpus;
use crate::harness::Contender;

pub(super) fn decode(run: &mut Run, input: &corpus::Input) {
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
    if bytes.len() >= 1_000_000 {
        // The cost of reading every byte.
        all.push(Contender::new("memchr, a plain read", || {
            memchr::memchr(b'\n', black_box(bytes))
        }));
    }
    #[cfg(feature = "peers")]
    peers(&mut all, bytes);
    run.class(input.class, bytes.len(), 1, all);
}

/// Decoding a request of the action dialect, for which no other library has a decoder.
pub(super) fn action(run: &mut Run) {
    let input = &corpus::action();
    if !run.wants(input.class) {
        return;
    }
    assert!(
        agree_on_action(input.frame()),
        "{}: wrong answer",
        input.class
    );
    let bytes = input.bytes();
    let mut all = engines(|| {
        let mut envelope = Envelope::new();
        assert!(engine_of_actions(black_box(input.frame()), &mut envelope));
        black_box(&envelope);
    });
    all.push(Contender::new("serde_json RawValue+routes", || {
        raw_action(black_box(bytes))
    }));
    all.push(Contender::new("serde_json Value", || {
        serde_json::from_slice::<serde_json::Value>(black_box(bytes)).expect("valid")
    }));
    run.class(input.class, bytes.len(), 1, all);
}

#[cfg(feature = "peers")]
fn peers<'a>(all: &mut Vec<Contender<'a>>, bytes: &'a [u8]) {
    use mcpbolt::message::Message;

    use crate::peers;
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
