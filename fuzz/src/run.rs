//! Runs all laws on random input for a set time.

use std::time::{Duration, Instant};

use mcpbolt::frame;

use crate::random::Random;
#[cfg(feature = "http")]
use crate::{acting, http};
use crate::{action, carried, challenge, corpus, laws};

/// A check of one damaged input. It gets the corpus, to take a second input from.
pub type Law = fn(&[u8], &[String], &mut Random);

/// Checks grammar and decoding with every kernel, for each input.
pub const MESSAGES: Law = |bytes, _, _| {
    laws::grammar(bytes);
    laws::message(bytes);
};

/// Further laws; [`all`] checks one of them for each input.
pub const OTHERS: &[Law] = &[
    |bytes, _, _| laws::kernel_twins(bytes),
    strings,
    streams,
    round_trips,
    events,
    frames,
    |bytes, _, _| action::message(bytes),
    challenges,
    #[cfg(feature = "http")]
    |bytes, _, random| http::conversation(bytes, random),
    #[cfg(feature = "http")]
    |bytes, _, _| acting::conversation(bytes),
];

/// Checks damaged inputs until `time` is over. Returns the number of inputs, and calls `progress` now and
/// then with the number so far.
pub fn all(seed: u64, time: Duration, progress: impl FnMut(u64)) -> u64 {
    let all: Law = |bytes, corpus, random| {
        MESSAGES(bytes, corpus, random);
        random.pick(OTHERS)(bytes, corpus, random);
    };
    law(all, seed, time, progress)
}

/// Does the same with one law.
pub fn law(law: Law, seed: u64, time: Duration, mut progress: impl FnMut(u64)) -> u64 {
    let end = Instant::now() + time;
    let corpus = corpus::messages();
    let mut random = Random::new(seed);
    let mut cases = 0;
    while Instant::now() < end {
        for _ in 0..64 {
            law(&input(&corpus, &mut random), &corpus, &mut random);
            cases += 1;
        }
        progress(cases);
    }
    cases
}

/// A damaged message of the corpus, shifted by up to two kernel blocks, mostly by less.
fn input(corpus: &[String], random: &mut Random) -> Vec<u8> {
    let most = *random.pick(&[5, 5, 64, 130]);
    let mut bytes = vec![b' '; random.below(most)];
    bytes.extend_from_slice(random.pick(corpus).as_bytes());
    for _ in 0..random.below(4) {
        random.mutate(&mut bytes);
    }
    bytes
}

fn strings(bytes: &[u8], _: &[String], _: &mut Random) {
    let text = String::from_utf8_lossy(bytes);
    laws::escaping(&text);
    if let (Some(from), Some(to)) = (text.find('"'), text.rfind('"')) {
        laws::unescaping(&text[from..=to]);
    }
}

fn streams(bytes: &[u8], corpus: &[String], random: &mut Random) {
    let max_len = random.below(400);
    let stream = [
        bytes,
        b"\r\n",
        random.pick(corpus).as_bytes(),
        b"\n\n",
        bytes,
    ];
    laws::lines(&stream.concat(), max_len, random);
}

fn round_trips(bytes: &[u8], corpus: &[String], random: &mut Random) {
    let text = String::from_utf8_lossy(&bytes[..random.below(bytes.len() + 1)]).into_owned();
    let id = random.number() >> random.below(64);
    laws::round_trip(id, &text, random.pick(corpus).trim());
}

fn events(bytes: &[u8], corpus: &[String], random: &mut Random) {
    let text = String::from_utf8_lossy(bytes);
    carried::event_round_trip(&text, random);
    let mut stream = Vec::new();
    for _ in 0..3 {
        let data = random.pick(corpus).as_bytes();
        frame::event_stream::append(&mut stream, None, Some("7_1"), data);
        let between: [&[u8]; 4] = [b":\n\n", b"retry: 5\r\n\r\n", b"data\n\n", bytes];
        stream.extend_from_slice(random.pick::<&[u8]>(&between));
    }
    (0..random.below(4)).for_each(|_| random.mutate(&mut stream));
    carried::events(&stream, random);
}

fn challenges(bytes: &[u8], _: &[String], random: &mut Random) {
    challenge::headers(bytes);
    // Messages have little that a header has.
    (0..8).for_each(|_| challenge::damaged(random));
}

fn frames(bytes: &[u8], corpus: &[String], random: &mut Random) {
    let text = String::from_utf8_lossy(bytes);
    let other = random.pick(corpus).as_str();
    carried::frame_round_trip([&text, other], random);
    carried::frames(bytes, random);
}
