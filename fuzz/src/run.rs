//! Every law on random input for a while.

use std::time::{Duration, Instant};

use crate::random::Random;
use crate::{corpus, laws};

/// Breaks and checks until `time` is over; returns how many inputs it tried. `progress` is told
/// the number so far, now and then.
pub fn all(seed: u64, time: Duration, mut progress: impl FnMut(u64)) -> u64 {
    let end = Instant::now() + time;
    let corpus = corpus::messages();
    let mut random = Random::new(seed);
    let mut cases = 0;
    while Instant::now() < end {
        for _ in 0..64 {
            one(&corpus, &mut random);
            cases += 1;
        }
        progress(cases);
    }
    cases
}

/// One input through the laws of grammar and messages, and through one further law.
fn one(corpus: &[String], random: &mut Random) {
    // Shifted by up to two blocks of the kernels, mostly by less.
    let most = *random.pick(&[5, 5, 64, 130]);
    let mut bytes = vec![b' '; random.below(most)];
    bytes.extend_from_slice(random.pick(corpus).as_bytes());
    for _ in 0..random.below(4) {
        random.mutate(&mut bytes);
    }
    laws::grammar(&bytes);
    laws::message(&bytes);
    match random.below(4) {
        0 => laws::kernel_twins(&bytes),
        1 => strings(&bytes),
        2 => streams(&bytes, corpus, random),
        _ => {
            let text =
                String::from_utf8_lossy(&bytes[..random.below(bytes.len() + 1)]).into_owned();
            let id = random.number() >> random.below(64);
            laws::round_trip(id, &text, random.pick(corpus).trim());
        }
    }
}

fn strings(bytes: &[u8]) {
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
