//! Node: plain JavaScript, both generations of the official SDK and fastmcp alone, this package, and
//! their servers on this package.

use anyhow::Result;

use super::subject::{By, Probe, Subject, Subjects};
use crate::load::Start;
use crate::log::Log;
use crate::node;
use crate::repo::{self, Build};

const PROGRAMS: &str = "bindings-node/benches";

/// Name, program with arguments, and the name of the server to compare with.
type Table = [(&'static str, &'static str, Option<&'static str>)];

#[rustfmt::skip]
const ON_STDIO: &Table = &[
    ("JavaScript, bare", "floors/stdio.mjs", None),
    ("sdk v1", "servers/theirs.mjs v1 own stdio:", None),
    ("sdk v2", "servers/theirs.mjs v2 own stdio:", None),
    ("fastmcp", "servers/theirs.mjs fastmcp own stdio:", None),
    ("mcpbolt", "servers/native.mjs stdio:", Some("JavaScript, bare")),
    ("sdk v1, accelerated", "servers/theirs.mjs v1 accelerated stdio:", Some("sdk v1")),
    ("sdk v2, accelerated", "servers/theirs.mjs v2 accelerated stdio:", Some("sdk v2")),
    ("fastmcp, accelerated", "servers/theirs.mjs fastmcp accelerated stdio:", Some("fastmcp")),
];

#[rustfmt::skip]
const ON_HTTP: &Table = &[
    ("node:http, bare", "floors/http.mjs {port}", None),
    ("sdk v2", "servers/theirs.mjs v2 own http://127.0.0.1:{port}/mcp", None),
    ("mcpbolt", "servers/native.mjs http://127.0.0.1:{port}/mcp", Some("node:http, bare")),
    ("sdk v2, accelerated", "servers/theirs.mjs v2 accelerated http://127.0.0.1:{port}/mcp", Some("sdk v2")),
    ("sdk v2, our handler on node:http", "servers/theirs.mjs v2 mounted http://127.0.0.1:{port}/mcp", Some("sdk v2")),
];

#[rustfmt::skip]
const IN_SESSIONS: &Table = &[
    ("node:http, bare", "floors/http.mjs {port}", None),
    ("sdk v1", "servers/theirs.mjs v1 own http://127.0.0.1:{port}/mcp", None),
    ("fastmcp", "servers/theirs.mjs fastmcp own http://127.0.0.1:{port}/mcp", None),
    ("mcpbolt", "servers/native.mjs http://127.0.0.1:{port}/mcp", Some("node:http, bare")),
    ("sdk v1, accelerated", "servers/theirs.mjs v1 accelerated http://127.0.0.1:{port}/mcp", Some("sdk v1")),
    ("fastmcp, accelerated", "servers/theirs.mjs fastmcp accelerated http://127.0.0.1:{port}/mcp", Some("fastmcp")),
];

const LOADED: [(&str, &str); 5] = [
    ("node", ""),
    ("mcpbolt", "mcpbolt"),
    (
        "sdk v1, McpServer",
        "@modelcontextprotocol/sdk/server/mcp.js",
    ),
    ("sdk v2", "@modelcontextprotocol/server"),
    ("fastmcp", "fastmcp"),
];

/// Builds our package, and installs the packages to compare with.
pub fn subjects(debug: bool) -> Result<Subjects> {
    let mut log = Log::create("bench-node", false)?;
    let built = node::package(Build::asked(debug), &mut |command| log.run(command));
    if built.is_err() {
        log.show_tail();
    }
    built?;
    let rows = |by, table: &Table| {
        let row = move |&(name, words, than): &_| subject(by, name, words, than);
        table.iter().map(row).collect::<Vec<_>>()
    };
    let all = [
        rows(By::Stdio, ON_STDIO),
        rows(By::Http, ON_HTTP),
        rows(By::Session, IN_SESSIONS),
    ];
    Ok(Subjects {
        servers: all.into_iter().flatten().collect(),
        probes: LOADED.map(probe).into(),
    })
}

fn subject(by: By, name: &'static str, words: &'static str, than: Option<&'static str>) -> Subject {
    let (program, args) = words.split_once(' ').unwrap_or((words, ""));
    let program = repo::root().join(PROGRAMS).join(program);
    let mut all = vec!["node".to_owned(), program.display().to_string()];
    all.extend(args.split_whitespace().map(str::to_owned));
    let stderr = format!("log/bench-{}.stderr", name.replace([' ', ',', ':'], "-"));
    Subject {
        name,
        by,
        start: Start {
            words: all,
            stderr: Some(repo::cache().join(stderr)),
            ..Start::default()
        },
        than,
    }
}

fn probe((name, package): (&'static str, &str)) -> Probe {
    let program = repo::root().join(PROGRAMS).join("load.mjs");
    let words = ["node", &program.display().to_string(), package];
    Probe {
        name,
        words: words.map(str::to_owned).into(),
    }
}
