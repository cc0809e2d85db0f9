//! `cargo run --release -p mcpbolt-fuzz -- SECONDS [SEED]`: all laws on random input.
#![allow(clippy::print_stdout, reason = "it is a command")]

use std::time::{Duration, Instant};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let (Some(Ok(seconds)), Ok(seed)) = (numbers.next(), numbers.next().unwrap_or(Ok(1))) else {
        eprintln!("usage: mcpbolt-fuzz SECONDS [SEED]");
        std::process::exit(2);
    };
    let start = Instant::now();
    let mut minutes = 0;
    let cases = mcpbolt_fuzz::run::all(seed, Duration::from_secs(seconds), |cases| {
        if start.elapsed().as_secs() / 60 > minutes {
            minutes = start.elapsed().as_secs() / 60;
            println!("{minutes} min: {cases} cases");
        }
    });
    println!("{cases} cases, seed {seed}: every law holds");
}
