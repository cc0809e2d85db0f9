//! The commands of the guide run as printed, but for the addresses of this machine and of the store, times, and curl.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::servers::{Program, Server};
use crate::serving::Serving;
use crate::tree::comes;

const GUIDE: &str = include_str!("../../../core/CLUSTER.md");

/// The fenced blocks of a language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let open = format!("```{language}\n");
    let parts: Vec<_> = GUIDE.split(&open).skip(1).collect();
    let blocks = parts.into_iter();
    blocks.map(|rest| rest.split_once("```").unwrap().0)
}

/// What `curl --fail` tells by its exit status.
fn is_found(url: &str) -> bool {
    let (host, path) = url["http://".len()..].split_once('/').unwrap();
    let Ok(mut stream) = TcpStream::connect(host) else {
        return false;
    };
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let asked = stream.write_all(request.as_bytes());
    asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.contains(" 200 OK\r\n")
}

/// Each block is a step: what a line that ends with `&` starts serves until the end of the block.
#[test]
fn each_command_of_the_guide_succeeds() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cluster");
    std::fs::create_dir_all(&folder).unwrap();
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let server = folder.join("server");
    let _ = std::fs::remove_file(&server);
    std::os::unix::fs::symlink(command.with_file_name("examples/workloads"), server).unwrap();
    let service = blocks("ini").flat_map(str::lines);
    let service = service.filter_map(|line| line.strip_prefix("ExecStart="));
    let service: String = service.map(|line| format!("{line} &\n")).collect();
    let mut steps: Vec<&str> = blocks("sh").collect();
    steps.push(&service);
    let store = Server::start(Program::Valkey, &[]);
    let pid = std::process::id().to_be_bytes();
    let mut lines = 0;
    for (step, block) in (1..).zip(steps) {
        // This machine has many addresses, of which nobody else uses these.
        let own = format!("127.{step}.{}.{}:", pid[2], pid[3]);
        let other = format!("127.{}.{}.{}:", step + 100, pid[2], pid[3]);
        let here = |text: &str| {
            let text = text.replace("127.0.0.1:", &own);
            text.replace("10.0.0.11:", &own)
                .replace("10.0.0.12:", &other)
        };
        let file = here(blocks("toml").next().unwrap());
        std::fs::write(folder.join("gateway.toml"), file).unwrap();
        let mut serving = Vec::new();
        for line in here(block).lines() {
            lines += 1;
            if let Some(url) = line.strip_prefix("curl --fail ") {
                assert!(comes(|| is_found(url)), "{line}");
                continue;
            }
            let line = line.replace("--duration 30s", "--duration 200ms --warm-up 50ms");
            let line = line.replace("redis://store.example:6379/0", &store.url());
            let line = line.replace("mcpbolt", &command.display().to_string());
            let (words, serves) = match line.strip_suffix(" &") {
                Some(words) => (words, true),
                None => (&*line, false),
            };
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("exec {words}")]);
            shell.current_dir(&folder);
            if serves {
                shell.stdout(Stdio::piped()).stderr(Stdio::null());
                let mut process = shell.spawn().unwrap();
                let mut address = String::new();
                let mut said = BufReader::new(process.stdout.as_mut().unwrap());
                said.read_line(&mut address).unwrap();
                let is_here = address.contains(&own) || address.contains(&other);
                assert!(is_here, "{line}: {address:?}");
                serving.push(Serving { process, address });
            } else {
                let output = shell.output().unwrap();
                let [said, log] = [&output.stdout, &output.stderr];
                let [said, log] = [said, log].map(|it| String::from_utf8_lossy(it));
                assert!(output.status.success(), "{line}: {said}{log}");
            }
        }
    }
    assert_eq!(lines, 18);
}
