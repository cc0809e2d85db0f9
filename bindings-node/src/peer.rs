//! Messages that another library's server sends to its clients on its own: it uses whole messages, and has
//! deadlines of its own.

use std::time::Duration;

use mcpbolt::connection::{Handle, RequestOptions};
use napi_derive::napi;

use crate::client::progress;
use crate::error::{self, Result, error};
use crate::link::Link;
use crate::requests::Way;

/// Longer than any caller waits.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);

impl Link {
    fn client_handle(&self, client: f64) -> Result<&Handle> {
        let gone = || error("ERR_MCP_CLOSED", "the client is gone");
        let caller = self.clients.get(&(client as u64)).ok_or_else(gone)?;
        Ok(&caller.handle)
    }
}

#[napi]
impl Link {
    /// The head of the HTTP request that brought a call, as JSON; `None` without HTTP, or when the call is
    /// over.
    #[napi(catch_unwind)]
    pub fn head(&self, call: u32) -> Option<String> {
        self.calls.get(call)?.head()
    }

    /// Sends a request to a client, on the stream of that client's call while the call is in progress;
    /// returns the number under which its answer will come.
    #[napi(catch_unwind)]
    pub fn ask_client(
        &mut self,
        client: f64,
        call: Option<u32>,
        method: String,
        params: Option<String>,
        wants_progress: bool,
    ) -> Result<u32> {
        let within = call.and_then(|call| self.calls.get(call));
        let within = within.map(|call| call.reply().key());
        let number = self.requests.reserve();
        let options = RequestOptions {
            timeout: Some(PATIENCE),
            max_timeout: Some(PATIENCE),
            progress: wants_progress.then(|| progress(self.inbox.clone(), number)),
            within,
            ..RequestOptions::default()
        };
        let handle = match call.and_then(|call| self.calls.get(call)) {
            Some(call) => Ok(&call.caller.handle),
            None => self.client_handle(client),
        };
        let sent = handle.and_then(|handle| {
            let sent = handle.request(&method, params.as_deref(), options);
            sent.map_err(|why| error::request(&why))
        });
        match sent {
            Ok(response) => {
                self.requests.wait(number, Way::Peer(response), &self.inbox);
                Ok(number)
            }
            Err(why) => {
                self.requests.forget(number);
                Err(why)
            }
        }
    }

    /// Sends a notification to a client, outside of any call.
    #[napi(catch_unwind)]
    pub fn tell_client(&self, client: f64, method: String, params: Option<String>) -> Result<()> {
        let told = self
            .client_handle(client)?
            .notify(&method, params.as_deref());
        told.map_err(|why| error::request(&why))
    }
}
