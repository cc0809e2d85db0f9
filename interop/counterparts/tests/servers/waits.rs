//! Calls that take seconds, and changes that come by themselves.

use std::time::Duration;

use rmcp::model::{CallToolResponse, GetTaskParams, ServerNotification};
use serde_json::{Value, from_value, json};

use crate::peer::{OnHttp, Peer, REVISIONS, names, spawned, text};

async fn reports(client: &crate::peer::Running) {
    let processed = text(client, "stream_processor", json!({})).await;
    assert_eq!(processed, "Processed 5 records successfully");
    let told = client.service().progress.lock().unwrap().clone();
    let expected = ["11111", "22222", "33333", "44444", "55555"];
    let expected = expected.iter().enumerate();
    let expected = expected.map(|(i, chunk)| (i as f64 + 1.0, Some((*chunk).to_owned())));
    assert!(told.iter().cloned().eq(expected), "{told:?}");
}

#[tokio::test]
async fn progress_is_reported_on_a_pipe() {
    let client = spawned("progress_demo", REVISIONS[0], Peer::default()).await;
    reports(&client).await;
}

#[tokio::test]
async fn progress_is_reported_on_http() {
    let server = OnHttp::start("progress_demo", "http://127.0.0.1:0/mcp");
    reports(&server.client(REVISIONS[1], Peer::default()).await).await;
}

#[tokio::test]
async fn a_slow_sum_is_a_task_for_those_who_follow_tasks() {
    let client = spawned("task_stdio", REVISIONS[1], Peer::default()).await;
    let expected = ["quick_echo", "slow_sum"];
    assert_eq!(names(&client, "tools/list", "tools").await, expected);
    let echoed = text(&client, "quick_echo", json!({"message": "hi"})).await;
    assert_eq!(echoed, "hi");
    let params = json!({"name": "slow_sum", "arguments": {"a": 2, "b": 40}});
    let begin = || client.call_tool_once(from_value(params.clone()).unwrap());
    let CallToolResponse::Task(created) = begin().await.unwrap() else {
        panic!("no task");
    };
    let state = async |id: &str| -> Value {
        let task = client.get_task(GetTaskParams::new(id)).await.unwrap();
        json!(task.task)
    };
    let ended = loop {
        let task = state(&created.task.task_id).await;
        if task["status"] != "working" {
            break task;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["result"]["content"][0]["text"], "42");
    // Another is cancelled.
    let CallToolResponse::Task(created) = begin().await.unwrap() else {
        panic!("no task");
    };
    let id = created.task.task_id;
    let cancelled = client.cancel_task(rmcp::model::CancelTaskParams::new(id.as_str()));
    cancelled.await.unwrap();
    assert_eq!(state(&id).await["status"], "cancelled");
}

#[tokio::test]
async fn a_slow_sum_is_awaited_by_others() {
    let client = spawned("task_stdio", REVISIONS[0], Peer::default()).await;
    let sum = text(&client, "slow_sum", json!({"a": 2, "b": 40})).await;
    assert_eq!(sum, "42");
}

#[tokio::test]
async fn those_who_listen_are_told_of_changes() {
    let server = OnHttp::start("subscriptions_streamhttp", "http://127.0.0.1:0/mcp");
    let client = server.client(REVISIONS[1], Peer::default()).await;
    let wanted = from_value(json!({"toolsListChanged": true})).unwrap();
    let mut subscription = client.listen(wanted).await.unwrap();
    for _ in 0..2 {
        let told = subscription.next().await.unwrap().unwrap();
        let ServerNotification::ToolListChangedNotification(_) = told else {
            panic!("{told:?}");
        };
    }
    subscription.cancel().await.unwrap();
}
