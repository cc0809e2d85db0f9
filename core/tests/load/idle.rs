//! Sessions that nothing is said on: what each costs, and that many end in good order.

use std::time::Duration;

use crate::PATIENCE;
use crate::client::stand;
use crate::far::{Far, Setup};

/// The most that one may cost, in bytes, without hyper's buffers for heads and bodies.
const MOST: usize = 10 << 10;

fn idle(count: usize) {
    let setup = "max_sessions=20000 session_ttl=600000 comment_interval=600000 grace=10000";
    let mut far = Far::begin(Setup(setup));
    drop((0..100).map(|_| stand(far.at)).collect::<Vec<_>>());
    std::thread::sleep(Duration::from_millis(500));
    let before = far.held();
    let mut streams: Vec<_> = (0..count).map(|_| stand(far.at)).collect();
    let after = far.held();
    let heap = (after.0 - before.0) / count;
    let resident = after.1.saturating_sub(before.1) / count;
    println!(
        "{count} idle sessions with a stream each: {heap} bytes allocated, {resident} resident for each"
    );
    assert!(heap <= MOST && resident <= MOST);
    // Each is told of its end, and none waits for another.
    far.stop();
    for stream in &mut streams {
        assert_eq!(stream.chunk(), "", "the end");
    }
    let took = far.ended();
    println!("{count} streams ended in {took:?}");
    assert!(took < PATIENCE / 4, "{took:?}");
}

/// R-SES-05, R-HTP-11.
#[test]
fn a_thousand_idle_streams_cost_little_and_end_in_good_order() {
    idle(1000);
}

#[test]
#[ignore = "needs 10,000 descriptors"]
fn ten_thousand_idle_streams_cost_little_and_end_in_good_order() {
    idle(10_000);
}
