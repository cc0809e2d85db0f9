//! Tasks of idempotent tools, which another process runs once more when theirs has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use mcpbolt::store::{LocalStore, When};
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::answers::{Answer, Answering};
use crate::servers::Program;
use crate::session_tasks::Session;
use crate::stores::{SOON, Store, on_every_store, open};
use crate::tasks::{Other, Process, ROLE, ends};

const RESULT: &str = "{\"film\":\"Metropolis\"} for key:ada";

/// Not a test: another process, which runs a task of each revision. Without its variable it has nothing to do.
#[test]
fn process() {
    let Ok(url) = std::env::var(ROLE) else {
        return;
    };
    Runtime::new().unwrap().block_on(async {
        let process = Process::new(Arc::new(open(&url)));
        let own = Session::begin(&process, "k-ada").await;
        println!("SESSION {}", own.id);
        println!("CORE {}", own.task(&process, "again").await);
        let id = process.begin("again").await;
        println!("TASK {id}");
        loop {
            println!("STATUS {}", process.task(&id).await["status"]);
            sleep(Duration::from_millis(200)).await;
        }
    });
}

fn begun(processes: &[Process]) -> usize {
    let begun = processes.iter().map(|process| process.begun.load(SeqCst));
    begun.sum()
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < SOON, "{what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// All ask at once for both tasks, until one process runs each; then they end.
async fn run_once_more(processes: &[Process; 4], own: &Session, core: &str, id: &str) {
    let asks = async |at: &Process| {
        until("nobody runs the tasks", async || {
            at.task(id).await;
            own.about(at, "tasks/get", core).await;
            begun(processes) == 2
        })
        .await;
    };
    let [one, two, three, four] = processes;
    tokio::join!(asks(one), asks(two), asks(three), asks(four));
    for at in processes {
        // One may run both.
        at.gate.add_permits(2);
    }
    let waits = async |at| own.about(at, "tasks/result", core).await;
    let results = async { tokio::join!(waits(one), waits(four)) };
    let (result, other) = timeout(SOON, results).await.unwrap();
    assert_eq!(result["result"]["content"][0]["text"], RESULT, "{result}");
    assert_eq!(result, other);
    let ended = two.until(id, "completed").await;
    assert_eq!(ended["result"]["content"][0]["text"], RESULT, "{ended}");
    for at in processes {
        assert_eq!(at.task(id).await, ended);
        own.until(at, core, "completed").await;
    }
    assert_eq!(begun(processes), 2, "a task was run by several processes");
}

#[test]
fn a_task_whose_process_is_killed_is_run_once_more() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let store = crate::servers::Server::start(program, &[]);
        let mut other = Other::start(&store, "task_runs::process");
        let own = Session {
            id: other.next("SESSION "),
            key: "k-ada",
        };
        let (core, id) = (other.next("CORE "), other.next("TASK "));
        runtime.block_on(async {
            let processes = [(); 4].map(|()| Process::new(Arc::new(open(&store.url()))));
            assert_eq!(processes[0].task(&id).await["status"], "working");
            other.signal(Signal::KILL);
            run_once_more(&processes, &own, &core, &id).await;
        });
    }
}

/// R-TSK-08: a process that was taken for dead does not write to a task that another one runs meanwhile, and stops its own run.
#[test]
fn a_process_that_comes_back_leaves_its_task_to_the_other() {
    let runtime = Runtime::new().unwrap();
    let store = crate::servers::Server::start(Program::Valkey, &[]);
    let mut other = Other::start(&store, "task_runs::process");
    let id = other.next("TASK ");
    other.next("STATUS ");
    runtime.block_on(async {
        let two = Process::new(Arc::new(open(&store.url())));
        other.signal(Signal::STOP);
        until("nobody runs the task", async || {
            two.task(&id).await;
            two.begun.load(SeqCst) == 1
        })
        .await;
        other.signal(Signal::CONT);
        // It renews what it takes for its own, and asks for the task.
        for _ in 0..40 {
            assert_eq!(other.next("STATUS "), "\"working\"");
        }
        assert_eq!(two.task(&id).await["status"], "working");
        two.gate.add_permits(1);
        let ended = two.until(&id, "completed").await;
        other.until("completed");
        assert_eq!(two.task(&id).await, ended);
        assert_eq!(two.begun.load(SeqCst), 1);
    });
}

/// A process without room for a task answers with its state, or waits until another one has run it.
#[test]
fn a_process_without_room_leaves_a_task_to_another() {
    on_every_store(async |world| {
        let one = Process::new(world.connect());
        let own = Session::begin(&one, "k-ada").await;
        let id = own.task(&one, "again").await;
        let full = Process::full(world.connect());
        drop(one);
        // The lease of the process that has ended is over.
        sleep(Duration::from_secs(7)).await;
        for _ in 0..3 {
            let told = timeout(SOON, own.about(&full, "tasks/get", &id)).await;
            assert_eq!(told.unwrap()["result"]["status"], "working");
        }
        let result = own.about(&full, "tasks/result", &id);
        let elsewhere = async {
            let two = Process::new(world.connect());
            two.gate.add_permits(1);
            own.until(&two, &id, "completed").await;
            two
        };
        let both = async { tokio::join!(result, elsewhere) };
        let (result, two) = timeout(SOON, both).await.unwrap();
        assert_eq!(result["result"]["content"][0]["text"], RESULT, "{result}");
        assert_eq!(two.begun.load(SeqCst), 1);
        assert_eq!(full.begun.load(SeqCst), 0);
    });
}

/// Clients that leave at any moment while a process takes their tasks over leave the tasks to the next request.
#[test]
fn a_task_does_not_stay_with_a_client_that_has_left() {
    on_every_store(async |world| {
        let (one, two) = (Process::new(world.connect()), Process::new(world.connect()));
        let mut ids = Vec::new();
        for _ in 0..12 {
            ids.push(one.begin("again").await);
        }
        drop(one);
        // The leases of the process that has ended are over.
        sleep(Duration::from_secs(7)).await;
        for (number, id) in ids.iter().enumerate() {
            let patience = Duration::from_micros(200 * number as u64);
            let _ = timeout(patience, two.task(id)).await;
        }
        two.gate.add_permits(3 * ids.len());
        for id in &ids {
            two.until(id, "completed").await;
        }
    });
}

/// R-TSK-08: clients that leave before their task has begun once more cost it no run, however many they are.
#[test]
fn a_run_that_does_not_begin_does_not_count() {
    Runtime::new().unwrap().block_on(async {
        let store: Store = Arc::new(LocalStore::new());
        let one = Process::new(store.clone());
        let id = one.begin("again").await;
        drop(one);
        let (taken, goes_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let answer = {
            let (name, taken, goes_on) = (format!("task {id}"), taken.clone(), goes_on.clone());
            move |blob: &str, when: Option<When>| match when {
                Some(When::Is(_)) if blob == name => Answer::Waits(taken.clone(), goes_on.clone()),
                _ => Answer::Comes,
            }
        };
        let two = Process::new(Arc::new(Answering { store, answer }));
        for _ in 0..4 {
            let is_taken_over = async {
                loop {
                    tokio::select! {
                        biased;
                        taken = taken.acquire() => return taken.unwrap().forget(),
                        task = two.task(&id) => assert_eq!(task["status"], "working", "{task}"),
                    }
                }
            };
            // The client leaves with this.
            timeout(SOON, is_taken_over).await.unwrap();
            goes_on.add_permits(1);
        }
        assert_eq!(two.begun.load(SeqCst), 0);
        goes_on.add_permits(99);
        two.gate.add_permits(1);
        let ended = two.until(&id, "completed").await;
        assert_eq!(ended["result"]["content"][0]["text"], RESULT, "{ended}");
        assert_eq!(two.begun.load(SeqCst), 1);
    });
}

/// A task that ends three processes is not given a fourth.
#[test]
fn a_task_is_run_three_times_at_most() {
    on_every_store(async |world| {
        let start = || Process::new(world.connect() as Store);
        let mut process = start();
        let id = process.begin("again").await;
        for _ in 1..3 {
            let next = start();
            let running = process.running.clone();
            drop(process);
            // Its own run ends.
            ends(&running).await;
            until("nobody runs the task", async || {
                next.task(&id).await;
                next.begun.load(SeqCst) == 1
            })
            .await;
            process = next;
        }
        let last = start();
        drop(process);
        let failed = last.until(&id, "failed").await;
        let why = "the task was run 3 times, and its process has ended each time";
        assert_eq!(failed["error"]["message"], why, "{failed}");
        assert_eq!(last.begun.load(SeqCst), 0);
    });
}

/// A task that is cancelled is not run, and its request does not stay in the store.
#[test]
fn a_cancelled_task_is_not_run_once_more() {
    on_every_store(async |world| {
        let (one, two) = (Process::new(world.connect()), Process::new(world.connect()));
        let id = one.begin("again").await;
        drop(one);
        let store = world.connect();
        let request = format!("task {id} call");
        assert!(store.get(&request).await.unwrap().is_some());
        let params = serde_json::json!({"taskId": id});
        let cancelled = two.send("k-ada", "tasks/cancel", params).await;
        assert!(cancelled["result"].is_object(), "{cancelled}");
        assert_eq!(store.get(&request).await.unwrap(), None);
        assert_eq!(two.task(&id).await["status"], "cancelled");
        assert_eq!(two.begun.load(SeqCst), 0);
        assert_eq!(two.task(&id).await["statusMessage"], Value::Null);
    });
}
