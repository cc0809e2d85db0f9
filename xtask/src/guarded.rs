//! A million calls through servers with a verifier, a policy and a quota: how much memory they leave behind.

use std::thread;

use anyhow::{Context, Result, anyhow, ensure};

use crate::attacks::case::{Carrier, Setup};
use crate::attacks::client::Client;
use crate::attacks::program;
use crate::attacks::target::Target;
use crate::columns::align;
use crate::flood::honest;
use crate::language::Language;
use crate::log::Log;
use crate::repo::Build;

/// The keys of the clients, which call at the same time.
const KEYS: [&str; 3] = ["key-honest", "key-alice", "key-bob"];
/// Calls before the memory is measured first: by then the server has allocated what it keeps for good.
const WARM_UP: u64 = 200_000;
const CALLS: u64 = 1_000_000;
/// How much larger a server may be after the calls: the allocators of three languages differ by as much
/// from one moment to the next.
const MOST_GROWTH: u64 = 12 << 20;

/// The stage `guarded` of `cargo xtask soak`.
pub fn stage(log: &mut Log) -> Result<()> {
    let mut cells = vec![["guarded", "calls", "before", "after", ""].map(str::to_owned)];
    let mut grown = 0;
    for language in Language::ALL {
        let words = program(language, Build::Release)?;
        let server = Target::start(&words, Carrier::Http, Setup::Guarded)?;
        let mut clients: Vec<_> = KEYS
            .iter()
            .map(|key| honest::open(&server.place, Some(key)))
            .collect::<Result<_>>()?;
        call(&mut clients, WARM_UP)?;
        let before = server.memory().0;
        call(&mut clients, CALLS)?;
        let after = server.memory().0;
        let fits = after <= before + MOST_GROWTH;
        grown += usize::from(!fits);
        let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
        cells.push([
            format!("mcpbolt {}", language.name()),
            CALLS.to_string(),
            kib(before),
            kib(after),
            if fits { "ok" } else { "FAILED" }.to_owned(),
        ]);
    }
    let table = align(&cells, 1);
    log.line(&table)?;
    println!("{table}");
    ensure!(grown == 0, "{grown} servers grew");
    Ok(())
}

/// Makes so many calls in all, from all clients at once, and checks each answer.
fn call(clients: &mut [Client], calls: u64) -> Result<()> {
    let each = calls.div_ceil(clients.len() as u64);
    thread::scope(|scope| {
        let all: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(move || (0..each).try_for_each(|n| client.echo(n))))
            .collect();
        all.into_iter().try_for_each(|one| {
            one.join()
                .map_err(|_| anyhow!("a client panicked"))?
                .context("a call")
        })
    })
}
