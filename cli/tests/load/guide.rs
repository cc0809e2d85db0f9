//! The commands of the guide run as printed, but for addresses and times.

use std::path::PathBuf;
use std::process::Command;

#[cfg(target_os = "linux")]
use serde_json::Value;

use super::servers::{Listening, example};
use super::{Loaded, Scratch, text};

const GUIDE: &str = include_str!("../../../core/LOAD.md");

/// The fenced blocks of a language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let open = format!("```{language}\n");
    let parts: Vec<_> = GUIDE.split(&open).skip(1).collect();
    parts
        .into_iter()
        .map(|rest| rest.split_once("```").unwrap().0)
}

/// Replaces the word after an option.
fn shortened(line: &str, option: &str, value: &str) -> String {
    match line.split_once(&format!("{option} ")) {
        Some((before, after)) => {
            let (_, rest) = after.split_once(' ').unwrap_or((after, ""));
            format!("{before}{option} {value} {rest}")
        }
        None => line.to_owned(),
    }
}

#[test]
fn each_command_of_the_guide_succeeds() {
    let server = Listening::workloads("http://127.0.0.1:0/mcp");
    let proxy = Listening::proxy(&server.address);
    let folder = PathBuf::from(Scratch::new("guide").path());
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("trace.jsonl"), blocks("json").next().unwrap()).unwrap();
    std::os::unix::fs::symlink(example("workloads"), folder.join("server")).unwrap();
    let mut count = 0;
    for line in blocks("sh").flat_map(str::lines) {
        let mut line = line.replace("http://127.0.0.1:8000/mcp", &server.address);
        line = line.replace("http://127.0.0.1:9000/mcp", &proxy.address);
        // In each turn some call must end, however busy this machine is.
        let duration = match line.contains("--through") || line.contains("--against") {
            true => "500ms",
            false => "1s",
        };
        let times = match line.contains("--duration") {
            true => "--warm-up 50ms".to_owned(),
            false => format!("--warm-up 50ms --duration {duration}"),
        };
        line = line.replace("mcpbolt load", &format!("\"$MCPBOLT\" load {times}"));
        line = line.replace("ratio.p50>1.1", "ratio.p50>10");
        for (option, value) in [
            ("--duration", duration),
            ("--rounds", "5"),
            ("--ramp", "20..40"),
        ] {
            line = shortened(&line, option, value);
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&folder);
        let output = shell
            .env("MCPBOLT", env!("CARGO_BIN_EXE_mcpbolt"))
            .output()
            .unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{line}: {said}");
        count += 1;
    }
    for file in ["report.json", "latency.svg", "knee.svg"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(count, 9);
}

/// The members of a report are those that the guide lists, and the other way round. Elsewhere a report has fewer.
#[cfg(target_os = "linux")]
#[test]
fn the_guide_lists_each_member_of_a_report() {
    let args = ["--workload", "echo", "--rate", "50", "--duration", "200ms"];
    let loaded = Loaded::of(&args, "faulty", "wrong:2");
    let Value::Object(report) = loaded.report else {
        panic!("{}", loaded.said());
    };
    let (_, table) = GUIDE.split_once("writes these members:").unwrap();
    let (table, _) = table.split_once("\n\nProcessor time").unwrap();
    let names = table.lines().filter_map(|row| row.split('|').nth(1));
    let mut listed: Vec<_> = names
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    listed.sort_unstable();
    let members: Vec<_> = report.keys().map(String::as_str).collect();
    assert_eq!(members, listed);
    for (name, value) in &report {
        for member in value.as_object().into_iter().flatten() {
            let is_known = ["failures", "server_threads_cpu_us_per_call"].contains(&name.as_str())
                || table.contains(&format!("`{}`", member.0));
            assert!(is_known, "{name}.{}", member.0);
        }
    }
}

/// Each figure that a bound may be about is in the guide.
#[test]
fn the_guide_lists_each_figure() {
    let loaded = Loaded::of(&["--workload", "echo", "--fail-if", "x>1"], "faulty", "");
    let said = loaded.said();
    let (_, names) = said.split_once("the figures are ").unwrap();
    for name in names.lines().next().unwrap().split(", ") {
        let name = name.trim_end_matches('%');
        assert!(GUIDE.contains(&format!("`{name}`")), "{name}");
    }
}
