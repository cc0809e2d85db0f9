//! The servers of the demo: ours in three languages, and the official SDKs'.

use anyhow::{Context, Result};

use crate::language::Language;
use crate::load::Start;
use crate::log::Log;
use crate::python::Venv;
use crate::repo::{self, Stamp, cargo, command};
use crate::together::Programs;

/// A server of the demo.
pub struct Contender {
    pub name: &'static str,
    kind: Kind,
    env: &'static [(&'static str, &'static str)],
}

enum Kind {
    Ours(Language),
    Rmcp,
    Python,
    /// A script below `xtask/peers/node`.
    Node(&'static str),
}

/// Our diagnostic servers.
pub fn ours() -> Vec<Contender> {
    let ours = |name, language| Contender {
        name,
        kind: Kind::Ours(language),
        env: &[],
    };
    vec![
        ours("mcpbolt rust", Language::Rust),
        ours("mcpbolt python", Language::Python),
        ours("mcpbolt node", Language::Node),
    ]
}

/// The same tools on the official SDKs, each with its documented API and, if there is a faster one, also
/// with that.
pub fn peers() -> Vec<Contender> {
    let peer = |name, kind, env| Contender { name, kind, env };
    vec![
        peer("rmcp 3.9 stdio", Kind::Rmcp, &[]),
        peer("rmcp 3.9 stdio_pipes", Kind::Rmcp, &[("PEER_PIPES", "1")]),
        peer(
            "python mcp 2.3 Server",
            Kind::Python,
            &[("PEER_API", "low")],
        ),
        peer("python mcp 2.3 MCPServer", Kind::Python, &[]),
        peer(
            "node sdk v1 Server",
            Kind::Node("v1.mjs"),
            &[("PEER_API", "low")],
        ),
        peer("node sdk v1 McpServer", Kind::Node("v1.mjs"), &[]),
        peer(
            "node sdk v2 Server",
            Kind::Node("v2.mjs"),
            &[("PEER_API", "low")],
        ),
        peer("node sdk v2 McpServer", Kind::Node("v2.mjs"), &[]),
    ]
}

impl Contender {
    /// Whether its calls are slower at first, until a compiler has seen them often.
    pub fn has_jit(&self) -> bool {
        matches!(self.kind, Kind::Ours(Language::Node) | Kind::Node(_))
    }

    /// Whether it is one of our servers.
    pub fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Ours(_))
    }

    /// Builds or installs the server (ours are built already). Returns how to start it. The output of the
    /// build goes to `.cache/log`.
    pub fn build(&self, ours: Option<&Programs>) -> Result<Start> {
        let name = self.name.replace(' ', "-");
        let mut log = Log::create(&format!("demo-{name}"), false)?;
        let built = self.words(ours, &mut log);
        if built.is_err() {
            log.show_tail();
        }
        let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        Ok(Start {
            words: built?,
            env: self.env.iter().map(own).collect(),
            stderr: Some(repo::cache().join(format!("log/demo-{name}.stderr"))),
        })
    }

    fn words(&self, ours: Option<&Programs>, log: &mut Log) -> Result<Vec<String>> {
        let peers = repo::root().join("xtask/peers");
        let paths = match self.kind {
            Kind::Ours(language) => {
                let programs =
                    ours.context("our servers are not built: see the log of demo-build")?;
                return Ok(programs.words(language, "diagnostic"));
            }
            Kind::Rmcp => {
                let target = repo::cache().join("peers/rust");
                let mut build =
                    cargo("build --release --locked --manifest-path xtask/peers/rust/Cargo.toml");
                build.env("CARGO_TARGET_DIR", &target);
                log.run(build)?;
                vec![target.join("release/peer-rmcp")]
            }
            Kind::Python => {
                let list = peers.join("python/requirements.txt");
                let venv = Venv::open("peers", &list, &mut |command| log.run(command))?;
                vec![venv.python(), peers.join("python/server.py")]
            }
            Kind::Node(script) => {
                install_node_peers(log)?;
                vec!["node".into(), repo::cache().join("peers/node").join(script)]
            }
        };
        Ok(paths
            .iter()
            .map(|path| path.display().to_string())
            .collect())
    }
}

/// Copies the Node peers beside their packages, because node resolves packages from the script's folder.
fn install_node_peers(log: &mut Log) -> Result<()> {
    let from = repo::root().join("xtask/peers/node");
    let to = repo::cache().join("peers/node");
    std::fs::create_dir_all(&to)?;
    for entry in std::fs::read_dir(&from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    let stamp = Stamp::new(
        "peers-node",
        std::fs::read_to_string(from.join("package-lock.json"))?,
    );
    if !stamp.is_current() || !to.join("node_modules").exists() {
        let mut install = command("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        install.current_dir(&to);
        log.run(install)?;
        stamp.write()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_node_have_a_jit_and_others_have_none() {
        for contender in ours().iter().chain(&peers()) {
            let name = contender.name;
            assert_eq!(contender.has_jit(), name.contains("node"), "{name}");
        }
    }
}
