//! A server with a consent proxy in front of an identity provider that knows no registration: one tool, `whoami`.
//!
//! ```text
//! interop-consent ISSUER URL
//! ```

use std::error::Error;
use std::sync::Arc;

use mcpbolt::io::http::{HttpOptions, HttpServer};
use mcpbolt::policy::{ConsentProxy, ConsentProxyOptions, Policy, Upstream};
use mcpbolt::server::{Arguments, Context, Server, Tool};

const SCOPE: &str = "mcp:read";

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: interop-consent ISSUER URL";
    let (provider, url) = (words.next().ok_or(usage)?, words.next().ok_or(usage)?);
    let origin = url.strip_suffix("/mcp").ok_or(usage)?;
    let address = origin.strip_prefix("http://").ok_or(usage)?.to_owned();

    let at = |path| format!("{provider}/{path}");
    let mut upstream = Upstream::new(at("auth"), at("token"), "known");
    upstream.client_secret = Some("secret-of-the-known".into());
    upstream.issuer = Some(provider.clone());
    let mut options = ConsentProxyOptions::new(origin, &url, upstream);
    options.scopes = vec![SCOPE.into()];
    let proxy = Arc::new(ConsentProxy::new(options, &[7; 32])?);

    let policy = Policy::new().consent_proxy(proxy)?.scope("whoami", SCOPE);
    let whoami = |_: Arguments, context: Context| async move {
        let name = context.principal().and_then(|who| who.rsplit('#').next());
        format!("{}: {SCOPE}", name.unwrap_or("nobody"))
    };
    let server = Server::builder("consent", "1")
        .policy(policy)
        .tool(Tool::new("whoami"), whoami)
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = HttpServer::bind(&server, address, HttpOptions::default()).await?;
        server.run(std::future::pending()).await;
        Ok(())
    })
}
