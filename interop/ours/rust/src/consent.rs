//! A server with a consent proxy in front of an identity provider that knows no registration: one tool, `whoami`.
//!
//! ```text
//! interop-consent ISSUER URL
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mcpbolt::io::http::{
    ConsentProxy, ConsentProxyOptions, HttpOptions, HttpServer, Principal, Upstream,
};
use mcpbolt::policy::{Credentials, Policy};
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

    let verifier = proxy.clone();
    let policy = Policy::new().verifier(move |credentials| match credentials {
        Credentials::Bearer(token) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |since| since.as_secs());
            let token = verifier.verify(token, now).map_err(|why| why.to_string())?;
            Ok(Principal::new(token.subject).with_scopes(token.scopes))
        }
        _ => Err("a token is needed".into()),
    });
    let whoami = |_: Arguments, context: Context| async move {
        format!("{}: {SCOPE}", context.principal().unwrap_or("nobody"))
    };
    let server = Server::builder("consent", "1")
        .policy(policy.scope("whoami", SCOPE))
        .tool(Tool::new("whoami"), whoami)
        .build()?;
    let options = HttpOptions {
        consent_proxy: Some(proxy),
        ..HttpOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = HttpServer::bind(&server, address, options).await?;
        server.run(std::future::pending()).await;
        Ok(())
    })
}
