//! Every law on random input for a while.

use std::time::{Duration, Instant};

use crate::random::Random;
use crate::{corpus, laws};

/// Breaks and checks until `time` is over; returns how many inputs it tried.
pub fn all(seed: u64, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let corpus = corpus::messages();
    let mut random = Random::new(seed);
    let mut cases = 0;
    while Instant::now() < end {
        for _ in 0..64 {
            one(&corpus, &mut random);
            cases += 1;
        }
    }
    cases
}

fn one(corpus: &[String], random: &mut Random) {
    let mut bytes = vec![b' '; random.below(5)];
    bytes.extend_from_slice(random.pick(corpus).as_bytes());
    for _ in 0..random.below(4) {
        random.mutate(&mut bytes);
    }
    laws::grammar(&bytes);
    laws::message(&bytes);
    match random.below(4) {
        0 => laws::kernel_twins(&bytes),
        1 => {
            let text = String::from_utf8_lossy(&bytes);
            laws::escaping(&text);
            if let (Some(from), Some(to)) = (text.find('"'), text.rfind('"')) {
                laws::unescaping(&text[from..=to]);
            }
        }
        2 => {
            let max_len = random.below(400);
            let stream = [
                &bytes[..],
                b"\r\n",
                random.pick(corpus).as_bytes(),
                b"\n\n",
                &bytes,
            ];
            laws::lines(&stream.concat(), max_len, random);
        }
        _ => {
            let text =
                String::from_utf8_lossy(&bytes[..random.below(bytes.len() + 1)]).into_owned();
            let id = random.number() >> random.below(64);
            laws::round_trip(id, &text, random.pick(corpus).trim());
        }
    }
}
