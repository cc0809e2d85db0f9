//! Each kernel beside its safe equivalent: the gain from `unsafe` in `scan`.

use std::hint::black_box;

use mcpbolt::scan::{self, Isa, scalar};

use super::{Run, available, name};
use crate::corpus;
use crate::harness::Contender;

pub(super) fn kernels(run: &mut Run) {
    for len in [16, 256, 65_536] {
        let text = "plain text and one \\\" "
            .repeat(len)
            .split_at(len - 1)
            .0
            .to_owned()
            + "\"";
        each(run, &format!("kernel string {len}"), len, |isa| {
            let found = isa.string_end(black_box(text.as_bytes()), 0);
            found.map(|end| end.end)
        });
    }
    if run.wants("kernel string 10m") {
        let text = "QUJDREVGR0hJSktM".repeat(625_000) + "\"";
        let mut all = Vec::new();
        for isa in available() {
            let text = &text;
            all.push(Contender::new(name(isa), move || {
                isa.string_end(black_box(text.as_bytes()), 0).is_some()
            }));
        }
        all.reverse();
        all.push(Contender::new("memchr, a plain read", || {
            memchr::memchr(b'\n', black_box(text.as_bytes())).is_some()
        }));
        run.class("kernel string 10m", text.len(), 1, all);
    }
    let tools = corpus::input("tools10k").expect("a class");
    each(run, "kernel container 10k", tools.bytes().len(), |isa| {
        isa.container_end(black_box(tools.bytes()), 1)
    });
    if run.wants("kernel stops") {
        let chunk = *b"notifications\"{}";
        let all = vec![
            Contender::new("mcpbolt sse2", || scan::stops(black_box(&chunk)).mask),
            Contender::new("mcpbolt portable", || {
                scan::portable_stops(black_box(&chunk)).mask
            }),
            Contender::new("byte by byte", || {
                scalar::string_end(black_box(&chunk), 0).map(|end| end.end)
            }),
        ];
        run.class("kernel stops", 16, 1, all);
    }
    if run.wants("kernel text 16") {
        let token = *b"tools/call_tools";
        let all = vec![
            Contender::new("mcpbolt", || scan::text(black_box(&token)).map(str::len)),
            Contender::new("std", || {
                std::str::from_utf8(black_box(&token)).ok().map(str::len)
            }),
        ];
        run.class("kernel text 16", token.len(), 1, all);
    }
    if run.wants("kernel line ends") {
        let chunk: [u8; 64] = std::array::from_fn(|i| b"ends\nhere\n"[i % 10]);
        let expected = scan::portable_line_ends(&chunk);
        assert_eq!(scan::line_ends(&chunk), expected);
        let all = vec![
            Contender::new("mcpbolt sse2", || scan::line_ends(black_box(&chunk))),
            Contender::new("mcpbolt portable", || {
                scan::portable_line_ends(black_box(&chunk))
            }),
        ];
        run.class("kernel line ends", 64, 1, all);
    }
}

fn each(run: &mut Run, label: &str, bytes: usize, kernel: impl Fn(Isa) -> Option<usize>) {
    if !run.wants(label) {
        return;
    }
    let expected = kernel(Isa::Scalar);
    assert!(expected.is_some(), "{label}");
    let mut all = Vec::new();
    for isa in available() {
        assert_eq!(kernel(isa), expected, "{label}");
        let kernel = &kernel;
        all.push(Contender::new(name(isa), move || kernel(isa)));
    }
    all.reverse();
    run.class(label, bytes, 1, all);
}
