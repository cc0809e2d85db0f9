//! Tools that answer at once.

use serde_json::{Value, json};

use crate::peer::{Peer, REVISIONS, call, names, spawned, text};

#[tokio::test]
async fn the_calculator_calculates() {
    for revision in REVISIONS {
        let client = spawned("calculator_stdio", revision, Peer::default()).await;
        let listed = crate::peer::ask(&client, "tools/list", Value::Null).await;
        let tools = listed["tools"].as_array().unwrap();
        let sum = tools.iter().find(|tool| tool["name"] == "sum").unwrap();
        assert_eq!(sum["description"], "Calculate the sum of two numbers");
        let parameters = &sum["inputSchema"]["properties"];
        let description = &parameters["a"]["description"];
        assert_eq!(description, "the left hand side number");
        assert_eq!(sum["inputSchema"]["required"], json!(["a", "b"]));
        let arguments = json!({"a": 2, "b": 40});
        assert_eq!(text(&client, "sum", arguments.clone()).await, "42");
        assert_eq!(text(&client, "sub", arguments).await, "-38");
        let most = json!({"a": i32::MAX, "b": i32::MAX});
        assert_eq!(text(&client, "sum", most).await, "4294967294");
    }
}

#[tokio::test]
async fn memory_is_set_and_read() {
    for revision in REVISIONS {
        let client = spawned("memory_stdio", revision, Peer::default()).await;
        let info = client.peer_info().unwrap();
        assert_eq!(info.instructions.as_deref(), Some("generic data service"));
        let expected = ["get_data", "set_data"];
        assert_eq!(names(&client, "tools/list", "tools").await, expected);
        assert_eq!(text(&client, "get_data", json!({})).await, "initial data");
        let told = text(&client, "set_data", json!({"data": "new"})).await;
        assert_eq!(told, "Current memory: new");
        assert_eq!(text(&client, "get_data", json!({})).await, "new");
    }
}

#[tokio::test]
async fn results_are_structured() {
    for revision in REVISIONS {
        let client = spawned("structured_output", revision, Peer::default()).await;
        let expected = ["calculate", "get_info", "get_weather"];
        assert_eq!(names(&client, "tools/list", "tools").await, expected);
        let listed = crate::peer::ask(&client, "tools/list", Value::Null).await;
        let schema = |name: &str| {
            let mut tools = listed["tools"].as_array().unwrap().iter();
            let tool = tools.find(|tool| tool["name"] == name).unwrap();
            tool["outputSchema"].clone()
        };
        let of_weather = schema("get_weather");
        assert_eq!(of_weather["properties"]["temperature"]["type"], "number");
        assert_eq!(schema("get_info"), Value::Null);
        for (units, degrees) in [("fahrenheit", 72.5), ("celsius", 22.5)] {
            let arguments = json!({"city": "Oslo", "units": units});
            let result = call(&client, "get_weather", arguments).await;
            let weather = json!({
                "temperature": degrees, "description": "Partly cloudy", "humidity": 65, "wind_speed": 12.5,
            });
            assert_eq!(result["structuredContent"], weather);
        }
        for (operation, result) in [("sum", 10.0), ("average", 2.5), ("product", 24.0)] {
            let arguments = json!({"numbers": [1, 2, 3, 4], "operation": operation});
            let calculated = call(&client, "calculate", arguments).await;
            let expected = json!({"result": result, "operation": operation, "input_count": 4});
            assert_eq!(calculated["structuredContent"], expected);
        }
        for (numbers, operation, why) in [
            (json!([]), "sum", "No numbers provided"),
            (json!([1]), "root", "Unknown operation: root"),
        ] {
            let arguments = json!({"numbers": numbers, "operation": operation});
            let failed = call(&client, "calculate", arguments).await;
            assert_eq!(failed["isError"], true);
            assert_eq!(failed["content"][0]["text"], why);
        }
        let info = text(&client, "get_info", json!({})).await;
        assert_eq!(info, "Structured Output Example Server v1.0");
    }
}
