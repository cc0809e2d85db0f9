//! The figures of a report that bounds may be about.

use super::report::{Latency, Report};
use super::threshold::{Figure, Figures};
use super::units::Quantity;

impl Figures for Report {
    fn missing(&self) -> Option<String> {
        let is_empty = self.calls == 0 && self.errors == 0;
        is_empty.then(|| {
            "no request of the measured time has ended: use a longer --duration".to_owned()
        })
    }

    fn figure(&self, name: &str) -> Option<Figure> {
        let latency =
            |of: fn(&Latency) -> f64| Some(Quantity::Millis(of(self.latency_ms.as_ref()?)));
        let quantity = match name {
            "p50" => latency(|it| it.p50),
            "p90" => latency(|it| it.p90),
            "p95" => latency(|it| it.p95),
            "p99" => latency(|it| it.p99),
            "max" => latency(|it| it.max),
            "mean" => latency(|it| it.mean),
            "lag" => self.send_lag_ms.map(|lag| Quantity::Millis(lag.p99)),
            "cpu" => self
                .server_cpu_us_per_call
                .map(|micros| Quantity::Millis(micros / 1e3)),
            "memory" => self
                .server_memory_bytes
                .map(|memory| Quantity::Bytes(memory.peak as f64)),
            "errors" => Some(Quantity::Plain(self.errors as f64)),
            "errors%" => Some(Quantity::Percent(self.error_percent())),
            "rate" => Some(Quantity::Plain(self.calls_per_second)),
            _ => None,
        };
        quantity.map(Figure::exact)
    }
}
