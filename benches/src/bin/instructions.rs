//! Counts instructions per decoded message under callgrind and fails above the guards.
//!
//! Wall-clock times move with the neighbours of a machine; these counts do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measuring program stops at the first surprise"
)]

use std::process::ExitCode;

use mcpbolt::message::Envelope;
use mcpbolt_benches::{contenders, corpus, count};

/// Most instructions that decoding one message of a class may take.
const GUARDS: [(&str, u64); 3] = [("ping", 520), ("call150", 1450), ("tools10k", 75_000)];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [class, runs] = &args[..] {
        decode(class, runs.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let mut good = true;
    for input in corpus::all()
        .iter()
        .filter(|input| input.bytes().len() < 200_000)
    {
        let count = count::instructions(input.class).expect("valgrind counts");
        let guard = GUARDS.iter().find(|(class, _)| *class == input.class);
        let verdict = match guard {
            Some((_, most)) if count > *most => {
                good = false;
                format!("above the guard of {most}")
            }
            Some((_, most)) => format!("guard {most}"),
            None => String::new(),
        };
        println!("{:<18}{count:>9} instructions  {verdict}", input.class);
    }
    ExitCode::from(u8::from(!good))
}

fn decode(class: &str, runs: u64) {
    let input = corpus::input(class).expect("a class");
    let mut envelope = Envelope::new();
    for _ in 0..runs {
        assert!(contenders::engine(
            std::hint::black_box(input.frame()),
            &mut envelope
        ));
        std::hint::black_box(&envelope);
    }
}
