//! Limits the time in which the head of a request arrives.
//!
//! hyper begins to wait for a head after every response, and creates a timer each time. Here, all of them on one
//! connection share a timer of the runtime, which is moved only when it fires.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

use crate::io::wait::Alarm;
use crate::sync::lock;

/// The timer of one connection on HTTP/1.1, which waits for one head at a time.
#[derive(Clone, Default)]
pub struct HeadTimer(Arc<Mutex<Alarm>>);

/// A wait for one head.
struct HeadWait {
    timer: HeadTimer,
    due: Instant,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, due: Instant) -> Pin<Box<dyn Sleep>> {
        let timer = self.clone();
        Box::pin(HeadWait { timer, due })
    }
}

impl Sleep for HeadWait {}

impl Future for HeadWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match lock(&self.timer.0).poll(Some(self.due), cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
