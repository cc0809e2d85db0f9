//! Notifications of the state of tasks that reach a client at another process.

use http_body_util::BodyExt as _;
use hyper::Method;
use mcpbolt::io::http::HttpBody;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::send;
use crate::session_tasks::Session;
use crate::stores::{SOON, on_every_store};
use crate::tasks::{Process, stateless};

/// The messages of a stream, in order.
struct Stream(HttpBody, String);

impl Stream {
    /// The next message of this method for which `is_it`.
    async fn next(&mut self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                while let Some((event, rest)) = self.1.split_once("\n\n") {
                    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                    let message: Value = data.map_or(Value::Null, |data| {
                        serde_json::from_str(data).unwrap_or_default()
                    });
                    self.1 = rest.to_owned();
                    if message["method"] == method && is_it(&message["params"]) {
                        return message["params"].clone();
                    }
                }
                let frame = self.0.frame().await.expect("the stream ends").unwrap();
                let data = frame.into_data().unwrap_or_default();
                self.1 += &String::from_utf8_lossy(&data).replace("\r\n", "\n");
            }
        };
        let found = timeout(SOON, found).await;
        found.unwrap_or_else(|_| panic!("no {method}"))
    }
}

async fn listen(at: &Process, key: &str, ids: &[&str]) -> Stream {
    let params = json!({"notifications": {"taskIds": ids}});
    let answer = stateless(&at.at, key, "subscriptions/listen", params).await;
    Stream(answer.into_body(), String::new())
}

const TASKS: &str = "notifications/tasks";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const STATUS: &str = "notifications/tasks/status";

/// R-TSX-17: a stream of `subscriptions/listen` tells of tasks that another process runs, to their owner alone.
#[test]
fn a_client_listens_to_tasks_of_another_process() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let (again, wait) = (one.begin("again").await, one.begin("wait").await);
        let ids = [&*again, &*wait];
        let mut own = listen(&two, "k-ada", &[ids[0], ids[1], "1-none"]).await;
        let granted = own.next(ACKNOWLEDGED, |_| true).await;
        let mut granted: Vec<_> = granted["notifications"]["taskIds"]
            .as_array()
            .unwrap()
            .clone();
        let mut expected = ids.map(Value::from).to_vec();
        granted.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(granted, expected);
        let mut bobs = listen(&two, "k-bob", &ids).await;
        let granted = bobs.next(ACKNOWLEDGED, |_| true).await;
        assert_eq!(granted["notifications"], json!({}));

        one.gate.add_permits(1);
        let ended = own.next(TASKS, |task| {
            task["taskId"] == *again && task["status"] == "completed"
        });
        assert!(ended.await["result"]["content"].is_array());
        let cancelled = one
            .send("k-ada", "tasks/cancel", json!({"taskId": wait}))
            .await;
        assert!(cancelled["result"].is_object(), "{cancelled}");
        own.next(TASKS, |task| {
            task["taskId"] == *wait && task["status"] == "cancelled"
        })
        .await;
    });
}

/// A client that only listens hears that a task has failed, and has one run once more whose tool is idempotent.
#[test]
fn a_client_that_listens_hears_of_tasks_whose_process_has_ended() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::new(world.connect()));
        let (again, wait) = (one.begin("again").await, one.begin("wait").await);
        let mut own = listen(&two, "k-ada", &[&again, &wait]).await;
        own.next(ACKNOWLEDGED, |_| true).await;
        drop(one);
        own.next(TASKS, |task| {
            task["taskId"] == *wait && task["status"] == "failed"
        })
        .await;
        two.gate.add_permits(1);
        own.next(TASKS, |task| {
            task["taskId"] == *again && task["status"] == "completed"
        })
        .await;
    });
}

/// R-TSK-16: the standing stream of a session tells of its tasks at every process, and of those of no other session.
#[test]
fn a_session_hears_of_its_tasks_at_another_process() {
    on_every_store(async |world| {
        let [one, two] = [(); 2].map(|()| Process::with(world.connect(), false));
        let own = Session::begin(&one, "").await;
        let head = [("Mcp-Session-Id", &*own.id)];
        let stream = send(&two.at, Method::GET, &head, &Value::Null).await;
        assert_eq!(stream.status(), 200);
        let mut stream = Stream(stream.into_body(), String::new());
        let other = Session::begin(&one, "").await;
        other.task(&one, "fail").await;
        // The stream begins to follow some time after it is open; what changes from then on is told.
        let mut known = own.task(&one, "again").await;
        let first = loop {
            let told = stream.next(STATUS, |_| true);
            match timeout(std::time::Duration::from_millis(500), told).await {
                Ok(first) => break first,
                Err(_) => known = own.task(&one, "again").await,
            }
        };
        assert_eq!(first["statusMessage"], "on its way", "{first}");
        own.about(&one, "tasks/cancel", &known).await;
        let ended = stream
            .next(STATUS, |task| task["status"] != "working")
            .await;
        assert_eq!(
            (&ended["taskId"], &ended["status"]),
            (&json!(known), &json!("cancelled"))
        );
    });
}
