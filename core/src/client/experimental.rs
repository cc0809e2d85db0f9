//! The `experimental` capabilities of one profile: results in pieces, batches, and caching advice.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Client, parse};
use crate::connection::RequestOptions;
use crate::error::RequestError;
use crate::json::{number, reader};

/// One request of a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchRequest {
    /// The method.
    pub method: String,
    /// Its params, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

/// The answer to one request of a batch.
pub type BatchResponse = Result<Value, BatchError>;

/// An error in a batch, bare or within a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchError {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// The data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// A server's advice on caching its lists: for how long, and how many pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advice {
    pub ttl: Duration,
    pub pages: usize,
}

impl Client {
    /// Sends several requests as one (`batch/execute`). Returns one answer per request, in the
    /// order of the requests (R-B3X-01, R-B3X-02).
    ///
    /// # Errors
    /// When the server does not declare batches, or refuses the batch as a whole.
    pub async fn batch(
        &self,
        requests: &[BatchRequest],
    ) -> Result<Vec<BatchResponse>, RequestError> {
        self.declares(&["experimental", "batch"], "experimental.batch")?;
        let params = json!({ "requests": requests }).to_string();
        let options = RequestOptions::default();
        let answer = self
            .request("batch/execute", Some(&params), options)?
            .await?;
        let result = answer.as_ref().result().unwrap_or("{}");
        let responses: Vec<Value> = parse(reader::find(result, "responses").unwrap_or("[]"))?;
        responses.into_iter().map(response).collect()
    }

    /// R-XST-03: in revisions with cache hints, only the hints count.
    pub(super) fn advice(&self) -> Option<Advice> {
        if !self.handle.config().profile.overlay().experimental {
            return None;
        }
        let capabilities = &self.handle.peer()?.capabilities;
        let said = |name| {
            let number = reader::find_path(capabilities, &["experimental", "caching", name]);
            number.and_then(number::as_u64)
        };
        Some(Advice {
            ttl: Duration::from_millis(said("ttl")?),
            pages: said("maxSize").map_or(usize::MAX, |size| size as usize),
        })
    }
}

/// Reads either form of an element (R-B3X-02).
fn response(mut element: Value) -> Result<BatchResponse, RequestError> {
    if let Some(result) = element.get_mut("result") {
        return Ok(Ok(result.take()));
    }
    let error = match element.get_mut("error") {
        Some(error) => error.take(),
        None => element,
    };
    let error = serde_json::from_value(error);
    error
        .map(Err)
        .map_err(|_| RequestError::BadAnswer("an element that is no response"))
}
