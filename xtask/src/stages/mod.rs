//! The stages of `cargo xtask test`, in their order: cheap ones first.

mod apart;
pub mod bindings;
mod engine;
mod package;
mod readme;
mod wheels;

use crate::stage::Stage;

/// Our servers: what needs all languages needs them.
const SERVERS: &[&str] = &[
    "core/examples/diagnostic.rs",
    "bindings-python/examples/diagnostic.py",
    "bindings-node/examples/diagnostic.mjs",
];

/// Every stage.
pub fn all() -> Vec<Stage> {
    let stage = |name, about, needs, run| Stage {
        name,
        about,
        needs,
        run,
    };
    vec![
        stage("fmt", "sources are formatted", &[], engine::fmt),
        stage("clippy", "no lint anywhere", &[], engine::clippy),
        stage(
            "sans-io",
            "the engine alone builds without a runtime or a poller",
            &[],
            engine::sans_io,
        ),
        stage(
            "features",
            "each feature alone, without a warning",
            &[],
            engine::features,
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
            "docs",
            "the documentation builds without a warning",
            &[],
            engine::docs,
        ),
        stage(
            "loom",
            "every interleaving of the lock-free rooms",
            &[],
            apart::loom,
        ),
        stage(
            "asan",
            "the engine's units and laws with every memory access checked",
            &[],
            apart::address,
        ),
        stage(
            "tsan",
            "the engine's units with every shared access checked",
            &[],
            apart::thread,
        ),
        stage(
            "msrv",
            "the oldest Rust that Cargo.toml promises",
            &[],
            package::msrv,
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
            &["bindings-python/pyproject.toml"],
            bindings::python,
        ),
        stage(
            "versions",
            "the Python package beside other releases of the SDK and FastMCP",
            &["bindings-python/pyproject.toml"],
            bindings::versions,
        ),
        stage(
            "wheels",
            "the Python package as it is published, alone in empty environments",
            &["bindings-python/pyproject.toml"],
            wheels::wheels,
        ),
        stage(
            "node",
            "the Node package: tests and types",
            &["bindings-node/package.json"],
            bindings::node,
        ),
        stage(
            "interop",
            "official clients and servers against ours",
            &["interop/run.py", "core/examples/diagnostic.rs"],
            bindings::interop,
        ),
        stage(
            "conformance",
            "the official conformance suite against our servers on HTTP",
            &["conformance/package-lock.json"],
            bindings::conformance,
        ),
        stage(
            "demo",
            "a real session with each server, every answer checked",
            SERVERS,
            bindings::demo,
        ),
        stage(
            "readme",
            "the programs of the README run as printed",
            SERVERS,
            readme::readme,
        ),
        stage(
            "guards",
            "instruction counts stay within their limits",
            &["benches/src/bin/instructions.rs"],
            engine::guards,
        ),
    ]
}
