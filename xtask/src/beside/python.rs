//! Python: bare loops, the official SDK and FastMCP alone, this package, and their servers on this package.

use std::path::Path;

use anyhow::Result;

use super::subject::{By, Probe, Subject, Subjects};
use crate::load::Start;
use crate::log::Log;
use crate::python::{self, Venv, Wheel};
use crate::repo::{self, Build};

/// The packages that all servers are measured with.
const REQUIREMENTS: &str = "bindings-python/benches/requirements.txt";
const SERVERS: &str = "bindings-python/benches/servers";

/// The build of this package that a server uses.
#[derive(Clone, Copy)]
enum Ours {
    /// The wheel for its interpreter version.
    Version,
    /// The wheel for every interpreter.
    Abi3,
}

/// Name, program with arguments, build, and the name of the server to compare with.
type Table = [(&'static str, &'static str, Ours, Option<&'static str>)];

#[rustfmt::skip]
const ON_STDIO: &Table = &[
    ("asyncio + orjson, bare", "floor_stdio.py", Ours::Version, None),
    ("mcp Server", "theirs.py server own stdio:", Ours::Version, None),
    ("mcp MCPServer", "theirs.py mcpserver own stdio:", Ours::Version, None),
    ("FastMCP", "theirs.py fastmcp own stdio:", Ours::Version, None),
    ("mcpbolt", "native.py stdio:", Ours::Version, Some("mcp Server")),
    ("mcpbolt, beside the floor", "native.py stdio:", Ours::Version, Some("asyncio + orjson, bare")),
    ("mcpbolt, inline", "native.py stdio: inline", Ours::Version, Some("mcp Server")),
    ("mcpbolt, abi3", "native.py stdio:", Ours::Abi3, Some("mcp Server")),
    ("mcp Server, served", "theirs.py server served stdio:", Ours::Version, Some("mcp Server")),
    ("mcp MCPServer, accelerated", "theirs.py mcpserver accelerated stdio:", Ours::Version, Some("mcp MCPServer")),
    ("FastMCP, accelerated", "theirs.py fastmcp accelerated stdio:", Ours::Version, Some("FastMCP")),
    ("FastMCP, with middleware and logging", "theirs.py fastmcp own stdio: logged", Ours::Version, None),
    ("mcpbolt, with middleware and logging", "native.py stdio: logged", Ours::Version, Some("FastMCP, with middleware and logging")),
    ("mcpbolt, async, with middleware and logging", "native.py stdio: async logged", Ours::Version, Some("FastMCP, with middleware and logging")),
];

#[rustfmt::skip]
const ON_HTTP: &Table = &[
    ("ASGI on uvicorn, bare", "floor_asgi.py {port}", Ours::Version, None),
    ("mcp Server", "theirs.py server own http://127.0.0.1:{port}/mcp", Ours::Version, None),
    ("mcp MCPServer", "theirs.py mcpserver own http://127.0.0.1:{port}/mcp", Ours::Version, None),
    ("FastMCP", "theirs.py fastmcp own http://127.0.0.1:{port}/mcp", Ours::Version, None),
    ("mcpbolt", "native.py http://127.0.0.1:{port}/mcp", Ours::Version, Some("mcp Server")),
    ("mcpbolt, beside the floor", "native.py http://127.0.0.1:{port}/mcp", Ours::Version, Some("ASGI on uvicorn, bare")),
    ("mcpbolt, inline", "native.py http://127.0.0.1:{port}/mcp inline", Ours::Version, Some("mcp Server")),
    ("mcpbolt, abi3", "native.py http://127.0.0.1:{port}/mcp", Ours::Abi3, Some("mcp Server")),
    ("mcp Server, served", "theirs.py server served http://127.0.0.1:{port}/mcp", Ours::Version, Some("mcp Server")),
    ("mcp MCPServer, accelerated", "theirs.py mcpserver accelerated http://127.0.0.1:{port}/mcp", Ours::Version, Some("mcp MCPServer")),
    ("FastMCP, accelerated", "theirs.py fastmcp accelerated http://127.0.0.1:{port}/mcp", Ours::Version, Some("FastMCP")),
];

const LOADED: [(&str, &str); 5] = [
    ("python", "pass"),
    ("import mcpbolt", "import mcpbolt"),
    ("from mcpbolt import Server", "from mcpbolt import Server"),
    (
        "from mcp.server import MCPServer",
        "from mcp.server import MCPServer",
    ),
    ("from fastmcp import FastMCP", "from fastmcp import FastMCP"),
];

/// Builds both wheels, and installs the packages to compare with.
pub fn subjects(debug: bool) -> Result<Subjects> {
    let mut log = Log::create("bench-python", false)?;
    let made = make(Build::asked(debug), &mut log);
    if made.is_err() {
        log.show_tail();
    }
    made
}

fn make(how: Build, log: &mut Log) -> Result<Subjects> {
    let run = &mut |command| log.run(command);
    let list = repo::root().join(REQUIREMENTS);
    let venv = Venv::open("bench", &list, run)?;
    let version = python::unpacked(how, Wheel::Version, run)?;
    let abi3 = python::unpacked(how, Wheel::Abi3, run)?;
    let python = venv.python().display().to_string();
    let subject = |by, &(name, words, ours, than): &(&'static str, &str, Ours, _)| {
        let mut all = vec![python.clone()];
        let mut words = words.split(' ');
        let program = words.next().unwrap_or_default();
        all.push(
            repo::root()
                .join(SERVERS)
                .join(program)
                .display()
                .to_string(),
        );
        all.extend(words.map(str::to_owned));
        let found = match ours {
            Ours::Version => &version,
            Ours::Abi3 => &abi3,
        };
        let stderr = format!("log/bench-{}.stderr", name.replace([' ', ',', '+'], "-"));
        Subject {
            name,
            by,
            start: Start {
                words: all,
                env: environment(found),
                stderr: Some(repo::cache().join(stderr)),
            },
            than,
        }
    };
    let servers = (ON_STDIO.iter().map(|row| subject(By::Stdio, row)))
        .chain(ON_HTTP.iter().map(|row| subject(By::Http, row)))
        .collect();
    let path = version.display();
    let probes = LOADED.map(|(name, code)| Probe {
        name,
        words: vec![
            "env".to_owned(),
            format!("PYTHONPATH={path}"),
            python.clone(),
            "-c".to_owned(),
            format!("{code}\nprint(flush=True)\nimport sys\nsys.stdin.read()"),
        ],
    });
    Ok(Subjects {
        servers,
        probes: probes.into(),
    })
}

fn environment(found: &Path) -> Vec<(String, String)> {
    vec![("PYTHONPATH".to_owned(), found.display().to_string())]
}
