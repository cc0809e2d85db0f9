//! Several requests as one, an `experimental` capability of one profile.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::Client;
use super::core::member;
use crate::connection::RequestOptions;
use crate::error::RequestError;

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
        self.core.require("experimental.batch")?;
        let params = json!({ "requests": requests }).to_string();
        let options = RequestOptions::default();
        let answer = self.request("batch/execute", Some(&params), options)?;
        let responses: Option<Vec<Value>> = member(&answer.await?, "responses")?;
        let responses = responses.unwrap_or_default();
        responses.into_iter().map(response).collect()
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
        .map_err(|_| RequestError::BadAnswer("an element that is not a response"))
}
