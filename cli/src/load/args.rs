//! The options of `mcpbolt load`.

use std::path::PathBuf;
use std::time::Duration;

use mcpbolt::io::Address;
use mcpbolt::mcp::Revision;

use super::threshold::Threshold;
use super::units;
use crate::session::Start;

/// The end of the help.
pub const EXAMPLES: &str = "\
Examples:
  200 calls a second of a tool, for half a minute:
    mcpbolt load http://127.0.0.1:8000/mcp --tool echo --arguments '{\"text\": \"a\"}' --rate 200 --duration 30s
  As many as the server can do with eight in flight; the server is a command:
    mcpbolt load --workload echo --in-flight 8 -- path/to/server
  The highest rate that the server holds, as a drawing:
    mcpbolt load --workload echo --ramp 100..20k --plot knee.svg -- path/to/server
  What a gateway adds:
    mcpbolt load http://127.0.0.1:8000/mcp --through http://127.0.0.1:9000/mcp --workload echo --rate 100
  In CI:
    mcpbolt load --workload echo --rate 100 --fail-if 'p99>20ms' --json report.json -- path/to/server";

/// What to send, how fast, to whom, and when to fail.
#[derive(clap::Args)]
#[command(mut_arg("command", |command| command.required_unless_present("address")))]
pub struct Args {
    /// The address of the server: http://…, https://…, ws://…, wss://…, tcp:HOST:PORT, unix:/PATH or stdio:COMMAND
    #[arg(value_name = "ADDRESS", conflicts_with_all = ["command", "at"])]
    pub address: Option<Address>,
    #[command(flatten)]
    pub requests: Requests,
    #[command(flatten)]
    pub pace: PaceArgs,
    #[command(flatten)]
    pub second: Second,
    #[command(flatten)]
    pub results: Results,
    #[command(flatten)]
    pub start: Start,
}

/// What to send.
#[derive(clap::Args)]
#[command(next_help_heading = "What to send")]
pub struct Requests {
    /// Call this tool. With --workload echo, sizes, progress or sampling, the name that its tool has on this server
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// The arguments of the tool, a JSON object, by default one without members; an n in braces becomes the number of the call
    #[arg(long, value_name = "JSON")]
    pub arguments: Option<String>,
    /// The text that each answer must have; an n in braces becomes the number of the call
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["workload", "trace"])]
    pub expect: Option<String>,
    /// Send requests of one kind, and check their answers
    #[arg(long, value_name = "KIND", conflicts_with = "trace")]
    pub workload: Option<Kind>,
    /// Send the requests of a file, at the times in it if there are any: a JSON object a line, with method, params, and
    /// perhaps at_ms and expect; or a file that MCPBOLT_TRACE has written, which has no times
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Replay a trace with times so many times faster
    #[arg(long, value_name = "TIMES", requires = "trace", value_parser = units::speed,
        conflicts_with_all = ["rate", "in_flight", "ramp"])]
    pub speed: Option<f64>,
    /// The lengths of the texts of echo and sizes, which take turns: 100,10k,1MB
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = units::size)]
    pub bytes: Vec<usize>,
    /// How many notifications each call of progress reports; 20 by default
    #[arg(long, value_name = "COUNT")]
    pub notifications: Option<u32>,
    /// The resource that listen subscribes to
    #[arg(long, value_name = "URI")]
    pub uri: Option<String>,
}

/// A kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Calls of echo(text), which answers with the text; each text is different
    Echo,
    /// The same with texts of 100 bytes to 100 kB in turns
    Sizes,
    /// The list of tools, with all its pages
    List,
    /// Calls of progress(n), which reports 1 to n and answers "done"
    Progress,
    /// Calls of sleep(ms) that are cancelled when stats() tells that they run
    Cancel,
    /// Subscriptions, opened and ended
    Listen,
    /// Calls of a tool with a prompt that asks the client's model: test_sampling
    Sampling,
}

/// How fast, and for how long.
#[derive(clap::Args)]
#[command(next_help_heading = "How fast")]
pub struct PaceArgs {
    /// Requests per second, however long the server takes: latency counts from the time at which a request is due
    #[arg(long, value_name = "REQUESTS", conflicts_with_all = ["in_flight", "ramp"], value_parser = units::rate)]
    pub rate: Option<f64>,
    /// Requests in flight, each followed by the next one when it is answered; 1 without --rate
    #[arg(long, value_name = "COUNT", conflicts_with = "ramp", value_parser = units::in_flight)]
    pub in_flight: Option<usize>,
    /// Rising rates, to find the highest one that the server holds: 100..20k
    #[arg(long, value_name = "FROM..TO", value_parser = units::rates, conflicts_with_all = ["through", "against"])]
    pub ramp: Option<(f64, f64)>,
    /// How many rates of the ramp, each by the same factor above the one before
    #[arg(long, value_name = "COUNT", default_value_t = 10, requires = "ramp",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub steps: u32,
    /// The p99 up to which a rate of the ramp counts as held; ten times that of the first rate by default, at least 10ms
    #[arg(long, value_name = "TIME", value_parser = units::duration, requires = "ramp")]
    pub knee_p99: Option<Duration>,
    /// How long to measure: 500ms, 30s, 5m; 10s by default, 3s for each rate of a ramp, 1s for each turn of two servers
    #[arg(long, value_name = "TIME", value_parser = units::some_duration)]
    pub duration: Option<Duration>,
    /// How long to load before that
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    pub warm_up: Duration,
    /// How long to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    pub timeout: Duration,
    /// Connections, which take turns. A command is started once for each
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = units::count)]
    pub connections: usize,
    /// The revision to speak; the newest of the server by default
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<Revision>,
}

/// A second server.
#[derive(clap::Args)]
#[command(next_help_heading = "Two servers, in turns")]
pub struct Second {
    /// A gateway or proxy before the same server: what it adds to the latency, and its processor time. It gets --bearer,
    /// --header and --env, too
    #[arg(
        long,
        value_name = "ADDRESS",
        conflicts_with = "against",
        group = "other"
    )]
    pub through: Option<Address>,
    /// Another server, to compare with. It gets none of --bearer, --header and --env
    #[arg(long, value_name = "ADDRESS", group = "other")]
    pub against: Option<Address>,
    /// How many turns each side has: at least 6 for an interval, which more turns narrow
    #[arg(long, value_name = "COUNT", default_value_t = 10, requires = "other", value_parser = units::count)]
    pub rounds: usize,
    /// The process of the second one, if it is not the command and does not listen on this machine
    #[arg(long, value_name = "PID", requires = "other")]
    pub other_pid: Option<u32>,
    /// What the second one puts before the names of tools
    #[arg(long, value_name = "TEXT", default_value = "", requires = "other")]
    pub other_prefix: String,
    /// A bearer token for the server of --against
    #[arg(long, value_name = "TOKEN", requires = "against")]
    pub other_bearer: Option<String>,
    /// A further header for the server of --against, as NAME=VALUE
    #[arg(long = "other-header", value_name = "NAME=VALUE", requires = "against")]
    pub other_headers: Vec<String>,
    /// A variable for the command of --against, as NAME=VALUE, or NAME alone to pass on its current value
    #[arg(long, value_name = "NAME[=VALUE]", requires = "against")]
    pub other_env: Vec<String>,
}

/// Where the results go, and when they are a failure.
#[derive(clap::Args)]
#[command(next_help_heading = "Results")]
pub struct Results {
    /// The process of the server, if it is not the command and does not listen on this machine
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// A file for the report, in JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A file for a drawing (SVG) of the latency: over time, over the rates of a ramp, or over the rounds of two servers
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Show a row for each second on stderr, as on a terminal
    #[arg(long)]
    pub live: bool,
    /// Fail if a figure crosses a bound, as in 'p99>5ms', 'errors>0.1%', 'rate<190' or 'memory>200MB'; may be given
    /// several times. Without one about errors: errors>0
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<Threshold>,
}
