//! Interleaved rounds: every contender runs once per round, so that other load on the machine slows all
//! of them and ratios stay valid. Figures are medians of the CPU time over the rounds.

use std::io::Write;
use std::time::{Duration, Instant};

/// A function to be timed, which does its work `n` times.
pub struct Contender<'a> {
    /// Its name in the table.
    pub name: &'static str,
    run: Box<dyn FnMut(u64) + 'a>,
}

impl<'a> Contender<'a> {
    /// Times `once`, in a loop compiled together with it.
    pub fn new<R>(name: &'static str, mut once: impl FnMut() -> R + 'a) -> Self {
        let run = move |n| {
            for _ in 0..n {
                std::hint::black_box(once());
            }
        };
        Self {
            name,
            run: Box::new(run),
        }
    }

    /// Does the work `n` times.
    pub fn run(&mut self, n: u64) {
        (self.run)(n);
    }
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The class of the input.
    pub class: String,
    /// The name of the contender.
    pub contender: &'static str,
    /// Size of the input of one operation.
    pub bytes: usize,
    /// Median time of one operation.
    pub median_ns: f64,
    /// Instructions of one operation under callgrind, if they were counted.
    pub instructions: Option<u64>,
}

impl Row {
    /// The row as one line of JSON.
    pub fn json(&self) -> String {
        let instructions = match self.instructions {
            Some(count) => format!(",\"instructions\":{count}"),
            None => String::new(),
        };
        format!(
            r#"{{"class":"{}","contender":"{}","bytes":{},"median_ns":{:.1}{instructions}}}"#,
            self.class, self.contender, self.bytes, self.median_ns
        )
    }
}

/// How long one contender runs in one round.
const SLICE: Duration = Duration::from_micros(250);

/// Times the contenders of one class against each other; `per_run` operations make one run.
pub fn measure(
    class: &str,
    bytes: usize,
    per_run: u64,
    rounds: usize,
    contenders: &mut [Contender<'_>],
) -> Vec<Row> {
    let counts: Vec<u64> = contenders.iter_mut().map(calibrate).collect();
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for _ in 0..rounds {
        for ((contender, times), &n) in contenders.iter_mut().zip(&mut times).zip(&counts) {
            // A warm-up, so that each contender runs with its own data in the caches.
            contender.run((n / 8).max(2));
            let start = on_processor();
            contender.run(n);
            let took = on_processor() - start;
            times.push(took.as_secs_f64() * 1e9 / (n * per_run) as f64);
        }
    }
    let rows = contenders.iter().zip(times).map(|(contender, mut times)| {
        times.sort_by(f64::total_cmp);
        Row {
            class: class.to_owned(),
            contender: contender.name,
            bytes,
            median_ns: times[times.len() / 2],
            instructions: None,
        }
    });
    rows.collect()
}

/// The CPU time of this thread.
fn on_processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn calibrate(contender: &mut Contender<'_>) -> u64 {
    let mut n = 1;
    loop {
        let start = Instant::now();
        contender.run(n);
        let took = start.elapsed();
        if took >= SLICE / 4 || n > 1 << 24 {
            return (n as f64 * SLICE.as_secs_f64() / took.as_secs_f64().max(1e-9)).max(1.0) as u64;
        }
        n *= 4;
    }
}

/// Prints the rows of one class; the ratios refer to the first contender.
pub fn print(rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    println!("\n{} ({} bytes)", first.class, first.bytes);
    for row in rows {
        let rate = row.bytes as f64 / row.median_ns;
        let ratio = row.median_ns / first.median_ns;
        println!(
            "  {:<28}{:>14.1} ns{rate:>9.2} GB/s{ratio:>9.2}x",
            row.contender, row.median_ns
        );
    }
}

/// Writes the rows to a file, one JSON line each.
pub fn save(path: &str, rows: &[Row]) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    rows.iter()
        .try_for_each(|row| writeln!(file, "{}", row.json()))
}

/// The total time that this thread has run, or, if the system does not report it, the time since `since`.
/// Elapsed time over more than a time slice would include other processes.
pub fn ran(since: Instant) -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = schedstat.split(' ').next().and_then(|ran| ran.parse().ok());
    ran.map_or_else(|| since.elapsed(), Duration::from_nanos)
}
