//! Tools whose results are structured, with the schemas of their types.

use mcpbolt::prelude::*;

#[data]
struct WeatherResponse {
    temperature: f64,
    description: String,
    humidity: u8,
    wind_speed: f64,
}

#[data]
struct CalculationResult {
    result: f64,
    operation: String,
    input_count: usize,
}

/// Get current weather for a city
#[tool]
fn get_weather(
    #[param(name = "city")] _city: String,
    units: Option<&str>,
) -> Json<WeatherResponse> {
    Json(WeatherResponse {
        temperature: match units {
            Some("fahrenheit") => 72.5,
            _ => 22.5,
        },
        description: "Partly cloudy".to_owned(),
        humidity: 65,
        wind_speed: 12.5,
    })
}

/// Perform calculations on numbers
#[tool]
fn calculate(numbers: Vec<i32>, operation: String) -> Result<Json<CalculationResult>, String> {
    if numbers.is_empty() {
        return Err("No numbers provided".to_owned());
    }
    let all = numbers.iter().copied().map(f64::from);
    let result = match operation.as_str() {
        "sum" => all.sum(),
        "average" => all.sum::<f64>() / numbers.len() as f64,
        "product" => all.product(),
        _ => return Err(format!("Unknown operation: {operation}")),
    };
    Ok(Json(CalculationResult {
        result,
        operation,
        input_count: numbers.len(),
    }))
}

/// Get server information
#[tool]
fn get_info() -> &'static str {
    "Structured Output Example Server v1.0"
}

fn main() -> anyhow::Result<()> {
    let server = Server::builder("structured-output", "1.0.0")
        .with(handlers![get_weather, calculate, get_info])
        .build()?;
    eprintln!("Tool schemas:");
    for tool in server.registry().tools() {
        let description = tool.description.as_deref().unwrap_or_default();
        eprintln!("\n{}: {description}", tool.name);
        match &tool.output_schema {
            Some(schema) => eprintln!("  Output schema: {schema}"),
            None => eprintln!("  Output: Unstructured text"),
        }
    }
    eprintln!("\nStarting server. Connect with an MCP client to test the tools.");
    Ok(server.run()?)
}
