use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;

use super::*;
use crate::connection::Wake;
use crate::io::wake::LoopWake;

const LONG: Duration = Duration::from_secs(30);

fn pool(max_threads: usize) -> Workers {
    Workers::new(WorkersConfig {
        max_threads,
        keep_alive: Duration::from_millis(200),
        ..WorkersConfig::default()
    })
}

fn spawn(workers: &Workers, job: impl Future<Output = ()> + Send + 'static) {
    Spawner::spawn(workers, Box::pin(job));
}

fn spawn_batch<F>(workers: &Workers, jobs: impl Iterator<Item = F>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let jobs: Vec<Job> = jobs.map(|job| Box::pin(job) as Job).collect();
    Spawner::spawn_batch(workers, Box::new(jobs.into_iter()));
}

#[test]
fn every_job_of_every_batch_runs_once() {
    let workers = pool(8);
    let (sender, receiver) = channel();
    for batch in 0..200 {
        spawn_batch(
            &workers,
            (0..50).map(|job| {
                let sender = sender.clone();
                async move { sender.send(batch * 50 + job).unwrap() }
            }),
        );
    }
    drop(sender);
    let mut seen: Vec<i32> = receiver.iter().collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..10_000));
}

#[test]
fn handlers_that_block_hold_up_nobody() {
    let workers = pool(64);
    let barrier = Arc::new(Barrier::new(33));
    let start = Instant::now();
    spawn_batch(
        &workers,
        (0..32).map(|_| {
            let barrier = barrier.clone();
            async move {
                barrier.wait();
            }
        }),
    );
    barrier.wait();
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert!(workers.thread_count() >= 32);
}

#[test]
fn no_more_threads_than_the_cap_and_they_go_when_idle() {
    let workers = pool(4);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (sender, receiver) = channel();
    spawn_batch(
        &workers,
        (0..40).map(|_| {
            let (running, most, sender) = (running.clone(), most.clone(), sender.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(5));
                running.fetch_sub(1, Ordering::SeqCst);
                sender.send(()).unwrap();
            }
        }),
    );
    for _ in 0..40 {
        receiver.recv_timeout(LONG).unwrap();
    }
    assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
    let start = Instant::now();
    while workers.thread_count() > 0 {
        assert!(
            start.elapsed() < LONG,
            "{} threads stay",
            workers.thread_count()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_panic_costs_neither_the_thread_nor_the_others() {
    let workers = pool(1);
    let (sender, receiver) = channel();
    spawn(&workers, async { std::panic::resume_unwind(Box::new(())) });
    spawn(&workers, async move { sender.send(()).unwrap() });
    receiver.recv_timeout(LONG).unwrap();
}

#[test]
fn a_future_that_waits_goes_on_when_it_is_woken() {
    let workers = pool(2);
    let (sender, receiver) = channel();
    let mut left = 1000;
    spawn(&workers, async move {
        std::future::poll_fn(|cx| {
            left -= 1;
            if left == 0 {
                return std::task::Poll::Ready(());
            }
            let waker = cx.waker().clone();
            match left % 100 {
                0 => drop(thread::spawn(move || waker.wake())),
                _ => waker.wake(),
            }
            std::task::Poll::Pending
        })
        .await;
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(LONG).unwrap();
}

#[test]
fn what_is_queued_still_runs_when_the_pool_is_dropped() {
    let workers = pool(1);
    let (sender, receiver) = channel();
    spawn_batch(
        &workers,
        (0..100).map(|n| {
            let sender = sender.clone();
            async move { sender.send(n).unwrap() }
        }),
    );
    drop((workers, sender));
    assert_eq!(receiver.iter().count(), 100);
}

#[test]
fn a_wake_up_that_is_put_off_does_not_wait_for_a_job_that_blocks() {
    let mut poll = mio::Poll::new().unwrap();
    let wake = LoopWake::new(poll.registry(), mio::Token(0)).unwrap();
    let workers = pool(1);
    for _ in 0..20 {
        assert!(wake.park());
        let (release, blocked) = channel::<()>();
        let quick = wake.clone();
        let jobs: [Job; 2] = [
            Box::pin(async move { quick.wake_soon() }),
            Box::pin(async move {
                blocked.recv().unwrap_err();
            }),
        ];
        spawn_batch(&workers, jobs.into_iter());
        let mut events = mio::Events::with_capacity(1);
        poll.poll(&mut events, Some(LONG)).unwrap();
        assert!(!events.is_empty(), "the loop was not woken");
        wake.run();
        drop(release);
    }
}

#[test]
fn a_worker_that_blocks_is_not_waited_for() {
    let workers = pool(8);
    let (release, blocked) = channel::<()>();
    spawn(&workers, async move {
        blocked.recv().unwrap_err();
    });
    thread::sleep(Duration::from_millis(50));
    let (sender, receiver) = channel();
    let start = Instant::now();
    for _ in 0..200 {
        let sender = sender.clone();
        spawn(&workers, async move { sender.send(()).unwrap() });
        receiver.recv_timeout(LONG).unwrap();
    }
    // One tick for each job, of 0.2 to 2 ms, would take ten times as long on an idle machine.
    assert!(
        start.elapsed() < Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
    assert!(workers.thread_count() <= 4, "{}", workers.thread_count());
    drop(release);
}

#[test]
fn jobs_that_compute_do_not_call_a_crowd() {
    let workers = pool(256);
    let (sender, receiver) = channel();
    let compute = |ms| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(ms) {
            std::hint::spin_loop();
        }
    };
    spawn_batch(
        &workers,
        (0..100).map(|_| {
            let sender = sender.clone();
            async move {
                compute(2);
                sender.send(()).unwrap();
            }
        }),
    );
    for _ in 0..100 {
        receiver.recv_timeout(LONG).unwrap();
    }
    // One thread for each core, and some more when other programs use the processors.
    assert!(workers.thread_count() <= 32, "{}", workers.thread_count());
}

#[test]
fn quick_jobs_keep_to_one_thread() {
    let workers = pool(64);
    let (sender, receiver) = channel();
    for _ in 0..100 {
        spawn_batch(
            &workers,
            (0..32).map(|_| {
                let sender = sender.clone();
                async move { sender.send(()).unwrap() }
            }),
        );
        for _ in 0..32 {
            receiver.recv_timeout(LONG).unwrap();
        }
    }
    // The system may suspend a thread at any point, which looks like a blocked one.
    assert!(workers.thread_count() <= 8, "{}", workers.thread_count());
}

/// However many calls of some clients block, another client gets a thread; the rest of their calls run when
/// others have ended.
#[test]
fn clients_whose_calls_block_leave_threads_to_others() {
    for (clients, threads, most) in [(1, 8, 6), (2, 8, 7), (5, 20, 19)] {
        let workers = pool(threads);
        let source = |n| RequestSource::of_address([127, 0, 0, n].into());
        let release = Arc::new((Mutex::new(false), Condvar::new()));
        let began = Arc::new(AtomicUsize::new(0));
        for client in 1..=clients {
            let (count, gate) = (began.clone(), release.clone());
            let blocking = (0..40).map(move |_| -> Job {
                let (began, gate) = (count.clone(), gate.clone());
                Box::pin(async move {
                    began.fetch_add(1, Ordering::SeqCst);
                    let open = gate.0.lock().unwrap();
                    drop(gate.1.wait_while(open, |open| !*open));
                })
            });
            workers.spawn_batch_of(&source(client), Box::new(blocking));
        }
        let start = Instant::now();
        let wait_for = |count| {
            while began.load(Ordering::SeqCst) < count {
                assert!(start.elapsed() < LONG);
                thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for(most);
        for n in 0..50 {
            let (sender, receiver) = channel();
            let job = move || -> Job { Box::pin(async move { sender.send(n).unwrap() }) };
            workers.spawn_batch_of(&source(100), Box::new(std::iter::once_with(job)));
            assert_eq!(receiver.recv_timeout(LONG), Ok(n));
        }
        assert_eq!(began.load(Ordering::SeqCst), most, "{clients} clients");
        *release.0.lock().unwrap() = true;
        release.1.notify_all();
        wait_for(40 * usize::from(clients));
    }
}
