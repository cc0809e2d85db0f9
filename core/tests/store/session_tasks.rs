//! Tasks of sessions (2025-11-25) that every process of a server knows.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Method;
use mcpbolt::io::http::HttpOptions;
use mcpbolt::store::{LocalStore, When};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::answers::{Answer, Answering};
use crate::http::send;
use crate::stores::{SOON, Store, on_every_store};
use crate::tasks::{Process, ends};

/// A client's session, which goes to whichever process it is sent to.
#[derive(Clone)]
pub struct Session {
    pub id: String,
    pub key: &'static str,
}

impl Session {
    /// A session of who has this key.
    pub async fn begin(at: &Process, key: &'static str) -> Self {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}});
        let answer = send(&at.at, Method::POST, &[("X-API-Key", key)], &hello).await;
        let id = answer.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        answer.into_body().collect().await.unwrap();
        let session = Self { id, key };
        let opened = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.send(at, Method::POST, &opened).await;
        session
    }

    async fn send(&self, at: &Process, method: Method, message: &Value) -> Vec<u8> {
        let head = [("X-API-Key", self.key), ("Mcp-Session-Id", &*self.id)];
        let answer = send(&at.at, method, &head, message).await;
        let body = answer.into_body().collect().await.unwrap();
        body.to_bytes().to_vec()
    }

    async fn ask(&self, at: &Process, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = self.send(at, Method::POST, &message).await;
        serde_json::from_slice(&body)
            .unwrap_or_else(|_| panic!("{:?}", String::from_utf8_lossy(&body)))
    }

    /// Begins a task. Returns its id.
    pub async fn task(&self, at: &Process, tool: &str) -> String {
        let call = json!({"name": tool, "arguments": {"film": "Metropolis"}, "task": {}});
        let begun = self.ask(at, "tools/call", call).await;
        let task = &begun["result"]["task"];
        assert_eq!(task["status"], "working", "{begun}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    pub async fn about(&self, at: &Process, method: &str, id: &str) -> Value {
        self.ask(at, method, json!({"taskId": id})).await
    }

    /// Asks until the task is in that status.
    pub async fn until(&self, at: &Process, id: &str, status: &str) -> Value {
        let begun = Instant::now();
        loop {
            let task = self.about(at, "tasks/get", id).await["result"].take();
            if task["status"] == status {
                return task;
            }
            assert!(begun.elapsed() < SOON, "{status}: {task}");
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The ids of all tasks, page by page.
    async fn all(&self, at: &Process) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({"cursor": cursor}),
            };
            let page = self.ask(at, "tasks/list", params).await["result"].take();
            let tasks = page["tasks"].as_array().unwrap();
            let own = tasks
                .iter()
                .map(|task| task["taskId"].as_str().unwrap().to_owned());
            ids.extend(own);
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return ids;
            }
        }
    }

    /// Finds out that a task exists for nobody but its owner.
    async fn is_refused(&self, at: &Process, id: &str) {
        for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
            let refused = self.about(at, method, id).await;
            assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        }
        assert!(!self.all(at).await.contains(&id.to_owned()));
    }
}

/// R-TSK-10, R-TSK-11, R-TSK-14, R-TSK-20
#[test]
fn a_task_of_a_session_is_known_to_every_process() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::with(world.connect(), false));
        let own = Session::begin(&one, "").await;
        let failed = own.task(&one, "fail").await;
        let ended = own.until(&two, &failed, "failed").await;
        assert_eq!(ended["statusMessage"], "the tool reports an error");
        let at_two = own.about(&two, "tasks/result", &failed).await;
        assert_eq!(at_two["result"]["content"][0]["text"], "out of paper");
        let related = &at_two["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], *failed, "{at_two}");
        assert_eq!(own.about(&one, "tasks/result", &failed).await, at_two);
        assert_eq!(own.until(&one, &failed, "failed").await, ended);

        let gate = own.task(&one, "gate").await;
        assert_eq!(own.until(&two, &gate, "working").await["taskId"], *gate);
        let waits = async |at| {
            let result = own.about(at, "tasks/result", &gate).await;
            assert_eq!(result["result"]["content"][0]["text"], "through");
        };
        let opens = async {
            // Both wait by now.
            sleep(Duration::from_millis(200)).await;
            one.gate.add_permits(1);
        };
        let all = async { tokio::join!(waits(&one), waits(&two), opens) };
        timeout(SOON, all).await.unwrap();

        let wait = own.task(&two, "wait").await;
        let cancelled = own.about(&one, "tasks/cancel", &wait).await["result"].take();
        assert_eq!(cancelled["status"], "cancelled");
        ends(&two.running).await;
        for at in [&one, &two] {
            assert_eq!(own.until(at, &wait, "cancelled").await, cancelled);
            let again = own.about(at, "tasks/cancel", &wait).await;
            assert_eq!(again["error"]["code"], -32602, "{again}");
            let result = own.about(at, "tasks/result", &wait).await;
            assert_eq!(result["error"]["code"], -32602, "{result}");
            assert_eq!(own.all(at).await, [&*failed, &gate, &wait]);
        }
    });
}

/// R-TSK-15, R-TSK-17: another session does not have it, and another principal does not; its own principal does in every session.
#[test]
fn a_task_of_a_session_is_its_owners_alone() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::with(world.connect(), false));
        let own = Session::begin(&one, "").await;
        let id = own.task(&one, "wait").await;
        let other = Session::begin(&two, "").await;
        for at in [&one, &two] {
            other.is_refused(at, &id).await;
            for strange in ["1-{task}", "", "*"] {
                own.is_refused(at, strange).await;
            }
            assert_eq!(own.until(at, &id, "working").await["taskId"], *id);
            let unknown = own.ask(at, "tasks/list", json!({"cursor": "x"})).await;
            assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        }

        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let own = Session::begin(&one, "k-ada").await;
        let id = own.task(&one, "wait").await;
        let (other, bob) = (
            Session::begin(&two, "k-ada").await,
            Session::begin(&two, "k-bob").await,
        );
        bob.is_refused(&two, &id).await;
        for at in [&one, &two] {
            assert_eq!(other.until(at, &id, "working").await["taskId"], *id);
            assert_eq!(other.all(at).await, [&*id]);
        }
        let cancelled = other.about(&one, "tasks/cancel", &id).await;
        assert_eq!(cancelled["result"]["status"], "cancelled");
        ends(&one.running).await;
    });
}

/// R-TSK-20: a list has several pages, and the tasks of all processes.
#[test]
fn tasks_of_several_processes_are_listed_together() {
    on_every_store(async |world| {
        let processes = [(); 3].map(|()| Process::with(world.connect(), false));
        let own = Session::begin(&processes[0], "").await;
        let mut begun = Vec::new();
        for number in 0..250 {
            begun.push(own.task(&processes[number % 2], "fail").await);
        }
        assert_eq!(own.all(&processes[2]).await, begun);
    });
}

/// R-TSK-20: a list does not wait for the record of each of its tasks in turn.
#[test]
fn the_tasks_of_a_list_are_read_at_once() {
    const TASKS: usize = 40;
    const AT_ONCE: usize = 16;
    Runtime::new().unwrap().block_on(async {
        let store: Store = Arc::new(LocalStore::new());
        let one = Process::with(store.clone(), false);
        let own = Session::begin(&one, "").await;
        let mut begun = Vec::new();
        for _ in 0..TASKS {
            begun.push(own.task(&one, "fail").await);
        }
        let (reads, goes_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let answer = {
            let (reads, goes_on) = (reads.clone(), goes_on.clone());
            move |name: &str, put: Option<When>| match put {
                None if name.starts_with("task ") => Answer::Waits(reads.clone(), goes_on.clone()),
                _ => Answer::Comes,
            }
        };
        let two = Process::with(Arc::new(Answering { store, answer }), false);
        let opens = async {
            for part in begun.chunks(AT_ONCE) {
                let reads = reads.acquire_many(part.len() as u32).await;
                reads.unwrap().forget();
                goes_on.add_permits(part.len());
            }
        };
        let both = async { tokio::join!(own.all(&two), opens) };
        let (listed, ()) = timeout(SOON, both).await.unwrap();
        assert_eq!(listed, begun);
    });
}

/// A process at which a session ends when it is idle.
fn forgetful(store: Store) -> Process {
    let options = HttpOptions {
        session_ttl: Duration::from_secs(1),
        ..HttpOptions::default()
    };
    Process::serving(store, false, options)
}

/// Waits until all sessions have ended at a process.
async fn forgets(at: &Process) {
    let forgotten = async {
        while at.at.metrics().counts().open_sessions > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, forgotten).await.expect("a session goes on");
}

/// A session that is idle at one process ends there, and its task goes on: its client may be at another.
#[test]
fn a_task_outlives_its_session_in_one_process() {
    on_every_store(async |world| {
        let one = forgetful(world.connect());
        let two = Process::with(world.connect(), false);
        let own = Session::begin(&one, "").await;
        let id = own.task(&one, "gate").await;
        forgets(&one).await;
        own.until(&two, &id, "working").await;
        one.gate.add_permits(1);
        own.until(&two, &id, "completed").await;
        let result = own.about(&one, "tasks/result", &id).await;
        assert_eq!(result["result"]["content"][0]["text"], "through");
    });
}

/// R-SES-06: the end of a session ends its tasks, wherever they run and wherever it is ended.
#[test]
fn the_end_of_a_session_ends_its_tasks() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::with(world.connect(), false));
        let own = Session::begin(&one, "").await;
        own.task(&one, "wait").await;
        own.send(&two, Method::DELETE, &Value::Null).await;
        ends(&one.running).await;
    });
}

/// R-SES-06: also at a process where the session was idle, and has ended for itself.
#[test]
fn the_end_of_a_session_ends_tasks_that_have_outlived_it() {
    on_every_store(async |world| {
        let one = forgetful(world.connect());
        let two = Process::with(world.connect(), false);
        for at in [&one, &two] {
            let own = Session::begin(&one, "").await;
            own.task(&one, "wait").await;
            forgets(&one).await;
            assert_eq!(one.running.load(SeqCst), 1);
            own.send(at, Method::DELETE, &Value::Null).await;
            ends(&one.running).await;
        }
    });
}

/// R-TSK-08, R-TSK-10: who waits for the result at another process hears that the task has failed, once its process serves no more.
#[test]
fn a_task_of_a_session_fails_when_its_process_serves_no_more() {
    on_every_store(async |world| {
        let [one, two, three] = [(); 3].map(|()| Process::with(world.connect(), false));
        let own = Session::begin(&one, "").await;
        let id = own.task(&one, "wait").await;
        let waits = async |at| own.about(at, "tasks/result", &id).await;
        let ends = async {
            sleep(Duration::from_millis(200)).await;
            drop(one);
        };
        let all = async { tokio::join!(waits(&two), waits(&three), ends) };
        let (at_two, at_three, ()) = timeout(SOON, all).await.unwrap();
        let why = "the process that ran the task has ended";
        assert_eq!(at_two["error"]["message"], why, "{at_two}");
        assert_eq!(at_two, at_three);
        let failed = own.until(&two, &id, "failed").await;
        assert_eq!(failed["statusMessage"], why);
        assert_eq!(own.until(&three, &id, "failed").await, failed);
    });
}
