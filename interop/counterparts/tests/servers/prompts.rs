//! Prompts, and what completes their arguments.

use serde_json::{Value, json};

use crate::peer::{Peer, REVISIONS, Running, ask, names, spawned};

/// The description of a prompt, and its messages: roles and texts.
async fn get(client: &Running, name: &str, arguments: Value) -> (Value, Vec<(String, String)>) {
    let params = json!({"name": name, "arguments": arguments});
    let prompt = ask(client, "prompts/get", params).await;
    let messages = prompt["messages"].as_array();
    let messages = messages.unwrap_or_else(|| panic!("{prompt}")).iter();
    let own = |value: &Value| value.as_str().unwrap().to_owned();
    let messages = messages.map(|one| (own(&one["role"]), own(&one["content"]["text"])));
    (prompt["description"].clone(), messages.collect())
}

#[tokio::test]
async fn prompts_take_texts_and_lists() {
    for revision in REVISIONS {
        let client = spawned("prompt_stdio", revision, Peer::default()).await;
        let all = [
            "code_review",
            "data_analysis",
            "debug_assistant",
            "greeting",
            "learning_path",
            "writing_assistant",
        ];
        assert_eq!(names(&client, "prompts/list", "prompts").await, all);
        let (_, greeting) = get(&client, "greeting", json!({})).await;
        let expected = "Hello! I'd like to start our conversation.";
        assert_eq!(greeting[0], ("user".to_owned(), expected.to_owned()));
        assert_eq!(greeting.len(), 2);

        let review = json!({"language": "Rust", "file_path": "a.rs"});
        let (description, review) = get(&client, "code_review", review).await;
        let expected = "Code review for Rust file focusing on correctness, performance";
        assert_eq!(description, expected);
        assert_eq!(
            review[0].1,
            "You are an expert Rust code reviewer. The user's expertise level is intermediate."
        );
        assert_eq!(
            review[2].1,
            "I'll review your Rust code focusing on correctness and performance. Let me analyze the code at 'a.rs'..."
        );
        let analysis = json!({"data_type": "csv", "analysis_type": "trend"});
        let (_, analysis) = get(&client, "data_analysis", analysis).await;
        assert_eq!(
            analysis[0].1,
            "I have csv data that needs trend analysis. Context: General analysis requested"
        );
        let writing = json!({
            "content_type": "blog", "audience": "all", "tone": "casual",
            "key_points": "[\"speed\", \"size\"]",
        });
        let (description, writing) = get(&client, "writing_assistant", writing).await;
        let expected = "Writing blog for all audience with casual tone";
        assert_eq!(description, expected);
        assert_eq!(writing.len(), 3 + 2 * 2);
        let point = "For point 2: size, what would you suggest?";
        assert_eq!(writing[5].1, point);
        let debug = json!({
            "error_message": "x".repeat(60), "stack": "[\"tokio\"]", "tried_solutions": "[\"luck\"]",
        });
        let (description, debug) = get(&client, "debug_assistant", debug).await;
        assert_eq!(
            description,
            format!("Debugging {} error in tokio", "x".repeat(50))
        );
        assert_eq!(debug[2].1, "I've already tried: luck");
        assert_eq!(debug.len(), 5);
        let params =
            json!({"name": "debug_assistant", "arguments": {"error_message": "x", "stack": "[]"}});
        let refused = ask(&client, "prompts/get", params).await;
        assert_eq!(refused["error"]["code"], -32602);
        assert_eq!(
            refused["error"]["message"],
            "Technology stack cannot be empty"
        );
        let (_, path) = get(&client, "learning_path", json!({})).await;
        assert_eq!(
            path[0].1,
            "Create a learning path for someone at intermediate level who prefers English language explanations."
        );
    }
}

#[tokio::test]
async fn queries_are_built_step_by_step() {
    for revision in REVISIONS {
        let client = spawned("completion_stdio", revision, Peer::default()).await;
        let listed = ask(&client, "prompts/list", Value::Null).await;
        let prompt = &listed["prompts"][0];
        assert_eq!(prompt["description"], "Smart SQL query builder");
        let arguments = prompt["arguments"].as_array().unwrap().iter();
        let arguments = arguments.map(|one| (one["name"].clone(), one["required"] == true));
        let expected = ["operation", "table", "columns", "where_clause", "values"];
        let expected = expected
            .iter()
            .enumerate()
            .map(|(i, name)| (json!(name), i < 2));
        assert!(arguments.eq(expected), "{prompt}");

        for (arguments, description, needle) in [
            (
                json!({"operation": "", "table": ""}),
                "SQL Query: Unknown on table",
                "First, what type of operation",
            ),
            (
                json!({"operation": "SELECT", "table": ""}),
                "SQL Query: SELECT on table",
                "For a SELECT operation",
            ),
            (
                json!({"operation": "select", "table": "users", "where_clause": "id = 1"}),
                "SQL Query: select on users",
                "```sql\nSELECT * FROM users WHERE id = 1\n```\n\nThis query will select the users table.",
            ),
            (
                json!({"operation": "INSERT", "table": "users", "values": "1, 'a'"}),
                "SQL Query: INSERT on users",
                "INSERT INTO users VALUES (1, 'a')",
            ),
            (
                json!({"operation": "INSERT", "table": "users"}),
                "SQL Query: INSERT on users",
                "INSERT INTO users (...) VALUES (...)",
            ),
            (
                json!({"operation": "UPDATE", "table": "users", "columns": "name = 'b'"}),
                "SQL Query: UPDATE on users",
                "UPDATE users SET name = 'b'\n",
            ),
            (
                json!({"operation": "DELETE", "table": "users"}),
                "SQL Query: DELETE on users",
                "DELETE FROM users\n",
            ),
            (
                json!({"operation": "DROP", "table": "users"}),
                "SQL Query: DROP on users",
                "DROP FROM users\n",
            ),
        ] {
            let (told, messages) = get(&client, "sql_query", arguments).await;
            assert_eq!(told, description);
            assert!(messages[1].1.contains(needle), "{messages:?}");
        }
    }
}

#[tokio::test]
async fn arguments_are_completed_from_those_that_are_filled_in() {
    let select = json!({"operation": "SELECT"});
    let insert = json!({"operation": "insert", "table": "users"});
    let columns = ["id", "name", "email", "created_at", "updated_at", "*"];
    let conditions = [
        "id = 1",
        "name = 'example'",
        "created_at > '2023-01-01'",
        "status = 'active'",
    ];
    let cases: [(&str, &str, &Value, &[&str]); 16] = [
        (
            "operation",
            "",
            &json!({}),
            &["SELECT", "INSERT", "UPDATE", "DELETE"],
        ),
        ("operation", "sel", &json!({}), &["SELECT"]),
        // One that contains the text, then those with its letters in this order.
        ("operation", "ete", &json!({}), &["DELETE"]),
        ("operation", "st", &json!({}), &["INSERT", "SELECT"]),
        ("operation", "x", &json!({}), &[]),
        (
            "table",
            "",
            &json!({}),
            &["users", "orders", "products", "categories", "reviews"],
        ),
        (
            "table",
            "r",
            &json!({}),
            &["reviews", "categories", "orders", "products", "users"],
        ),
        ("columns", "", &json!({}), &["Choose operation first"]),
        ("columns", "", &select, &columns),
        ("columns", "ate", &select, &["created_at", "updated_at"]),
        (
            "columns",
            "",
            &insert,
            &["Not applicable for this operation"],
        ),
        (
            "values",
            "",
            &insert,
            &["'John Doe'", "'jane@example.com'", "123", "NOW()"],
        ),
        ("values", "'d", &insert, &["'John Doe'"]),
        (
            "values",
            "",
            &select,
            &["Not applicable for this operation"],
        ),
        (
            "where_clause",
            "",
            &select,
            &["Complete operation and table first"],
        ),
        ("where_clause", "", &insert, &conditions),
    ];
    for revision in REVISIONS {
        let client = spawned("completion_stdio", revision, Peer::default()).await;
        for (argument, typed, filled, expected) in cases {
            let params = json!({
                "ref": {"type": "ref/prompt", "name": "sql_query"},
                "argument": {"name": argument, "value": typed},
                "context": {"arguments": filled},
            });
            let completed = ask(&client, "completion/complete", params).await;
            let values = &completed["completion"]["values"];
            assert_eq!(*values, json!(expected), "{argument} {typed:?} {filled}");
        }
    }
}
