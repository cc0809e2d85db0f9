//! A protocol of lines, small enough to test the loops by themselves.

use std::time::{Duration, Instant};

use mcpbolt::buffer::{Input, Output};
use mcpbolt::error::ConnectionError;
use mcpbolt::io::Machine;

/// Answers lines:
///
/// - `echo …` with itself
/// - `slow MS …` with itself, that much later
/// - `wedge` never
/// - `block` never, and it holds the loop's thread, as an inline handler might
/// - `print …` with `done`, after printing the rest to stdout
/// - `quit` by closing
///
/// Other lines are ignored.
#[derive(Default)]
pub struct Echo {
    pub input: Input,
    pub output: Output,
    slow: Vec<(Instant, Vec<u8>)>,
    wedged: usize,
    pub closed: Option<ConnectionError>,
}

impl Echo {
    fn line(&mut self, line: &[u8], now: Instant) {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        match words.next() {
            Some(b"echo") => self.answer(line),
            Some(b"slow") => {
                let ms = String::from_utf8_lossy(words.next().unwrap())
                    .parse()
                    .unwrap();
                self.slow
                    .push((now + Duration::from_millis(ms), line.to_vec()));
            }
            Some(b"wedge") => self.wedged += 1,
            Some(b"block") => loop {
                std::thread::park();
            },
            Some(b"print") => {
                println!("{}", String::from_utf8_lossy(words.next().unwrap()));
                self.answer(b"done");
            }
            Some(b"quit") => self.close(ConnectionError::ClosedLocally),
            _ => {}
        }
    }

    fn answer(&mut self, line: &[u8]) {
        self.output.append(line);
        self.output.append(b"\n");
    }
}

impl Machine for Echo {
    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
    fn output(&mut self) -> &mut Output {
        &mut self.output
    }
    fn receive(&mut self, now: Instant) {
        let input = std::mem::take(&mut self.input);
        let mut used = 0;
        for line in input.filled().split_inclusive(|&byte| byte == b'\n') {
            if let Some(line) = line.strip_suffix(b"\n") {
                used += line.len() + 1;
                self.line(line, now);
            }
        }
        self.input = input;
        self.input.consume(used);
    }
    fn receive_end(&mut self, _: Instant) {}
    fn handle_submissions(&mut self, _: Instant) {}
    fn handle_timeout(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.slow)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.slow = later;
        let due: Vec<(Instant, Vec<u8>)> = due;
        due.iter().for_each(|(_, line)| self.answer(line));
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.slow.iter().map(|(at, _)| *at).min()
    }
    fn wants_read(&self) -> bool {
        self.closed.is_none() && self.output.len() < 256 << 20
    }
    fn in_flight(&self) -> usize {
        self.wedged + self.slow.len()
    }
    fn drain(&mut self, _: Instant, _: Duration, _: ConnectionError) {}
    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
    fn close(&mut self, why: ConnectionError) {
        self.closed.get_or_insert(why);
    }
}

/// Sends some bytes, keeps what comes back and closes when enough has come.
#[derive(Default)]
pub struct Ask {
    input: Input,
    output: Output,
    /// The input, if it is kept.
    pub seen: Vec<u8>,
    pub seen_len: usize,
    pub enough: usize,
    pub keep: bool,
    pub closed: Option<ConnectionError>,
    pub ended_at: Option<Instant>,
}

impl Ask {
    /// Sends `text` and closes after `enough` bytes.
    pub fn new(text: &[u8], enough: usize) -> Self {
        let mut ask = Self {
            enough,
            keep: true,
            ..Self::default()
        };
        ask.output.append(text);
        ask
    }
}

impl Machine for Ask {
    fn input(&mut self) -> &mut Input {
        &mut self.input
    }
    fn output(&mut self) -> &mut Output {
        &mut self.output
    }
    fn receive(&mut self, _: Instant) {
        if self.keep {
            self.seen.extend_from_slice(self.input.filled());
        }
        self.seen_len += self.input.len();
        self.input.consume(self.input.len());
        if self.seen_len >= self.enough {
            self.close(ConnectionError::ClosedLocally);
        }
    }
    fn receive_end(&mut self, _: Instant) {}
    fn handle_submissions(&mut self, _: Instant) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn wants_read(&self) -> bool {
        self.closed.is_none()
    }
    fn in_flight(&self) -> usize {
        0
    }
    fn drain(&mut self, _: Instant, _: Duration, _: ConnectionError) {}
    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
    fn close(&mut self, why: ConnectionError) {
        self.ended_at.get_or_insert_with(Instant::now);
        self.closed.get_or_insert(why);
    }
}
