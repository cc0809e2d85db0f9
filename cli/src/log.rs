//! Logging to stderr, filtered by `--log` or `RUST_LOG`; as lines for people, or as JSON.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging, from level `least` by default, unless the process logs already. Invalid directives of the
/// filter are ignored.
pub fn begin(asked: Option<&str>, least: LevelFilter, as_json: bool) {
    let filter = EnvFilter::builder().with_default_directive(least.into());
    let filter = match asked {
        Some(asked) => filter.parse_lossy(asked),
        None => filter.from_env_lossy(),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // In a build with other programs that have colours, lines in files would have them, too.
        .with_ansi(false)
        .with_writer(std::io::stderr);
    let started = match as_json {
        true => log.json().flatten_event(true).try_init(),
        false => log.try_init(),
    };
    drop(started);
}
