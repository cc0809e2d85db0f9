//! Calls with notifications of progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use mcpbolt::connection::Progress;

use super::answer;
use super::call::head;
use super::failure::Failure;
use super::link::Link;

/// Calls of `progress(n)`, which reports 1 to n of n and then answers `done`.
#[derive(Debug)]
pub struct Reports {
    params: String,
    count: u32,
}

impl Reports {
    pub fn new(tool: &str, count: u32) -> Self {
        Self {
            params: format!("{}{{\"n\":{count}}}}}", head(tool)),
            count,
        }
    }

    pub async fn one(&self, link: &Link<'_>) -> Result<(), Failure> {
        let reported = Arc::new(AtomicU32::new(0));
        let (seen, count) = (reported.clone(), self.count);
        // Counts those that come in order; one that does not increase is not even reported.
        let report = Arc::new(move |report: Progress<'_>| {
            let next = seen.load(Relaxed) + 1;
            if report.progress == f64::from(next) && report.total == Some(f64::from(count)) {
                seen.store(next, Relaxed);
            }
        });
        let answer = link.follow(&self.params, report).await?;
        answer::expect(&answer::text(&answer)?, "done")?;
        match reported.load(Relaxed) == count {
            true => Ok(()),
            false => Err(Failure::wrong(
                "progress was not reported in order, once each, before the answer",
            )),
        }
    }
}
