//! The stages of `cargo xtask test`, in their order: cheap ones first.

mod apart;
pub mod bindings;
mod dependencies;
mod engine;
mod package;
mod readme;
mod wheels;

use crate::stage::{Deep, Stage};
use crate::{api, requirements, toolchain};

/// Stages of the second lane. They use cargo little and run long. They share the packages laid out in
/// .cache and the programs of the README, so they run one after the other.
const BESIDE: [&str; 8] = [
    "package",
    "python",
    "node",
    "conformance",
    "demo",
    "attacks",
    "readme",
    "wheels",
];
/// Stages that run before all others.
const FIRST: [&str; 2] = ["fmt", "build"];
/// Stages that check the traces and the logs of the others.
const LAST: [&str; 2] = ["interop", "requirements"];

/// Groups the chosen stages into turns. A turn has one or two lanes, which run at the same time.
pub fn turns<'a>(chosen: &[&'a Stage]) -> Vec<Vec<Vec<&'a Stage>>> {
    let of = |names: &[&str]| -> Vec<&'a Stage> {
        let is = |stage: &&&Stage| names.contains(&stage.name);
        chosen.iter().filter(is).copied().collect()
    };
    let named = [&FIRST[..], &BESIDE, &LAST].concat();
    let others = chosen.iter().filter(|stage| !named.contains(&stage.name));
    let turns = vec![
        vec![of(&FIRST)],
        vec![others.copied().collect(), of(&BESIDE)],
        vec![of(&LAST)],
    ];
    let has_stages = |turn: &Vec<Vec<&Stage>>| turn.iter().any(|lane| !lane.is_empty());
    turns.into_iter().filter(has_stages).collect()
}

/// The stages that need cargo, a C compiler, python3, node and npm, and nothing else.
pub fn all() -> Vec<Stage> {
    let stage = |name, about, needs, run| Stage {
        name,
        about,
        needs,
        run,
    };
    vec![
        stage("fmt", "sources are formatted", &[], engine::fmt),
        stage(
            "build",
            "each crate once, for the tests of all three languages",
            &[],
            engine::build,
        ),
        stage(
            "clippy",
            "no lint, except in what needs the libraries measured beside the engine",
            &[],
            engine::clippy,
        ),
        stage(
            "dependencies",
            "licences, sources and versions of what the packages are built with",
            &[],
            dependencies::dependencies,
        ),
        stage(
            "sans-io",
            "the engine alone builds without a runtime or a poller",
            &[],
            engine::sans_io,
        ),
        stage(
            "core",
            "the engine's tests, all features",
            &[],
            engine::core,
        ),
        stage(
            "tools",
            "the tests of the tools around it",
            &[],
            engine::tools,
        ),
        stage(
            "fuzz",
            "the laws of the codec on its corpus and on random input",
            &[],
            engine::fuzz,
        ),
        stage(
            "package",
            "the README's programs build in an empty project on the packaged crate",
            &[],
            package::package,
        ),
        stage(
            "python",
            "the Python package: tests, stubs, types",
            &[],
            bindings::python,
        ),
        stage(
            "wheels",
            "the Python package as it is published, alone in empty environments",
            &[],
            wheels::wheels,
        ),
        stage(
            "node",
            "the Node package: tests and types",
            &[],
            bindings::node,
        ),
        stage(
            "interop",
            "official clients and servers against ours",
            &[],
            bindings::interop,
        ),
        stage(
            "conformance",
            "the official conformance suite against our servers and clients on HTTP, and through a proxy and a gateway",
            &[],
            bindings::conformance,
        ),
        stage(
            "demo",
            "a real session with each server, every answer checked",
            &[],
            bindings::demo,
        ),
        stage(
            "attacks",
            "the corpus of attacks, and a brief flood, against each server on each carrier; the corpus of tokens",
            &[],
            bindings::attacks,
        ),
        stage(
            "readme",
            "the programs of the README run as printed",
            &[],
            readme::readme,
        ),
        stage(
            "requirements",
            "a test of each requirement passed, or the reason for having none holds",
            &[],
            requirements::check,
        ),
    ]
}

/// The stages that need more tools, or run for minutes without testing more behaviour.
pub fn deep() -> Vec<Deep> {
    let deep = |name, about, missing, run| Deep {
        stage: Stage {
            name,
            about,
            needs: &[],
            run,
        },
        missing,
    };
    let nothing = || None;
    vec![
        deep(
            "guards",
            "instruction counts stay within their limits",
            engine::valgrind,
            engine::guards,
        ),
        deep(
            "features",
            "no lint with all features, no warning with each alone",
            nothing,
            engine::features,
        ),
        deep(
            "docs",
            "the documentation builds without a warning",
            nothing,
            engine::docs,
        ),
        deep(
            "loom",
            "interleavings of slots, wake-ups and queues: two threads in full, more to three preemptions",
            nothing,
            apart::loom,
        ),
        deep(
            "asan",
            "the engine's units and laws with every memory access checked",
            apart::address_runtime,
            apart::address,
        ),
        deep(
            "tsan",
            "the engine's units, workers, sockets and HTTP with every shared access checked",
            apart::thread_runtime,
            apart::thread,
        ),
        deep(
            "fuzzing",
            "the laws of the codec on random input, for minutes",
            nothing,
            engine::fuzzing,
        ),
        deep(
            "targets",
            "each libFuzzer target, guided by coverage, for seconds",
            apart::address_runtime,
            apart::targets,
        ),
        deep(
            "msrv",
            "the oldest Rust that Cargo.toml promises",
            toolchain::missing,
            package::msrv,
        ),
        deep(
            "api",
            "the public API of the crates is as listed (API.txt)",
            toolchain::missing,
            api::check,
        ),
        deep(
            "versions",
            "the Python package beside other releases of the SDK and FastMCP",
            nothing,
            bindings::versions,
        ),
        deep(
            "types",
            "2,000 generated signatures of Python tools, beside pydantic and FastMCP; their tests of tools, and the SDK's",
            nothing,
            bindings::types,
        ),
        deep(
            "published",
            "servers that others have published on PyPI, by themselves and under mcpbolt exec",
            nothing,
            bindings::published,
        ),
        deep(
            "published-node",
            "servers that others have published on npm, by themselves and under mcpbolt exec",
            nothing,
            bindings::published_node,
        ),
        deep(
            "published-gateway",
            "servers that others have published behind a gateway, and command lines of others before it",
            nothing,
            bindings::published_gateway,
        ),
        deep(
            "versions-node",
            "the Node package beside other releases of the SDKs",
            nothing,
            bindings::versions_node,
        ),
        deep(
            "python-wakeups",
            "the Python package on event loops that watch no descriptors, as on other systems",
            nothing,
            bindings::portable,
        ),
        deep(
            "python-versions",
            "the Python package with other interpreters: 3.10, 3.12 and 3.13",
            bindings::other_interpreters,
            bindings::interpreters,
        ),
        deep(
            "node-versions",
            "the Node package with other releases of Node: 20.6.0 and the newest 22",
            nothing,
            bindings::node_versions,
        ),
        deep(
            "translated-node",
            "the official SDK's tests of tools, schemas and results, on its servers as the engine serves them",
            bindings::clone_of_sdk,
            bindings::translated_node,
        ),
        deep(
            "prometheus",
            "what the command shows for Prometheus, read by the parser of Prometheus's client library and by promtool",
            engine::promtool,
            engine::prometheus,
        ),
        deep(
            "stores",
            "the tests of the stores on the redis-server that is installed",
            engine::redis,
            engine::stores,
        ),
        deep(
            "streams",
            "100,000 streams that clients resume at other processes: no gap, no duplicate, in memory and on stores; and what idle sessions cost a store",
            nothing,
            engine::streams,
        ),
        deep(
            "gateway",
            "1,000 clients with equal ids at a gateway, servers that fail in every way, a million calls under 1,000 reloads",
            nothing,
            bindings::gateway,
        ),
        deep(
            "pages",
            "a page in a browser on our servers, and logins in a browser",
            bindings::browser,
            bindings::pages,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chosen_stage_has_one_turn() {
        let all = all();
        let chosen: Vec<_> = all.iter().collect();
        let turns = turns(&chosen);
        let named = |lanes: &Vec<Vec<&Stage>>| lanes.iter().flatten().map(|s| s.name).collect();
        let found: Vec<Vec<&str>> = turns.iter().map(named).collect();
        assert_eq!(found.concat().len(), all.len());
        assert_eq!((found[0][..].len(), &found[2][..]), (2, &LAST[..]));
    }
}
