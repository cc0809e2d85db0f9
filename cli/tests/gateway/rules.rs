//! Rules for the servers of a gateway, and what it shows of them.

use std::path::Path;
use std::process::Command;

use crate::serving::Serving;
use crate::{Folder, Log, adder, comes, gateway, http, inspected, status};

fn sample() -> String {
    let command = env!("CARGO_BIN_EXE_mcpbolt");
    format!("command = [{command:?}, \"serve\", \"stdio:\"]\n")
}

/// What the call of a tool prints: the result, or the error.
fn called(gateway: &Serving, tool: &str, arguments: &str) -> String {
    let run = gateway.run(&["call", tool, arguments]);
    String::from_utf8([run.stdout, run.stderr].concat()).unwrap()
}

fn pin(file: &Path) -> (bool, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["gateway", "--pin", "--config"])
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
    (run.status.success(), said)
}

#[test]
fn tools_that_are_not_what_was_pinned_are_hidden_refused_and_told() {
    let folder = Folder::new("pins");
    let text = format!(
        "pins = \"pins.json\"\n[servers.one]\ncommand = {:?}\n",
        adder()
    );
    let file = folder.write("gateway.toml", &text);
    let run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["gateway", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("`mcpbolt gateway --pin` writes it"), "{said}");
    let (is_done, said) = pin(&file);
    assert!(is_done && said.contains("one: 1 tools"), "{said}");
    let mut gateway = gateway(&file);
    let log = Log::of(&mut gateway);
    let sum = r#"{"a": 1, "b": 2}"#;
    assert_eq!(called(&gateway, "one_add", sum), "3\n");
    // Another tool was pinned by that name, as far as the gateway can tell. It reads the file again.
    let pins = std::fs::read_to_string(folder.0.join("pins.json")).unwrap();
    let before = pins
        .split("sha256:")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let other = "0".repeat(64);
    folder.write("pins.json", &format!("{}\n", pins.replace(before, &other)));
    assert!(comes(|| !inspected(&gateway).contains("one_add")));
    let refused = called(&gateway, "one_add", sum);
    assert!(
        refused.contains(r#"the tool "add" of the server "one" is not what was pinned"#),
        "{refused}"
    );
    let drift =
        format!(r#"server="one" tool="add" pinned="sha256:{other}" found="sha256:{before}""#);
    assert!(comes(|| log.text().contains(&drift)), "{}", log.text());
    // While the file is away, nothing changes, and that is told once.
    std::fs::remove_file(folder.0.join("pins.json")).unwrap();
    let is_told = || log.text().contains("is away: until it is there");
    assert!(comes(is_told), "{}", log.text());
    // A server without pins has no tools.
    folder.write("pins.json", "{}");
    assert!(comes(
        || called(&gateway, "one_add", sum).contains("has no pin")
    ));
    let text = text.replace("pins = \"pins.json\"\n", "");
    let (is_done, said) = pin(&folder.write("gateway.toml", &text));
    assert!(!is_done && said.contains("no pins = \"FILE\""), "{said}");
    // Without pins, all tools can be used, and that is read without a restart.
    assert!(comes(|| called(&gateway, "one_add", sum) == "3\n"));
    // So is another file of pins, which is waited for.
    folder.write("gateway.toml", &format!("pins = \"other.json\"\n{text}"));
    let is_told = || {
        log.text()
            .matches("`mcpbolt gateway --pin` writes it")
            .count()
            == 1
    };
    assert!(comes(is_told), "{}", log.text());
    assert_eq!(called(&gateway, "one_add", sum), "3\n");
    folder.write("other.json", "{}");
    assert!(comes(
        || called(&gateway, "one_add", sum).contains("has no pin")
    ));
    // A configuration that no longer names a file which is away does not wait for that file.
    std::fs::remove_file(folder.0.join("other.json")).unwrap();
    folder.write("gateway.toml", &text);
    assert!(comes(|| called(&gateway, "one_add", sum) == "3\n"));
    // Neither does one whose misspelled file has never been there.
    folder.write("gateway.toml", &format!("pins = \"typo.json\"\n{text}"));
    let is_told = || log.text().matches("not reloaded").count() == 2;
    assert!(comes(is_told), "{}", log.text());
    let reloads = || log.text().matches(": reloaded").count();
    let before = reloads();
    folder.write("gateway.toml", &text);
    assert!(comes(|| reloads() > before), "{}", log.text());
}

/// A server without tools, as most that only have resources or prompts.
const BARE: &str = r#"while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"bare","version":"1"}}}' ;;
    *) [ -z "$id" ] || echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"unknown method"}}' ;;
    esac
done
"#;

#[test]
fn a_server_without_tools_has_no_pins() {
    let folder = Folder::new("bare");
    let bare = folder.write("bare.sh", BARE);
    let text = format!(
        "pins = \"pins.json\"\n[servers.bare]\ncommand = [\"sh\", {bare:?}]\nrevisions = [\"2025-06-18\"]\n[servers.one]\ncommand = {:?}\n",
        adder()
    );
    let (is_done, said) = pin(&folder.write("gateway.toml", &text));
    assert!(is_done, "{said}");
    assert_eq!(said, "bare: 0 tools\none: 1 tools\n");
}

#[test]
fn requests_are_masked_approved_counted_and_told() {
    let folder = Folder::new("rules");
    let text = format!(
        "audit = true\nstatus = \"http://127.0.0.1:0\"\n\
         [servers.one]\n{}mask = ['s[i]mple \\w+']\napprove = [\"test_error*\", \"no*\"]\nretry = 1\nbreaker = {{ failures = 3 }}\n\
         [servers.two]\ncommand = \"/no/such/program\"\n",
        sample()
    );
    let mut gateway = gateway(&folder.write("gateway.toml", &text));
    let log = Log::of(&mut gateway);
    let place = log.status();
    let shown = status(&place);
    assert_eq!(shown["upstreams"][0]["state"], "idle", "{shown}");
    let said = called(&gateway, "one_test_simple_text", "{}");
    assert!(said.contains("***") && !said.contains("simple"), "{said}");
    for tool in ["one_test_error_handling", "one_no/such"] {
        let said = called(&gateway, tool, "{}");
        assert!(
            said.contains(r#"needs the user's approval, and the client has no elicitation"#),
            "{said}"
        );
    }
    called(&gateway, "two_x", "{}");
    let shown = status(&place);
    let [one, two] = [&shown["upstreams"][0], &shown["upstreams"][1]];
    assert_eq!([&one["name"], &one["state"]], ["one", "up"], "{shown}");
    assert_eq!(one["implementation"]["name"], "mcpbolt-conformance");
    // What is refused before it reaches the server does not count.
    assert_eq!(one["outcomes"]["failed"], serde_json::Value::Null);
    assert!(one["outcomes"]["done"].as_u64().unwrap() >= 1, "{shown}");
    assert!(one["latency"]["p99"].as_f64().unwrap() > 0.0);
    assert_eq!([&two["name"], &two["state"]], ["two", "down"], "{shown}");
    let error = two["lastError"]["message"].as_str().unwrap();
    assert!(error.starts_with(r#"the server "two": "#), "{error}");
    // What a server says in an error may have what is masked: the status has none of it.
    let said = called(&gateway, "one_simple word", "{}");
    assert!(said.contains("***"), "{said}");
    let shown = status(&place)["upstreams"][0]["lastError"].to_string();
    assert!(
        shown.contains(r#"the server \"one\": tools/call: the peer answered with error -32602""#),
        "{shown}"
    );
    for line in [
        r#"server="one" method="tools/call" name="test_simple_text" outcome="done" seconds="#,
        r#"server="one" method="tools/call" name="test_error_handling" outcome="failed" seconds="#,
        r#"server="two" method="tools/call" name="x" outcome="failed" seconds="#,
    ] {
        let told = || log.text().matches(line).count() == 1;
        assert!(comes(told), "{line}: {}", log.text());
    }
    let page = http(&place, &format!("GET / HTTP/1.1\r\nHost: {place}"), "");
    for part in [
        "<td class=up>up",
        "<td class=down>down",
        "the server &quot;two&quot;: ",
        "default-src 'none'",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // A page whose name leads here reads nothing, and nothing can be changed.
    for (head, status) in [
        (
            format!(
                "GET / HTTP/1.1\r\nHost: evil.example:{}",
                place.split_once(':').unwrap().1
            ),
            403,
        ),
        (format!("POST / HTTP/1.1\r\nHost: {place}"), 405),
        (format!("GET /other HTTP/1.1\r\nHost: {place}"), 404),
    ] {
        let answer = http(&place, &head, "");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{head}: {answer}"
        );
    }
}

#[test]
fn a_status_for_other_machines_is_not_shown_to_pages_whose_name_leads_there() {
    let folder = Folder::new("status");
    let text = format!(
        "status = \"http://0.0.0.0:0\"\nstatus_anonymous = true\n[servers.one]\n{}",
        sample()
    );
    let mut gateway = gateway(&folder.write("gateway.toml", &text));
    let place = Log::of(&mut gateway).status();
    let place = place.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(status(&place)["upstreams"][0]["name"], "one");
    let port = place.split_once(':').unwrap().1;
    for (host, expected) in [
        (format!("192.0.2.1:{port}"), 200),
        (format!("[2001:db8::1]:{port}"), 200),
        ("localhost".to_owned(), 200),
        (format!("evil.example:{port}"), 403),
        ("localhost.evil.example".to_owned(), 403),
    ] {
        let answer = http(&place, &format!("GET / HTTP/1.1\r\nHost: {host}"), "");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected}")),
            "{host}: {answer}"
        );
    }
}

/// What a server says while a connection opens is shown without secrets, as text, and in part.
#[test]
fn the_status_has_the_words_of_a_server_that_refuses_without_what_they_could_do() {
    let folder = Folder::new("words");
    let said = format!(
        r"no: Bearer tok-4f1b9c07d2aa <script>alert(1)</script> \u001b[31m \u202e \n {}",
        "x".repeat(100_000)
    );
    let answer =
        format!(r#"{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32603,"message":"{said}"}}}}"#);
    folder.write("answer", &(answer + "\n"));
    // Refuses whatever it is asked.
    let script = "while read -r line; do id=$(printf %s \"$line\" | sed -n 's/.*\"id\":\\([0-9]*\\).*/\\1/p'); \
                  [ -n \"$id\" ] && sed \"s/%s/$id/\" answer; done";
    let text = format!(
        "status = \"http://127.0.0.1:0\"\n[servers.bad]\ncommand = [\"sh\", \"-c\", {script:?}]\n"
    );
    let mut gateway = gateway(&folder.write("gateway.toml", &text));
    let place = Log::of(&mut gateway).status();
    called(&gateway, "bad_x", "{}");
    let row = status(&place)["upstreams"][0].take();
    assert_eq!(row["state"], "down", "{row}");
    let json = row["lastError"]["message"].as_str().unwrap();
    let page = http(&place, &format!("GET / HTTP/1.1\r\nHost: {place}"), "");
    let cell = page
        .split("<td>")
        .last()
        .unwrap()
        .split("</table>")
        .next()
        .unwrap();
    for shown in [json, cell] {
        assert!(
            shown.contains("no: Bearer ") && shown.contains("alert(1)"),
            "{shown}"
        );
        assert!(!shown.contains("4f1b9c07"), "{shown}");
        assert!(shown.len() < 2048, "{}", shown.len());
        let drives = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!shown.trim_end().contains(drives), "{shown:?}");
    }
    assert!(!cell.contains('<'), "{cell}");
}
