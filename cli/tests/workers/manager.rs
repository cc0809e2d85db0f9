//! What a service manager hands over and is told: sockets, readiness, health.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::client::Client;
use crate::serving::Serving;
use crate::tree::{Tree, comes};

/// The longest that a page may take, for which a prober waits a second: half of the time that a connection may be idle.
const PROMPT: Duration = Duration::from_secs(15);

/// The status of a page, and its text.
fn page(place: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(PROMPT)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, body.to_owned())
}

/// Where health is told, as the log says.
fn health(tree: &Tree) -> String {
    assert!(comes(|| tree.log().contains("127.0.0.1")), "{}", tree.log());
    let log = tree.log();
    let at = log.split("127.0.0.1:").nth(1).unwrap();
    let port: String = at.chars().take_while(char::is_ascii_digit).collect();
    format!("127.0.0.1:{port}")
}

/// A call that is in flight until its client answers, so a drain lasts.
fn hold(tree: &Tree) -> (crate::client::Events, Client, String) {
    let mut client = tree.client();
    let session = client.begin().unwrap();
    let mut call = client.open(&session, "test_elicitation");
    assert_eq!(call.next().unwrap()["method"], "elicitation/create");
    (call, client, session)
}

#[test]
fn a_server_is_ready_from_its_start_until_it_drains() {
    for workers in [&["--workers", "2"][..], &[]] {
        let own = [
            "serve",
            "http://127.0.0.1:0/mcp",
            "--log",
            "info",
            "--grace",
            "600",
        ];
        let own = [&own[..], &["--health", "http://127.0.0.1:0"], workers].concat();
        let mut tree = Tree::of(Serving::with(&own));
        let place = health(&tree);
        assert_eq!(
            page(&place, "/readyz"),
            (200, "ready\n".to_owned()),
            "{workers:?}"
        );
        assert_eq!(page(&place, "/healthz").0, 200);
        assert_eq!(page(&place, "/livez").0, 200);
        assert_eq!(page(&place, "/").0, 404);
        let _held = hold(&tree);
        tree.signal("-TERM");
        assert!(comes(|| page(&place, "/readyz").0 == 503), "{workers:?}");
        assert_eq!(page(&place, "/readyz").1, "draining\n");
        assert_eq!(page(&place, "/healthz").0, 200, "it is alive, though");
        tree.signal("-TERM");
        tree.serving.process.wait().unwrap();
    }
}

#[test]
fn health_is_told_whoever_else_is_connected() {
    let args = [
        "serve",
        "http://127.0.0.1:0/mcp",
        "--log",
        "info",
        "--health",
        "http://127.0.0.1:0",
    ];
    let tree = Tree::of(Serving::with(&args));
    let place = health(&tree);
    let idle: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(&place).unwrap())
        .collect();
    assert_eq!(page(&place, "/readyz").0, 200);
    drop(idle);
}

/// The only process of a worker is the one that its supervisor has started: programs that it starts inherit the variable.
#[test]
fn a_socket_as_stdin_makes_no_worker() {
    let variable = [("MCPBOLT_WORKER", "1 1 1:1 /tmp")];
    for address in ["http://127.0.0.1:0/mcp", "stdio:"] {
        let (here, there) = UnixStream::pair().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
            .args(["serve", address])
            .envs(variable)
            .stdin(OwnedFd::from(there))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        (&here).write_all(ask.as_bytes()).unwrap();
        let mut said = [0; 64];
        let read = process.stdout.as_mut().unwrap().read(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said[..read]);
        let expected = match address {
            "stdio:" => "{\"jsonrpc\"",
            _ => "http://127.0.0.1:",
        };
        assert!(said.starts_with(expected), "{address}: {said}");
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

/// A program that gets these descriptors from 3 on, as `sd_listen_fds(3)` has it. The shell has them as 0 and, if there are
/// two, 2.
fn activated(args: &str, names: &str, sockets: [Option<OwnedFd>; 2]) -> Serving {
    let [first, second] = sockets;
    let (count, redirect) = match &second {
        Some(_) => (2, "3<&0 4<&2 </dev/null 2>/dev/null"),
        None => (1, "3<&0 </dev/null"),
    };
    let program = env!("CARGO_BIN_EXE_mcpbolt");
    let script = format!(
        "LISTEN_FDS={count} LISTEN_PID=$$ LISTEN_FDNAMES={names} exec {program} {args} {redirect}"
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .stdin(first.unwrap())
        .stdout(Stdio::piped());
    match second {
        Some(second) => command.stderr(second),
        None => command.stderr(Stdio::piped()),
    };
    let mut process = command.spawn().unwrap();
    let mut address = [0; 256];
    let read = process.stdout.as_mut().unwrap().read(&mut address).unwrap();
    let address = std::str::from_utf8(&address[..read])
        .unwrap()
        .trim()
        .to_owned();
    Serving { process, address }
}

#[test]
fn a_socket_of_the_service_manager_is_served_on() {
    for workers in ["", "--workers 2"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let manager = listener.try_clone().unwrap();
        // A client that comes before the server waits for it.
        let early = TcpStream::connect(place).unwrap();
        let args = format!("serve http://127.0.0.1:1/mcp {workers}");
        let mut tree = Tree::of(activated(
            &args,
            "mcpbolt.socket",
            [Some(listener.into()), None],
        ));
        assert_eq!(tree.serving.address, format!("http://{place}/mcp"));
        drop(early);
        assert_eq!(tree.client().call("test_simple_text").unwrap().status, 200);
        tree.signal("-TERM");
        assert!(tree.serving.process.wait().unwrap().success());
        // The next start serves on it, too, and clients that come meanwhile wait.
        let between = TcpStream::connect(place).unwrap();
        let socket = [Some(manager.into()), None];
        let again = activated(&args, "mcpbolt.socket", socket);
        let answer = Client::at(&again.address).call("test_simple_text");
        assert_eq!(answer.unwrap().status, 200);
        drop(between);
    }
}

#[test]
fn sockets_of_the_service_manager_are_told_apart_by_their_names() {
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (mcp, health) = (bind(), bind());
    let (place, pages) = (mcp.local_addr().unwrap(), health.local_addr().unwrap());
    let sockets = [Some(health.into()), Some(mcp.into())];
    let mut serving = activated(
        "serve http://127.0.0.1:1/mcp --workers 2",
        "health:mcp",
        sockets,
    );
    assert_eq!(serving.address, format!("http://{place}/mcp"));
    assert_eq!(page(&pages.to_string(), "/readyz").0, 200);
    let answer = Client::at(&serving.address)
        .call("test_simple_text")
        .unwrap();
    assert_eq!(answer.status, 200);
    crate::tree::signal("-TERM", serving.process.id());
    assert!(serving.process.wait().unwrap().success());
}

/// A socket unit with two `ListenStream=` gives both sockets its name.
#[test]
fn sockets_of_one_name_are_refused() {
    let bind = || Some(TcpListener::bind("127.0.0.1:0").unwrap().into());
    let mut serving = activated("serve http://127.0.0.1:1/mcp", "mcp:mcp", [bind(), bind()]);
    assert_eq!(serving.address, "", "it does not serve");
    assert!(!serving.process.wait().unwrap().success());
}

/// `sd_notify(3)`.
#[test]
fn the_service_manager_is_told_when_the_server_is_ready_and_when_it_stops() {
    for workers in [&["--workers", "2"][..], &[]] {
        let path = std::env::temp_dir().join(format!("mcpbolt-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let manager = UnixDatagram::bind(&path).unwrap();
        manager
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
            .args(["serve", "http://127.0.0.1:0/mcp"])
            .args(workers)
            .env("NOTIFY_SOCKET", &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let heard = || {
            let mut said = [0; 64];
            let length = manager.recv(&mut said).unwrap();
            String::from_utf8_lossy(&said[..length]).into_owned()
        };
        assert_eq!(heard(), "READY=1");
        crate::tree::signal("-TERM", process.id());
        assert_eq!(heard(), "STOPPING=1");
        assert!(process.wait().unwrap().success());
        std::fs::remove_file(&path).unwrap();
    }
}
