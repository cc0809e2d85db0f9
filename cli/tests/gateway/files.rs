//! Files of settings, good and bad.

use std::path::Path;
use std::process::Command;

use crate::Folder;

/// The status, what stands on stdout, and the lines on stderr without the name of the file.
fn check(file: &Path) -> (i32, String, Vec<String>) {
    check_with(file, &[])
}

fn check_with(file: &Path, options: &[&str]) -> (i32, String, Vec<String>) {
    let run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["gateway", "--check", "--config"])
        .arg(file)
        .args(options)
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
status = "http://127.0.0.1"

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
idle_time = 0

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
#[cfg(unix)]
fn a_check_knows_the_options_too() {
    let folder = Folder::new("options");
    folder.write("token.txt", "very-secret\n");
    let file = folder.write("gateway.toml", GOOD);
    let (status, _, said) = check_with(&file, &["--workers", "2"]);
    assert_eq!(status, 1);
    assert!(said[0].contains("leave it out with --workers"), "{said:?}");
}

#[test]
fn the_file_of_the_guide_is_good() {
    let guide = include_str!("../../../core/GATEWAY.md");
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
            "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-Key": "${env:TOKEN}"}, "env": {}},
            "off": {"command": "nothing", "disabled": true}
        }
    }"#;
    let (status, shown, said) = check(&folder.write("mcp.json", text));
    assert_eq!(status, 0, "{said:?}");
    assert_eq!(
        said,
        [
            "warning: 2: globalShortcut: is ignored",
            "warning: 4: mcpServers.\"my files\".autoApprove: is ignored",
            "warning: 5: mcpServers.remote.env: is ignored"
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
                "2: servers.a.comand: is no setting; there are disabled, prefix, revisions, timeout, isolation, max_connections, idle_time, approve, mask, mask_arguments, breaker, retry, trust_annotations, type, url, command, args, env, cwd, headers",
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
            "[servers.a]\ncommand = \"x\"\nisolation = \"none\"\nmax_connections = 0\nidle_time = -1",
            vec![
                "3: servers.a.isolation: \"none\" is no isolation; write session, principal or shared",
                "4: servers.a.max_connections: must be a whole number from 1 on",
                "5: servers.a.idle_time: must be a whole number from 0 on",
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
            vec!["3: servers.a.env: is for a command, and this server has a url"],
        ),
        (
            "[servers.a]\nurl = \"http://a/\"\nargs = []\ncwd = \".\"\nrevisions = []\ntrust_annotations = true",
            vec![
                "3: servers.a.args: is for a command, and this server has a url",
                "4: servers.a.cwd: is for a command, and this server has a url",
                "5: servers.a.revisions: is empty; leave it out for all revisions",
                "6: servers.a.trust_annotations: is for a server whose requests are sent again; write retry =",
            ],
        ),
        (
            "[servers.a]\nurl = \"tcp:127.0.0.1:1\"\nheaders = { A = \"b\" }",
            vec!["3: servers.a.headers: is for HTTP and WebSocket, and the url is neither"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nheaders = { A = \"b\" }",
            vec!["3: servers.a.headers: is for a url, and this server has a command"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\nrates = 1",
            vec!["3: policy: unknown field `rates`"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\nsecrets = [\"${NOT_SET}\"]",
            vec!["4: policy.secrets[0]: the variable NOT_SET is not set"],
        ),
        // What a reference stands for is not told, whatever the policy lacks.
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\nsecrets = \"${TOKEN}\"",
            vec!["3: policy: invalid type: string \"${TOKEN}\", expected a sequence"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\n\"${TOKEN}\" = 1",
            vec!["3: policy: unknown field `${TOKEN}`"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\n[policy]\nkeys = { \"${NOT_SET:-}\" = { client = \"a\" } }",
            vec!["3: policy: what this refers to makes no policy"],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nmask = [\"(\", \"a*\", \"b\"]",
            vec![
                "3: servers.a.mask[0]: \"(\" is no regular expression: ",
                "3: servers.a.mask[1]: \"a*\" matches an empty text",
            ],
        ),
        (
            "[servers.a]\ncommand = \"x\"\nbreaker = { failures = 0, often = 1 }",
            vec![
                "3: servers.a.breaker.failures: must be a whole number from 1 on",
                "3: servers.a.breaker.often: is no setting; there are failures, window, rest",
            ],
        ),
        (
            "audit = 1\nstatus = \"x\"\n[servers.a]\ncommand = \"x\"",
            vec![
                "1: audit: is a number; must be true or false",
                "2: status: ",
            ],
        ),
        (
            "status_anonymous = true\n[servers.a]\ncommand = \"x\"",
            vec!["1: status_anonymous: is for a status; write status ="],
        ),
        (
            "\nstatus = \"tcp:127.0.0.1:1\"\n[servers.a]\ncommand = \"x\"",
            vec!["2: status: is no address of HTTP; write one such as http://127.0.0.1:9090"],
        ),
        (
            "status = \"https://127.0.0.1\"\n[servers.a]\ncommand = \"x\"",
            vec!["1: status: is served without TLS; write http://"],
        ),
        (
            "status = \"http://127.0.0.1/status\"\n[servers.a]\ncommand = \"x\"",
            vec!["1: status: has a path, but its paths are fixed; write http://HOST:PORT"],
        ),
        (
            "status = \"http://0.0.0.0:9090\"\n[servers.a]\ncommand = \"x\"",
            vec!["1: status: can be reached from other machines, where everybody could read it"],
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
    let many = format!("[servers.a]\ncommand = \"x\"\nmask = {:?}", ["b"; 65]);
    let (_, _, said) = check(&folder.write("gateway.toml", &many));
    let (_, said) = said[0].split_once("servers.a.mask: ").unwrap();
    assert_eq!(said, "at most 64, not 65");
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
