//! `cargo xtask eras`: what clients of each era have of servers of each era through a proxy.

use std::process::ExitCode;

use anyhow::Result;

use crate::diagnostic::run_aside;
use crate::repo::{self, command};
use crate::together;

/// Print what clients of each era have of servers of each era through a proxy
///
/// Plays each feature of a client and a server of ours through `mcpbolt proxy`, in each combination of 2025-11-25 and
/// 2026-07-28, on pipes and on HTTP, and beside that without the proxy. A cell that is not in the specification has a
/// note. Fails if a cell does.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: &Args) -> Result<ExitCode> {
    run_aside(together::checked()?)?;
    let status = command(repo::interpreter(), ["interop/eras.py"]).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
