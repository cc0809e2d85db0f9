//! Streams of many messages, or of one long message.

use std::hint::black_box;

use mcpbolt::buffer::{Input, PADDING};
use mcpbolt::frame::line::{LineDeframer, LineEvent};
use mcpbolt::message::{Envelope, Frame};

use super::{Run, engines};
use crate::contenders::{agree, engine, raw, raw_routes};
use crate::corpus;
use crate::harness::Contender;

/// Splits a stream and calls `visit` with each frame.
fn each_frame(padded: &[u8], len: usize, mut visit: impl FnMut(Frame<'_>)) -> u64 {
    let mut deframer = LineDeframer::new(1 << 20);
    let mut count = 0;
    while let Some(LineEvent::Frame(range)) = deframer.next(&padded[..len]) {
        visit(Frame::new(&padded[range.start..], range.len()).expect("padded"));
        count += 1;
    }
    count
}

pub(super) fn mixed(run: &mut Run) {
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
}

/// Reads of 64 KiB into the engine's own buffer, split, consumed.
fn read_and_split(input: &mut Input, stream: &[u8], max_len: usize) -> u64 {
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

pub(super) fn split(run: &mut Run) {
    if run.wants("split150") {
        let stream = corpus::mixed();
        let (mut input, mut block) = (Input::new(), vec![0; 64 << 10]);
        let count = read_and_split(&mut input, &stream, 1 << 20);
        let all = vec![
            Contender::new("mcpbolt", || {
                read_and_split(&mut input, black_box(&stream), 1 << 20)
            }),
            Contender::new("memchr over the stream", || {
                // An explicit loop, because `count` would only count and not search.
                for end in memchr::memchr_iter(b'\n', black_box(&stream)) {
                    black_box(end);
                }
            }),
            Contender::new("copy alone, as a read does", || {
                for read in black_box(&stream).chunks(64 << 10) {
                    block[..read.len()].copy_from_slice(read);
                    black_box(&block);
                }
            }),
        ];
        run.class("split150", stream.len() / count as usize, count, all);
    }
    if run.wants("split10m") {
        let mut stream = corpus::input("blob10m").expect("a class").bytes().to_vec();
        stream.push(b'\n');
        let (mut input, mut block) = (Input::new(), vec![0; stream.len()]);
        assert_eq!(read_and_split(&mut input, &stream, 1 << 30), 1);
        let all = vec![
            Contender::new("mcpbolt", || {
                read_and_split(&mut input, black_box(&stream), 1 << 30)
            }),
            Contender::new("memcpy and memchr", || {
                block.copy_from_slice(black_box(&stream));
                memchr::memchr(b'\n', &block)
            }),
        ];
        run.class("split10m", stream.len(), 1, all);
    }
}
