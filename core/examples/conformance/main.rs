//! The server that the official conformance suite asks for, on any address.
//!
//! ```text
//! cargo run --example conformance --features http,skills -- http://127.0.0.1:8000/mcp
//! ```

mod server;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "http://127.0.0.1:8000/mcp".into());
    let serving = server::server(false)?.serve(address).start()?;
    eprintln!("{}", serving.address());
    serving.wait();
    Ok(())
}
