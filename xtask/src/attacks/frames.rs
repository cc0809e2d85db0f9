//! WebSocket frames, valid and invalid.

use super::answer::{Answer, message};
use super::case::Frame;
use super::parts::Words;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// A text message in one frame.
pub fn text(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &Frame::default(), payload);
    out
}

/// The bytes of a frame of the corpus.
pub fn bytes(frame: &Frame, words: &Words) -> Vec<u8> {
    let payload = frame.payload.bytes(words);
    let mut out = Vec::new();
    for _ in 0..frame.times {
        write(&mut out, frame, &payload);
    }
    out
}

fn write(out: &mut Vec<u8>, frame: &Frame, payload: &[u8]) {
    let fin = if frame.fin { 0x80 } else { 0 };
    out.push(fin | frame.reserved << 4 | frame.op);
    let mask = if frame.mask { 0x80 } else { 0 };
    let len = frame.claim.unwrap_or(payload.len() as u64);
    match len {
        0..=125 => out.push(mask | u8::try_from(len).unwrap_or_default()),
        126..=0xffff => {
            out.push(mask | 126);
            out.extend(u16::try_from(len).unwrap_or_default().to_be_bytes());
        }
        _ => {
            out.push(mask | 127);
            out.extend(len.to_be_bytes());
        }
    }
    if frame.mask {
        // A mask of zeros leaves the payload unchanged.
        out.extend([0; 4]);
    }
    out.extend_from_slice(payload);
}

/// The first message or close in the input, and how many bytes of the input it takes.
pub fn answer(input: &[u8]) -> (Option<Answer>, usize) {
    let mut at = 0;
    loop {
        let Some((opcode, payload, end)) = frame(&input[at..]) else {
            return (None, at);
        };
        at += end;
        let answer = match opcode {
            TEXT => message(String::from_utf8_lossy(payload).into_owned()),
            CLOSE => Some(Answer::Close(match payload {
                [high, low, ..] => u16::from_be_bytes([*high, *low]),
                _ => 1005,
            })),
            _ => None,
        };
        if answer.is_some() {
            return (answer, at);
        }
    }
}

/// The first frame of a server, unmasked: opcode, payload and length. It must be a whole message.
fn frame(input: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (first, second) = (*input.first()?, *input.get(1)?);
    let (len, head) = match second & 0x7f {
        126 => (
            u64::from(u16::from_be_bytes(input.get(2..4)?.try_into().ok()?)),
            4,
        ),
        127 => (u64::from_be_bytes(input.get(2..10)?.try_into().ok()?), 10),
        len => (u64::from(len), 2),
    };
    let end = head + usize::try_from(len).ok()?;
    Some((first & 0x0f, input.get(head..end)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_written_and_read() {
        assert_eq!(text(b"hi"), [0x81, 0x82, 0, 0, 0, 0, b'h', b'i']);
        let said = [&[0x89, 0][..], &[0x81, 2], b"{}", &[0x88, 2, 3, 0xea]].concat();
        let (answer_, used) = answer(&said);
        assert_eq!((answer_, used), (Some(Answer::Message("{}".into())), 6));
        assert_eq!(answer(&said[used..]).0, Some(Answer::Close(1002)));
        assert_eq!(answer(&said[..5]), (None, 2));
    }
}
