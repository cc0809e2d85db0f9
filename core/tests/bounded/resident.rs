//! The memory that the system counts for this process: with maps, and with what an allocator keeps. And a
//! test that long messages give theirs back.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use mcpbolt::buffer::Input;

use crate::alone;

/// Bytes that are resident now.
pub fn now() -> usize {
    read("VmRSS:")
}

/// The most there were since [`reset_peak`].
pub fn peak() -> usize {
    read("VmHWM:")
}

pub fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

fn read(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = kib.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.unwrap().trim().parse::<usize>().unwrap() << 10
}

/// Many at once, with something small behind each that stays: an allocator could not give back what lies
/// before it.
#[test]
fn long_messages_leave_no_memory_behind() {
    const LONG: usize = 8 << 20;
    let _alone = alone();
    let piece = vec![b'x'; 64 << 10];
    let mut kept = Vec::new();
    for taken in [true, false] {
        let mut inputs = Vec::new();
        let mut blocks = Vec::new();
        // glibc takes the first long block from the system alone, not the ones after it was freed.
        for _ in 0..20 {
            let mut input = Input::new();
            for _ in 0..LONG / piece.len() {
                input.extend(&piece);
            }
            match taken {
                true => blocks.push(input.take_block(LONG)),
                false => inputs.push(input),
            }
            kept.push(vec![1_u8; 3000]);
        }
        let held = now();
        drop((inputs, blocks));
        let returned = held.saturating_sub(now());
        // The process keeps one map.
        assert!(
            returned > 16 * LONG,
            "{returned} of {held} bytes are given back"
        );
    }
    assert_eq!(kept.len(), 40);
}
