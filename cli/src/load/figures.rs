//! The figures of a report that bounds may be about.

use super::report::Report;
use super::threshold::{Figure, Figures};
use super::units::Quantity;

impl Figures for Report {
    fn figure(&self, name: &str) -> Option<Figure> {
        let latency = &self.latency_ms;
        let is_answered = self.calls > 0;
        let of_calls = |millis: f64| is_answered.then_some(Quantity::Millis(millis));
        let quantity = match name {
            "p50" => of_calls(latency.p50),
            "p90" => of_calls(latency.p90),
            "p95" => of_calls(latency.p95),
            "p99" => of_calls(latency.p99),
            "max" => of_calls(latency.max),
            "mean" => of_calls(latency.mean),
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
