//! A pipe under a protocol of the program's own, with `cat` at its other end.

use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mcpbolt::io::{ChildCommand, Exit, WireEvent, WireHandle};
use mcpbolt::limits::Limits;

const SOON: Duration = Duration::from_secs(20);

/// A wire to `cat`: its handle, what it tells of, and how it ends.
fn cat(limits: Limits) -> (WireHandle, Receiver<WireEvent>, JoinHandle<Exit>) {
    let child = ChildCommand::new("cat").spawn().unwrap();
    let handle = WireHandle::new(limits, child.wake());
    let (tell, told) = channel();
    let mut wire =
        handle.wire(move |heard| heard.into_iter().for_each(|it| tell.send(it).unwrap()));
    let driver = thread::spawn(move || {
        let exit = child.run(&mut wire).unwrap();
        assert!(wire.end().is_some());
        exit
    });
    (handle, told, driver)
}

/// Messages of all kinds come back in order, and a line that is not a message ends nothing.
#[test]
fn a_wire_carries_messages_as_they_are_and_tells_of_what_is_none() {
    let (handle, told, driver) = cat(Limits {
        max_message_bytes: 64,
        ..Limits::STDIO
    });

    let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
    let news = r#"{ "method":"x", "jsonrpc":"2.0" }"#;
    let long = format!("[{}0]", "0,".repeat(64));
    for line in [ping, "no message", &long, news] {
        assert!(handle.send(line.as_bytes()), "there is room");
    }
    let heard: Vec<_> = (0..4).map(|_| told.recv_timeout(SOON).unwrap()).collect();
    match &heard[..] {
        [
            WireEvent::Message(first),
            WireEvent::Bad(why),
            WireEvent::Bad(long),
            WireEvent::Message(last),
        ] => {
            assert_eq!(first.bytes(), ping.as_bytes());
            assert!(!why.is_empty());
            assert_eq!(long, "a message is too long");
            assert_eq!(last.bytes(), news.as_bytes());
        }
        other => panic!("{other:?}"),
    }

    handle.close();
    assert!(driver.join().unwrap().status.success());
}

/// Nothing more is read while the program has too much to look at, and whoever finds no room learns
/// when there is some.
#[test]
fn a_wire_holds_back_who_is_faster() {
    let (handle, told, driver) = cat(Limits {
        waiting_cap_bytes: 1000,
        output_mark_bytes: 1000,
        ..Limits::STDIO
    });

    let message = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(64_000));
    // Beyond what the pipes and the child hold, too.
    let sent = 40;
    let had_room = (0..sent)
        .filter(|_| handle.send(message.as_bytes()))
        .count();
    assert!(had_room < sent);
    let (mut came, mut rooms) = (0, 0);
    while came < sent {
        match told.recv_timeout(SOON).unwrap() {
            WireEvent::Message(one) => {
                came += 1;
                handle.was_read(one.bytes().len());
            }
            WireEvent::Room => rooms += 1,
            WireEvent::Bad(why) => panic!("{why}"),
        }
    }
    assert!(rooms > 0, "who found no room was never told of any");
    handle.close();
    assert!(driver.join().unwrap().status.success());
}
