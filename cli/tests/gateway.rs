//! `mcpbolt gateway`: files of settings, good and bad, and what it serves.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod serving;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serving::Serving;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("mcpbolt-gateway-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The status, what stands on stdout, and the lines on stderr without the name of the file.
fn check(file: &Path) -> (i32, String, Vec<String>) {
    let run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["gateway", "--check", "--config"])
        .arg(file)
        .env("TOKEN", "very-secret")
        .env_remove("NOT_SET")
        .output()
        .unwrap();
    let error = String::from_utf8(run.stderr).unwrap();
    let error = error.replace(&format!("{}:", file.display()), "");
    let lines = error
        .lines()
        .map(|line| line.trim_start_matches("error: ").to_owned());
    let shown = String::from_utf8(run.stdout).unwrap();
    (run.status.code().unwrap(), shown, lines.collect())
}

const GOOD: &str = r#"
listen = "http://127.0.0.1:8000/mcp"

[servers.git]
command = ["uvx", "mcp-server-git", "--token", "${TOKEN}"]
env = { GIT = "${NOT_SET:-git}", PRICE = "$${5}" }

[servers.docs]
url = "https://docs.example.com/mcp?key=${TOKEN}"
headers = { Authorization = "Bearer ${file:token.txt}" }
revisions = ["2025-06-18"]
timeout = 20
prefix = ""
isolation = "shared"
max_connections = 4

[policy]
keys = { "${TOKEN}" = { client = "alice", scopes = ["git"] } }
rate = { burst = 20, perSecond = 5 }
"#;

#[test]
fn a_good_file_is_shown_without_what_it_refers_to() {
    let folder = Folder::new("good");
    folder.write("token.txt", "very-secret\n");
    let (status, shown, said) = check(&folder.write("gateway.toml", GOOD));
    assert_eq!((status, said), (0, vec![]), "{shown}");
    for part in [
        "http://127.0.0.1:8000/mcp",
        "git",
        "--token ${TOKEN}",
        "https://docs.example.com/mcp?key=${TOKEN}",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("very-secret"), "{shown}");
}

#[test]
fn the_file_of_the_guide_is_good() {
    let guide = include_str!("../../core/GATEWAY.md");
    let blocks = guide.split("```toml\n").skip(1);
    let text: String = blocks
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let folder = Folder::new("guide");
    folder.write("docs.token", "secret");
    let text = text
        .replace("${GIT_TOKEN}", "${TOKEN}")
        .replace("${ALICE_KEY}", "${TOKEN}");
    let (status, shown, said) = check(&folder.write("gateway.toml", &text));
    assert_eq!((status, said), (0, vec![]));
    assert!(
        shown.contains("git: git_* at uvx mcp-server-git --repository .\n"),
        "{shown}"
    );
    assert!(
        shown.contains("notes: * at http://127.0.0.1:9000/mcp\n"),
        "{shown}"
    );
}

#[test]
fn the_files_of_editors_are_read() {
    let folder = Folder::new("editors");
    let text = r#"{
        "globalShortcut": "",
        "mcpServers": {
            "my files": {"command": "npx", "args": ["-y", "server", "${TOKEN}"], "env": {"A": "1"}, "autoApprove": []},
            "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${env:TOKEN}"}},
            "off": {"command": "nothing", "disabled": true}
        }
    }"#;
    let (status, shown, said) = check(&folder.write("mcp.json", text));
    assert_eq!(status, 0, "{said:?}");
    assert_eq!(
        said,
        [
            "warning: 2: globalShortcut: is ignored",
            "warning: 4: mcpServers.\"my files\".autoApprove: is ignored"
        ]
    );
    assert!(
        shown.contains("my files: my_files_* at npx -y server ${TOKEN}")
            && shown.contains("https://example.com/mcp"),
        "{shown}"
    );
    assert!(!shown.contains("nothing"), "{shown}");
}

#[test]
fn each_mistake_is_told_with_its_line_and_key() {
    let folder = Folder::new("bad");
    for (text, expected) in [
        (
            "[servers.a]\ncomand = \"x\"",
            vec![
                "1: servers.a: has neither a command nor a url",
                "2: servers.a.comand: is no setting; there are disabled, prefix, revisions, timeout, isolation, max_connections, type, url, command, args, env, cwd, headers",
            ],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nurl = \"http://a/\"",
            vec!["1: servers.a: has a command and a url; one of them is where the server is"],
        ),
        (
            "[servers.a]\n\nurl = \"htp://x\"",
            vec!["3: servers.a.url: "],
        ),
        (
            "[servers.a]\ncommand = [\"x\", 1]\nargs = \"y\"",
            vec![
                "2: servers.a.command[1]: is a number; must be a text",
                "3: servers.a.args: is a text; must be a list of texts",
            ],
        ),
        (
            "[servers.a]\ncommand = \"${NOT_SET}\"",
            vec!["2: servers.a.command: the variable NOT_SET is not set"],
        ),
        (
            "[servers.a]\ncommand = \"${TOKEN\"",
            vec!["2: servers.a.command: has ${ without }; write $${ for ${ itself"],
        ),
        (
            "[servers.a]\ncommand = \"${vault:x}\"",
            vec!["2: servers.a.command: ${vault:…} is not known; there are env, file and command"],
        ),
        (
            "[servers.a]\ncommand = \"${command:false}\"",
            vec!["2: servers.a.command: false ended with exit status: 1"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\ntimeout = 0\nrevisions = [\"2020-01-01\"]",
            vec![
                "3: servers.a.timeout: must be a whole number from 1 on",
                "4: servers.a.revisions[0]: ",
            ],
        ),
        (
            "[servers.7]\ncommand = \"x\"",
            vec!["1: servers.7: \"7\": a number is no prefix"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nisolation = \"none\"\nmax_connections = 0",
            vec![
                "3: servers.a.isolation: \"none\" is no isolation; write session, principal or shared",
                "4: servers.a.max_connections: must be a whole number from 1 on",
            ],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nprefix = \"\"\n[servers.b]\ncommand = \"x\"\nprefix = \"\"",
            vec!["4: servers.b: has no prefix, as another server: one at most may have none"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[servers.a_B]\ncommand = \"x\"",
            vec![
                "3: servers.a_B: its prefix \"a_B\" and \"a\", that of \"a\", could make the same names",
            ],
        ),
        (
            "[servers.\"a.b\"]\ncommand = \"x\"",
            vec!["1: servers.\"a.b\": \"a.b\" is no prefix: write prefix = with ASCII letters"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[mcpServers.a]\ncommand = \"x\"",
            vec!["3: mcpServers.a: has the name of another server"],
        ),
        (
            "[servers.a]\nurl = \"${TOKEN}\"",
            vec!["2: servers.a.url: what this refers to is no address"],
        ),
        (
            "[servers.a]\nurl = \"http://a/\"\nenv = { A = \"b\" }",
            vec!["1: servers.a: has env, which only a command has"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nheaders = { A = \"b\" }",
            vec!["1: servers.a: has headers, which only a url has"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\nrates = 1",
            vec!["3: policy: unknown field `rates`"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\nsecrets = [\"${NOT_SET}\"]",
            vec!["4: policy.secrets[0]: the variable NOT_SET is not set"],
        ),
        (
            "servers = 1",
            vec!["1: servers: is a number; must be a table"],
        ),
        (
            "listen = \"stdio:\"",
            vec!["1: names no server; write [servers.NAME] with a command or a url"],
        ),
        ("[servers.a]\ncommand = x", vec!["2: "]),
    ] {
        let (status, shown, said) = check(&folder.write("gateway.toml", text));
        assert_eq!((status, shown.as_str()), (1, ""), "{text}: {said:?}");
        assert_eq!(said.len(), expected.len(), "{text}: {said:?}");
        for (said, expected) in said.iter().zip(&expected) {
            assert!(said.trim_start().starts_with(expected), "{text}: {said}");
        }
        assert!(said.iter().all(|line| !line.contains("very-secret")));
    }
    let (status, _, said) = check(&folder.write(
        "mcp.json",
        "{\n \"mcpServers\": {\"a\": {\"url\": \"http://a/\"}, \"a\": 1,}\n}",
    ));
    assert_eq!((status, said.len()), (1, 1), "{said:?}");
    assert_eq!(said[0], "2: key must be a string");
    let (_, _, said) = check(&folder.write(
        "mcp.json",
        "{\"mcpServers\": {\n\"a\": {\"url\": \"http://a/\"},\n \"a\": {}}}",
    ));
    assert_eq!(said, ["3: mcpServers.a: is given twice"]);
    let (_, _, said) = check(Path::new("/no/such/gateway.toml"));
    assert!(said[0].contains("No such file"), "{said:?}");
}

/// The sample server of the examples, which adds.
fn adder() -> PathBuf {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    command.with_file_name("examples").join("adder")
}

fn gateway(file: &Path) -> Serving {
    let file = file.to_str().unwrap();
    Serving::with(&["gateway", "http://127.0.0.1:0/mcp", "--config", file])
}

fn inspected(gateway: &Serving) -> String {
    String::from_utf8(gateway.run(&["inspect"]).stdout).unwrap()
}

/// Whether something comes to be so.
fn comes(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

#[test]
fn several_servers_are_one() {
    let folder = Folder::new("several");
    let third = Serving::with(&[
        "proxy",
        "http://127.0.0.1:0/mcp",
        "--",
        adder().to_str().unwrap(),
    ]);
    let text = format!(
        "[servers.one]\ncommand = {:?}\n[servers.two]\ncommand = [{:?}]\n[servers.third]\nurl = {:?}\nprefix = \"\"\n",
        adder(),
        adder(),
        third.address
    );
    let gateway = gateway(&folder.write("gateway.toml", &text));
    let said = inspected(&gateway);
    for tool in ["one_add", "two_add", "add"] {
        assert!(said.contains(&format!("\n  {tool} ")), "{said}");
    }
    for (tool, arguments, expected) in [
        ("one_add", r#"{"a": 1, "b": 2}"#, "3\n"),
        ("two_add", r#"{"a": 3, "b": 4}"#, "7\n"),
        ("add", r#"{"a": 5, "b": 6}"#, "11\n"),
    ] {
        let called = gateway.run(&["call", tool, arguments]);
        assert_eq!(
            String::from_utf8(called.stdout).unwrap(),
            expected,
            "{tool}"
        );
    }
    // A server that is away is left out; the others serve on.
    drop(third);
    assert!(comes(|| {
        let said = inspected(&gateway);
        said.contains("one_add") && !said.contains("\n  add ")
    }));
    let called = gateway.run(&["call", "add", "{}"]);
    let said = String::from_utf8(called.stderr).unwrap();
    assert!(!called.status.success() && said.contains("third"), "{said}");
}

#[test]
fn a_changed_file_is_read_again_and_no_call_is_lost() {
    let folder = Folder::new("reloaded");
    let command = env!("CARGO_BIN_EXE_mcpbolt");
    let one = format!("[servers.one]\ncommand = [{command:?}, \"serve\", \"stdio:\"]\n");
    let two = format!("[servers.two]\ncommand = {:?}\n", adder());
    let file = folder.write("gateway.toml", &one);
    let gateway = gateway(&file);
    assert!(!inspected(&gateway).contains("two_add"));
    std::thread::scope(|scope| {
        // Clients with a session keep the connections that they have; others come to the new ones at once.
        let gateway = &gateway;
        let loads = ["2025-06-18", "2026-07-28"].map(|revision| {
            scope.spawn(move || {
                // Each call takes some time, so that some are under way at each change.
                let call = ["load", "--tool", "one_test_tool_with_progress"];
                let how = ["--rate", "50", "--duration", "6s", "--revision", revision];
                gateway.run(&[&call[..], &how].concat())
            })
        });
        // The file comes to be both again and again; what is wrong changes nothing.
        for text in [
            format!("{one}{two}"),
            one.clone(),
            "[servers.one]\n".to_owned(),
            format!("{one}\n{two}"),
        ] {
            std::thread::sleep(Duration::from_millis(1300));
            folder.write("gateway.toml", &text);
        }
        for load in loads {
            let load = load.join().unwrap();
            assert!(load.status.success(), "{load:?}");
        }
    });
    // Once clients that open a session have the new server, all others have it, too.
    let call = [
        "load",
        "--tool",
        "two_add",
        "--arguments",
        r#"{"a": 1, "b": 1}"#,
    ];
    let how = [
        "--warm-up",
        "0s",
        "--duration",
        "50ms",
        "--revision",
        "2025-06-18",
    ];
    let serves = || gateway.run(&[&call[..], &how].concat()).status.success();
    assert!(comes(serves));
    let said = inspected(&gateway);
    assert!(
        said.contains("one_test_simple_text") && said.contains("two_add"),
        "{said}"
    );
}
