//! What a server of this command tells those who watch it: counts for Prometheus, and spans and metrics by OTLP.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use hyper::StatusCode;
use mcpbolt::connection::Observer;
use mcpbolt::io::{Address, Serving};
use mcpbolt::telemetry::{Prometheus, RequestLog, several};
use tracing::info;

use crate::otlp::Otlp;
use crate::page::{self, PageListener, is_meant, page, plain};

/// What is told, and where.
#[derive(clap::Args)]
pub struct Watched {
    /// Show counts for Prometheus at /metrics of this address, such as http://127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS", help_heading = "What it tells")]
    metrics: Option<Address>,
    /// Allow an address of metrics that other machines can reach, where everybody can read them
    #[arg(long, requires = "metrics", help_heading = "What it tells")]
    metrics_anonymous: bool,
    /// Send spans and metrics by OTLP over HTTP to this collector, such as http://127.0.0.1:4318
    ///
    /// The variables of OpenTelemetry apply: OTEL_EXPORTER_OTLP_ENDPOINT in place of this option, OTEL_SERVICE_NAME,
    /// OTEL_TRACES_SAMPLER and so on.
    #[arg(long, value_name = "URL", help_heading = "What it tells")]
    otlp: Option<String>,
    /// Log each request: method, tool, id, trace, session, outcome and seconds; neither arguments nor results
    #[arg(long, help_heading = "What it tells")]
    log_requests: bool,
}

/// What watches a server.
pub struct Watch {
    counts: Option<Arc<Prometheus>>,
    /// Sends what is left when it is dropped.
    otlp: Option<Otlp>,
    log: Option<Arc<RequestLog>>,
}

impl Watched {
    /// Checks that one process serves if its counts are shown at an address.
    ///
    /// # Errors
    /// If several processes would listen there.
    pub fn check(&self, workers: Option<usize>) -> Result<()> {
        ensure!(
            self.metrics.is_none() || workers.is_none(),
            "--metrics shows the counts of one process, and --workers starts several; leave --metrics out, and have each send its counts to a collector by --otlp, from which Prometheus gets them"
        );
        Ok(())
    }

    /// Begins to watch. Counts are kept if an address for them is given, or if they are shown elsewhere, too.
    ///
    /// # Errors
    /// If nothing can be sent to that collector.
    pub fn begin(&self, shows_counts: bool) -> Result<Watch> {
        let counts = self.metrics.is_some() || shows_counts;
        Ok(Watch {
            counts: counts.then(Prometheus::new),
            otlp: Otlp::begin(self.otlp.as_deref())?,
            log: self.log_requests.then(RequestLog::new),
        })
    }

    /// Adds the counters of a server that is running to its counts, and shows them if an address is given.
    ///
    /// # Errors
    /// If the address is not one on this machine although it has to be, or cannot be listened on.
    pub fn show(&self, watch: &Watch, serving: &Serving) -> Result<()> {
        let Some(counts) = watch.counts.clone() else {
            return Ok(());
        };
        counts.watch(serving.metrics().clone());
        let Some(address) = &self.metrics else {
            return Ok(());
        };
        let wrong = |why: &str| anyhow!("--metrics {why}");
        let place = page::place(address).map_err(|why| wrong(&why))?;
        if !self.metrics_anonymous && !place.ip().is_loopback() {
            return Err(wrong(
                "can be reached from other machines, where everybody could read it; write 127.0.0.1, or --metrics-anonymous",
            ));
        }
        let host = match address {
            Address::Http(url) => url.host.clone(),
            _ => String::new(),
        };
        let listener = PageListener::bind(place).with_context(|| format!("--metrics {place}"))?;
        let at = listener.local_addr()?;
        listener.serve("mcpbolt-metrics", move |request| {
            match request.uri().path() {
                _ if !is_meant(request, &host) => {
                    plain(StatusCode::FORBIDDEN, "the Host is not this one\n")
                }
                "/metrics" => page(StatusCode::OK, Prometheus::CONTENT_TYPE, counts.text()),
                _ => plain(StatusCode::NOT_FOUND, "the counts are at /metrics\n"),
            }
        })?;
        info!(at = %format_args!("http://{at}/metrics"), "metrics");
        Ok(())
    }
}

impl Watch {
    /// What the server tells of its requests, if anything is watched.
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        let counts = self.counts.clone().map(|it| it as Arc<dyn Observer>);
        let otlp = self.otlp.as_ref().map(|it| it.observer() as _);
        let log = self.log.clone().map(|it| it as _);
        several([counts, otlp, log].into_iter().flatten().collect())
    }

    /// The counts, if they are kept.
    pub fn counts(&self) -> Option<&Arc<Prometheus>> {
        self.counts.as_ref()
    }
}
