//! A long call that goes on as a task: clients that support tasks poll it, others wait for the answer.

use std::time::Duration;

use mcpbolt::mcp::TaskSupport;
use mcpbolt::prelude::*;

#[data]
struct Film {
    frames: u32,
}

async fn render(film: Film, context: Context) -> String {
    let frames = film.frames;
    context.begin_task();
    for frame in 1..=frames {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let message = format!("frame {frame}");
        context.progress(frame.into(), Some(frames.into()), Some(&message));
        context.task_message(&message);
    }
    format!("{frames} frames")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tool = Tool::new("render")
        .description("Renders a film.")
        .task_support(TaskSupport::Optional);
    let server = Server::builder("films", "1.0.0").tool(tool, render);
    Ok(server.build()?.run()?)
}
