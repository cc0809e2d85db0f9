//! Tasks that every process of a server knows.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::{Method, Response};
use mcpbolt::connection::Principal;
use mcpbolt::io::http::{HttpBody, HttpOptions, HttpService, SharedSessions};
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::policy::{ApiKeys, Policy};
use mcpbolt::server::{
    Arguments, Context, HandlerError, Server as McpServer, TaskLimits, TaskSupport, Tool,
    ToolResult,
};
use mcpbolt::store::{LocalStore, MAX_KEEP, StoreKeys, When};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::answers::{Answer, Answering};
use crate::http::send;
use crate::servers::{Program, Server};
use crate::stores::{SOON, Store, on_every_store, open};

/// Handlers that are running.
pub type Running = Arc<AtomicUsize>;

/// Counts a handler until it ends or is dropped.
struct Runs(Running);

impl Runs {
    fn new(running: &Running) -> Self {
        running.fetch_add(1, SeqCst);
        Self(running.clone())
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

pub struct Process {
    pub at: HttpService,
    pub running: Running,
    /// Lets the handlers of `gate`, `again`, `late` and `huge` end.
    pub gate: Arc<Semaphore>,
    /// How often `again` has begun.
    pub begun: Running,
}

impl Process {
    pub fn new(store: Store) -> Self {
        Self::with(store, true)
    }

    /// `verifies`: whether clients have keys.
    pub fn with(store: Store, verifies: bool) -> Self {
        Self::serving(store, verifies, HttpOptions::default())
    }

    /// Has no room for tasks.
    pub fn full(store: Store) -> Self {
        let limits = TaskLimits {
            tasks: 0,
            ..TaskLimits::default()
        };
        Self::limited(store, true, HttpOptions::default(), limits)
    }

    pub fn serving(store: Store, verifies: bool, options: HttpOptions) -> Self {
        Self::limited(store, verifies, options, TaskLimits::default())
    }

    /// Keeps tasks that long.
    pub fn keeping(store: Store, ttl: Duration) -> Self {
        let limits = TaskLimits {
            ttl,
            ..TaskLimits::default()
        };
        Self::limited(store, true, HttpOptions::default(), limits)
    }

    fn limited(store: Store, verifies: bool, options: HttpOptions, limits: TaskLimits) -> Self {
        let running = Running::default();
        let tool = |name: &str| Tool::new(name).task_support(TaskSupport::Optional);
        let counted = running.clone();
        let wait = move |_: Arguments, context: Context| {
            let runs = Runs::new(&counted);
            async move {
                let _runs = runs;
                context.begin_task();
                context.task_message("not yet");
                std::future::pending::<()>().await;
                "never"
            }
        };
        let ask = |_: Arguments, context: Context| async move {
            context.begin_task();
            let fields = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            match context.elicit(Elicitation::form("Who?", fields)).await? {
                Elicited::Accepted(said) => Ok::<_, HandlerError>(said["name"].to_string()),
                _ => Ok("nobody".into()),
            }
        };
        let fail = |_: Arguments, context: Context| async move {
            context.begin_task();
            ToolResult::error("out of paper")
        };
        let gate = Arc::new(Semaphore::new(0));
        let opens = gate.clone();
        let passes = move |_: Arguments, _: Context| {
            let opens = opens.clone();
            async move {
                opens.acquire().await.unwrap().forget();
                "through"
            }
        };
        let opens = gate.clone();
        let late = move |_: Arguments, context: Context| {
            let opens = opens.clone();
            async move {
                context.begin_task();
                // Tells more often than its process renews the lease.
                while opens.try_acquire().map(|permit| permit.forget()).is_err() {
                    context.task_message("not yet");
                    context.sleep(Duration::from_millis(100)).await;
                }
                "late"
            }
        };
        let opens = gate.clone();
        let huge = move |_: Arguments, context: Context| {
            let opens = opens.clone();
            async move {
                context.begin_task();
                opens.acquire().await.unwrap().forget();
                "\"".repeat(3 << 20)
            }
        };
        let (begun, counted) = (Running::default(), running.clone());
        let (begins, opens) = (begun.clone(), gate.clone());
        let again = move |arguments: Arguments, context: Context| {
            begins.fetch_add(1, SeqCst);
            let (runs, opens) = (Runs::new(&counted), opens.clone());
            async move {
                let _runs = runs;
                assert!(context.begin_task());
                context.task_message("on its way");
                opens.acquire().await.unwrap().forget();
                let who = context.principal().unwrap_or("nobody");
                format!("{} for {who}", arguments.0)
            }
        };
        let keys = ApiKeys::new()
            .key("k-ada", Principal::key("ada"))
            .key("k-bob", Principal::key("bob"));
        let policy = match verifies {
            true => Policy::new().verifier(move |credentials| keys.verify(credentials)),
            false => Policy::new(),
        };
        let keys = Arc::new(StoreKeys::new([1; 32], [2; 32]));
        let options = HttpOptions {
            shared_sessions: Some(SharedSessions::new(store.clone(), keys)),
            ..options
        };
        let server = McpServer::builder("tasks", "1.0.0")
            .policy(policy)
            .share_tasks(store)
            .task_limits(limits)
            .tool(tool("gate"), passes)
            .tool(
                tool("again").annotations(json!({"idempotentHint": true})),
                again,
            )
            .tool(tool("huge"), huge)
            .tool(tool("wait"), wait)
            .tool(tool("late"), late)
            .tool(tool("ask"), ask)
            .tool(tool("fail"), fail)
            .build()
            .unwrap();
        Self {
            at: HttpService::new(&server, options).unwrap(),
            running,
            gate,
            begun,
        }
    }

    pub async fn send(&self, key: &str, method: &str, params: Value) -> Value {
        let answer = stateless(&self.at, key, method, params).await;
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
    }

    /// Begins a task of ada's. Returns its id.
    pub async fn begin(&self, tool: &str) -> String {
        let begun = self.send(
            "k-ada",
            "tools/call",
            json!({"name": tool, "arguments": {"film": "Metropolis"}}),
        );
        let begun = begun.await;
        assert_eq!(begun["result"]["resultType"], "task", "{begun}");
        begun["result"]["taskId"].as_str().unwrap().to_owned()
    }

    pub async fn task(&self, id: &str) -> Value {
        self.send("k-ada", "tasks/get", json!({"taskId": id})).await["result"].take()
    }

    /// Asks until the task is in that status.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        let begun = Instant::now();
        loop {
            let task = self.task(id).await;
            if task["status"] == status {
                return task;
            }
            assert!(begun.elapsed() < SOON, "{status}: {task}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Sends a request of 2026-07-28 from a client that knows tasks.
pub async fn stateless(
    at: &HttpService,
    key: &str,
    method: &str,
    mut params: Value,
) -> Response<HttpBody> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let name = params["name"].as_str().or(params["taskId"].as_str());
    let name = name.unwrap_or_default().to_owned();
    let mut head = vec![
        ("X-API-Key", key),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ];
    head.extend((!name.is_empty()).then_some(("Mcp-Name", &*name)));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    send(at, Method::POST, &head, &message).await
}

pub async fn ends(running: &Running) {
    let begun = Instant::now();
    while running.load(SeqCst) > 0 {
        assert!(begun.elapsed() < SOON, "a handler goes on");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The key of the question that a task asks.
fn question_of(task: &Value) -> &String {
    let asked = task["inputRequests"].as_object().unwrap();
    asked.keys().next().unwrap()
}

/// R-TSX-08, R-TSX-09, R-TSX-11, R-TSX-12: a task is found, answered and cancelled at any process, by its owner alone.
#[test]
fn a_task_is_known_to_every_process() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let id = one.begin("fail").await;
        let ended = two.until(&id, "completed").await;
        assert_eq!(
            ended["result"]["content"][0]["text"], "out of paper",
            "{ended}"
        );
        assert_eq!(one.task(&id).await, ended);

        let id = one.begin("ask").await;
        let asked = two.until(&id, "input_required").await;
        let key = question_of(&asked);
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        let update = json!({"taskId": id, "inputResponses": {key: answer}});
        let updated = two.send("k-ada", "tasks/update", update).await;
        assert!(updated["result"].is_object(), "{updated}");
        let ended = two.until(&id, "completed").await;
        assert_eq!(ended["result"]["content"][0]["text"], "\"Ada\"", "{ended}");

        let id = one.begin("wait").await;
        assert_eq!(two.until(&id, "working").await["taskId"], *id);
        for method in ["tasks/get", "tasks/cancel"] {
            let other = two.send("k-bob", method, json!({"taskId": id})).await;
            assert_eq!(other["error"]["code"], -32602, "{other}");
        }
        assert_eq!(one.running.load(SeqCst), 1);
        let cancelled = two
            .send("k-ada", "tasks/cancel", json!({"taskId": id}))
            .await;
        assert!(cancelled["result"].is_object(), "{cancelled}");
        let ended = two.until(&id, "cancelled").await;
        ends(&one.running).await;
        assert_eq!(one.task(&id).await, ended);
    });
}

/// Why a task fails whose process has ended.
const DEAD: &str = "the process that ran the task has ended";

/// A result that the store cannot take ends its task as failed, whether the others know the task by then or not.
#[test]
fn a_task_fails_whose_result_is_too_long_for_the_store() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let mut ways = vec![true, false];
        while let Some(ends_at_once) = ways.pop() {
            one.gate.add_permits(usize::from(ends_at_once));
            let id = one.begin("huge").await;
            if !ends_at_once {
                two.until(&id, "working").await;
                one.gate.add_permits(1);
            }
            let failed = two.until(&id, "failed").await;
            let why = failed["error"]["message"].as_str().unwrap_or_default();
            if why == DEAD {
                // A busy machine may take longer for so much than a process may be silent.
                ways.push(ends_at_once);
                continue;
            }
            assert!(why.contains("at most 4 MiB"), "{failed}");
            assert_eq!(failed["result"], Value::Null, "{failed}");
            assert_eq!(one.task(&id).await, failed);
        }
    });
}

/// A task that may be kept longer than a store keeps anything is shared as any other.
#[test]
fn a_task_may_have_any_lifetime() {
    on_every_store(async |world| {
        let one = Process::keeping(world.connect(), 2 * MAX_KEEP);
        let two = Process::new(world.connect());
        let id = one.begin("again").await;
        two.until(&id, "working").await;
        one.gate.add_permits(1);
        two.until(&id, "completed").await;
    });
}

/// A task has failed at every process when the one that runs it serves no more, and that is the same for all.
async fn fails(id: &str, store: impl Fn() -> Store, end: impl FnOnce()) {
    let [two, three] = [(); 2].map(|()| Process::new(store()));
    // Longer than a process may be silent.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(7) {
        assert_eq!(two.task(id).await["status"], "working");
        sleep(Duration::from_millis(200)).await;
    }
    end();
    let failed = two.until(id, "failed").await;
    assert_eq!(failed["error"]["message"], DEAD, "{failed}");
    assert_eq!(three.task(id).await, failed);
}

#[test]
fn a_task_fails_when_its_process_serves_no_more() {
    on_every_store(async |world| {
        let one = Process::new(world.connect());
        let id = one.begin("wait").await;
        fails(&id, || world.connect(), || drop(one)).await;
    });
}

/// Set in a process of its own: the address of the store.
pub const ROLE: &str = "MCPBOLT_TEST_TASKS";

/// Not a test: another process, which runs a task. Without its variable it has nothing to do.
#[test]
fn process() {
    let Ok(url) = std::env::var(ROLE) else {
        return;
    };
    Runtime::new().unwrap().block_on(async {
        let process = Process::new(Arc::new(open(&url)));
        let id = process.begin("late").await;
        println!("TASK {id}");
        loop {
            let status = process.task(&id).await["status"].take();
            println!("STATUS {status}");
            if status == "failed" {
                // Its result comes now.
                process.gate.add_permits(1);
            }
            sleep(Duration::from_millis(200)).await;
        }
    });
}

/// A process that runs a task, and the lines that it writes. It ends with this value.
pub struct Other(Child, Lines<BufReader<ChildStdout>>);

impl Other {
    /// Starts what `test` does where it is given the address of the store.
    pub fn start(store: &Server, test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--quiet"])
            .env(ROLE, store.url())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self(child, lines)
    }

    /// The rest of the next line that begins so.
    pub fn next(&mut self, with: &str) -> String {
        let mut lines = self.1.by_ref().map(Result::unwrap);
        let found = lines.find_map(|line| Some(line.strip_prefix(with)?.to_owned()));
        found.unwrap()
    }

    /// Waits until the process has its task in that status.
    pub fn until(&mut self, status: &str) {
        let begun = Instant::now();
        while self.next("STATUS ") != format!("\"{status}\"") {
            assert!(begun.elapsed() < SOON, "the task is never {status}");
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_task_fails_when_its_process_is_killed() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let store = Server::start(program, &[]);
        let mut other = Other::start(&store, "tasks::process");
        let id = other.next("TASK ");
        let connect = || -> Store { Arc::new(open(&store.url())) };
        runtime.block_on(fails(&id, connect, || drop(other)));
    }
}

/// R-TSK-08: a process that was taken for dead, and comes back with a result, does not end its task once more.
#[test]
fn a_task_ends_once_although_its_process_comes_back() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let store = Server::start(program, &[]);
        let mut other = Other::start(&store, "tasks::process");
        let id = other.next("TASK ");
        let connect = || -> Store { Arc::new(open(&store.url())) };
        runtime.block_on(fails(&id, connect, || other.signal(Signal::STOP)));
        other.signal(Signal::CONT);
        other.until("failed");
        // Its result comes meanwhile.
        for _ in 0..40 {
            assert_eq!(other.next("STATUS "), "\"failed\"");
        }
    }
}

/// R-TSK-08: the lease of a task lapses while the store cannot be reached. The process that runs it knows that it runs.
#[test]
fn no_process_takes_itself_for_dead() {
    const LAPSE: &str = "EVAL \"for _, key in ipairs(redis.call('KEYS', '*o{*')) do redis.call('DEL', key) end return 1\" 0";
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let store = Server::start(program, &[]);
        runtime.block_on(async {
            let one = Process::new(Arc::new(open(&store.url())));
            let id = one.begin("ask").await;
            one.until(&id, "input_required").await;
            for _ in 0..3 {
                store.raw(LAPSE);
                assert_eq!(one.task(&id).await["status"], "input_required");
            }
        });
    }
}

/// R-TSK-08: the store carries writes out whose answers are lost. The task is known all the same, and ends once.
#[test]
fn a_task_is_known_though_answers_of_the_store_are_lost() {
    Runtime::new().unwrap().block_on(async {
        let store: Store = Arc::new(LocalStore::new());
        let two = Process::new(store.clone());
        for (ends_at_once, lost) in [(true, 1), (false, 1), (false, 3)] {
            let lost = Semaphore::new(lost);
            let is_record = |name: &str| name.starts_with("task ") && !name.ends_with(" call");
            let answer = move |name: &str, put: Option<When>| {
                let is_lost = put.is_some() && is_record(name) && lost.try_acquire().is_ok();
                lost.forget_permits(usize::from(is_lost));
                if is_lost {
                    Answer::IsLost
                } else {
                    Answer::Comes
                }
            };
            let one = Process::new(Arc::new(Answering {
                store: store.clone(),
                answer,
            }));
            one.gate.add_permits(usize::from(ends_at_once));
            let id = one.begin("again").await;
            if !ends_at_once {
                two.until(&id, "working").await;
                one.gate.add_permits(1);
            }
            let ended = two.until(&id, "completed").await;
            assert_eq!(one.task(&id).await, ended);
            assert_eq!(one.begun.load(SeqCst), 1);
        }
    });
}

/// While the store is away a task begins and runs; the others know it when the store is back if it was known before.
#[test]
fn tasks_go_on_while_the_store_is_away() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let mut store = Server::start(program, &[]);
        runtime.block_on(async {
            let [one, two] = [(); 2].map(|()| Process::new(Arc::new(open(&store.url()))));
            let known = one.begin("ask").await;
            let asked = two.until(&known, "input_required").await;
            let key = question_of(&asked);
            store.kill();
            let alone = one.begin("fail").await;
            assert_eq!(one.until(&alone, "completed").await["taskId"], *alone);
            let elsewhere = two
                .send("k-ada", "tasks/get", json!({"taskId": known}))
                .await;
            let why = elsewhere["error"]["message"].as_str().unwrap_or_default();
            assert!(why.contains("cannot be found now"), "{elsewhere}");
            let answer = json!({"action": "accept", "content": {"name": "Ada"}});
            let update = json!({"taskId": known, "inputResponses": {key: answer}});
            let updated = one.send("k-ada", "tasks/update", update).await;
            assert!(updated["result"].is_object(), "{updated}");
            store.start_again();
            assert_eq!(two.until(&known, "completed").await["taskId"], *known);
        });
    }
}
