//! Connections that come to nothing, and bodies that are too long: nothing is kept of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::PATIENCE;
use crate::client::{ask, call, hello, listen, write};
use crate::far::{Far, Setup};
use crate::wire::Wire;

/// Opened all at once, each left at another point, and dropped.
fn drop_all(count: usize) {
    let mut far = Far::begin(Setup(
        "stall_timeout=1000 header_timeout=1000 session_ttl=1000",
    ));
    let hello = hello();
    let open = |far: &Far| {
        let begun = Instant::now();
        let mut wires: Vec<_> = (0..count).map(|_| Wire::open(far.at)).collect();
        for (number, wire) in wires.iter_mut().enumerate() {
            match number % 4 {
                0 => {}
                1 => drop(wire.try_send(&hello[..number % hello.len()])),
                2 => drop(wire.try_send(&hello)),
                _ => drop(wire.try_send(&listen("none"))),
            }
        }
        let opened = begun.elapsed();
        wires.into_iter().for_each(Wire::break_off);
        std::thread::sleep(Duration::from_secs(3));
        opened
    };
    open(&far);
    let before = far.held();
    let took = open(&far);
    let after = far.held();
    println!(
        "{count} connections in {took:.2?}: {before:?} bytes allocated and resident before, {after:?} after"
    );
    assert!(after.0 < before.0 + (128 << 10), "{before:?} {after:?}");
    let mut wire = Wire::open(far.at);
    ask(&mut wire, &call(1, "echo", json!({"text": "x"})), 200);
    far.ended();
}

#[test]
fn a_thousand_connections_opened_and_dropped() {
    drop_all(1000);
}

#[test]
#[ignore = "needs 10,000 descriptors"]
fn ten_thousand_connections_opened_and_dropped() {
    drop_all(10_000);
}

const GIB: u64 = 1 << 30;

/// How much of a body is taken before the connection breaks, and the status that it was answered
/// with.
fn push(far: &Far, head: &[u8], chunk: &[u8]) -> (u64, u16) {
    let mut stream = TcpStream::connect(far.at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    stream.write_all(head).unwrap();
    let mut sent = 0;
    while sent < GIB {
        match stream.write(chunk) {
            Ok(n) => sent += n as u64,
            Err(_) => break,
        }
    }
    let mut answer = [0; 12];
    let status = stream.read_exact(&mut answer).ok().and_then(|()| {
        let text = std::str::from_utf8(&answer).ok()?;
        text.strip_prefix("HTTP/1.1 ")?.parse().ok()
    });
    (sent, status.unwrap_or_default())
}

/// R-HTP-19: what is announced is refused unread, what is not is refused at the limit.
#[test]
fn a_body_of_a_gibibyte_is_refused_and_not_kept() {
    let mut far = Far::begin(Setup("stall_timeout=3000"));
    let mut wire = Wire::open(far.at);
    ask(&mut wire, &call(1, "echo", json!({"text": "x"})), 200);
    let before = far.held();
    let announced = String::from_utf8(write(&[], "")).unwrap();
    let head = announced.replace("Content-Length: 0", &format!("Content-Length: {GIB}"));
    let (sent, status) = push(&far, head.as_bytes(), &[b' '; 1 << 16]);
    println!("announced: {sent} bytes were sent, status {status}");
    // At most what the sockets on both sides buffer (32 MiB) and what the server discards (16 MiB).
    assert!(sent < 48 << 20, "{sent}");
    assert!(matches!(status, 0 | 413), "{status}");
    let head = announced.replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let chunk = [b"10000\r\n", &[b' '; 1 << 16][..], b"\r\n"].concat();
    let (sent, status) = push(&far, head.as_bytes(), &chunk);
    println!("in chunks: {sent} bytes were sent, status {status}");
    assert!(sent < 64 << 20, "{sent}");
    assert!(matches!(status, 0 | 400 | 413), "{status}");
    std::thread::sleep(Duration::from_millis(500));
    let after = far.held();
    println!("{before:?} bytes allocated and resident before, {after:?} after");
    assert!(after.0 < before.0 + (1 << 20), "{before:?} {after:?}");
    far.ended();
}
