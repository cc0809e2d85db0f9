//! What the commands about logins say where no authorization server takes part. Logins with a real one are in
//! `interop/logins.py`.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

struct Sandbox(std::path::PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let folder = format!("mcpbolt-cli-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(folder))
    }

    fn run(&self, args: &[&str]) -> (bool, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
            .args(args)
            .env("MCPBOLT_CREDENTIALS", &self.0)
            .env("MCPBOLT_CLIENT_SECRET", "not to be told")
            .output()
            .unwrap();
        let said = String::from_utf8([stdout, stderr].concat()).unwrap();
        assert!(!said.contains("not to be told"), "{said}");
        (status.success(), said)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_cannot_be_is_said() {
    let sandbox = Sandbox::new("refused");
    let url = "https://127.0.0.1:9/mcp";
    let cases: [(&[&str], &str); 10] = [
        (&["login"], "<URL>"),
        (
            &["login", "tcp:127.0.0.1:9"],
            "only servers on HTTP have logins",
        ),
        (&["login", "nonsense"], "nonsense"),
        (&["login", url], "logging in to https://127.0.0.1:9/mcp"),
        (
            &["login", url, "--device", "--paste"],
            "cannot be used with",
        ),
        (&["login", url, "--machine"], "--client-id"),
        (&["login", url, "--signing-key", "x.pem"], "--client-id"),
        (
            &[
                "login",
                url,
                "--client-id",
                "a",
                "--client-secret-file",
                "/no/such/file",
            ],
            "/no/such/file",
        ),
        (
            &[
                "login",
                url,
                "--client-id",
                "a",
                "--signing-key",
                concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            ],
            "signing key",
        ),
        (&["login", url, "--ca", "/no/such/file"], "certificates"),
    ];
    for (args, why) in cases {
        let (succeeds, said) = sandbox.run(args);
        assert!(!succeeds && said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn a_login_that_is_not_there_is_asked_for() {
    let sandbox = Sandbox::new("absent");
    let (succeeds, said) = sandbox.run(&["whoami", "https://mcp.example/mcp"]);
    assert!(
        !succeeds && said.contains("mcpbolt login https://mcp.example/mcp"),
        "{said}"
    );
    let (succeeds, said) = sandbox.run(&["logout", "https://mcp.example/mcp"]);
    assert!(succeeds && said.contains("There is no login"), "{said}");
}

/// The commands and options that a guide names: in its programs, and in its sentences, where options alone are those
/// of `login`. Options with `=` are those of other programs.
fn named(guide: &str) -> Vec<(&str, Vec<&str>)> {
    let of_programs = guide.lines().filter(|line| line.starts_with("mcpbolt "));
    let of_sentences = guide.split('`').skip(1).step_by(2);
    let of_sentences = of_sentences.filter(|text| !text.contains('\n'));
    let all = of_programs.chain(of_sentences).filter_map(|text| {
        let mut words = text
            .strip_prefix("mcpbolt ")
            .unwrap_or(text)
            .split(' ')
            .peekable();
        let first = words.peek().copied()?;
        let options = words.filter(|word| word.starts_with("--") && !word.contains('='));
        let options: Vec<_> = options.collect();
        let is_command = text.starts_with("mcpbolt ") || ["login", "logout"].contains(&first);
        match is_command {
            true => Some((first, options)),
            false => (!options.is_empty()).then_some(("login", options)),
        }
    });
    all.collect()
}

#[test]
fn what_the_guides_name_exists() {
    let sandbox = Sandbox::new("guides");
    for (guide, least) in [
        (include_str!("../../core/AUTHORIZATION.md"), 15),
        (include_str!("../../core/KEYCLOAK.md"), 5),
    ] {
        let named = named(guide);
        assert!(named.len() >= least, "{named:?}");
        for (command, options) in named {
            let (succeeds, help) = sandbox.run(&[command, "--help"]);
            assert!(succeeds, "{command}: {help}");
            for option in options {
                let is_there = help.split([' ', ',', '\n']).any(|word| word == option);
                assert!(is_there, "{command} {option}: {help}");
            }
        }
    }
}

struct Serving(Child, String);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_without_logins_is_told_apart() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["serve", "http://127.0.0.1:0/mcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    output.read_line(&mut address).unwrap();
    let serving = Serving(process, address.trim().to_owned());
    let sandbox = Sandbox::new("open");
    let (succeeds, said) = sandbox.run(&["login", &serving.1]);
    assert!(succeeds && said.contains("asks for no login"), "{said}");
}
