//! The engine's middleware of chains, as JavaScript describes it.

use std::collections::HashMap;
use std::sync::Arc;

use mcpbolt::chain::{
    self, Approval, Breaker, CallReports, ChainRequest, Middleware, PinDrift, Pins, Prefix,
    UpstreamCall,
};
use mcpbolt::json::reader;
use mcpbolt::settings::{BreakerRule, MaskingRule, Milliseconds, RetryRule, matching_tools};
use napi::bindgen_prelude::Function;
use napi_derive::napi;
use serde_json::json;

use crate::awaited::AwaitedQuestions;
use crate::error::{self, Result, misuse};
use crate::json::{quote, read};
use crate::reports::Reports;

/// Why calls are not approved when JavaScript gives no verdict.
const ENDED: &str = "the program has ended";

/// The verdict on a call: nothing, or why it is refused.
type Verdict = std::result::Result<(), String>;

/// Makes the middleware for the server of that name, or the front.
type Make = dyn Fn(&str) -> Arc<dyn Middleware>;

/// Middleware of the engine.
#[napi]
pub struct Rule {
    make: Box<Make>,
    breaker: Option<Breaker>,
    approvals: Option<Arc<AwaitedQuestions<Verdict>>>,
}

impl Rule {
    /// One that is the same wherever it stands.
    fn of(middleware: impl Middleware) -> Self {
        let middleware: Arc<dyn Middleware> = Arc::new(middleware);
        Self::named(move |_| middleware.clone())
    }

    /// One that says in reports where it stands.
    fn named(make: impl Fn(&str) -> Arc<dyn Middleware> + 'static) -> Self {
        Self {
            make: Box::new(make),
            breaker: None,
            approvals: None,
        }
    }

    /// The middleware for the server of that name, or the front.
    pub fn of_server(&self, name: &str) -> Arc<dyn Middleware> {
        (self.make)(name)
    }
}

#[napi]
impl Rule {
    /// Whether a breaker refuses requests at present.
    #[napi(catch_unwind)]
    pub fn is_open(&self) -> bool {
        self.breaker.as_ref().is_some_and(Breaker::is_open)
    }

    /// Gives the verdict on a call that was to be approved: why it is refused, if it is.
    #[napi(catch_unwind)]
    pub fn approved(&self, number: u32, refusal: Option<String>) {
        if let Some(approvals) = &self.approvals {
            approvals.answer(number, refusal.map_or(Ok(()), Err));
        }
    }
}

/// A prefix for the names of a server.
#[napi(catch_unwind)]
pub fn prefix_rule(prefix: String) -> Result<Rule> {
    Prefix::new(prefix).map(Rule::of).map_err(error::request)
}

/// Tools that must stay as they were pinned. `drift` gets `{server, tool, pinned, found}`.
#[napi(catch_unwind)]
pub fn pins_rule(
    pins: HashMap<String, String>,
    drift: Option<Function<'_, String, ()>>,
) -> Result<Rule> {
    let pins: std::collections::BTreeMap<_, _> = pins.into_iter().collect();
    let drift = drift.as_ref().map(Reports::new).transpose()?;
    Ok(Rule::named(move |server| {
        let drift = drift.clone();
        Arc::new(Pins::new(
            server,
            pins.clone(),
            move |found: &PinDrift<'_>| {
                if let Some(drift) = &drift {
                    drift.tell(|_| drifted(found));
                }
            },
        ))
    }))
}

fn drifted(drift: &PinDrift<'_>) -> String {
    let PinDrift {
        server,
        tool,
        pinned,
        found,
        ..
    } = drift;
    json!({ "server": server, "tool": tool, "pinned": pinned, "found": found }).to_string()
}

/// The pin of a tool, which is JSON.
#[napi(catch_unwind)]
pub fn tool_pin(tool: String) -> String {
    chain::tool_pin(&tool)
}

/// Calls of some tools that need approval, by the function `approve` or else by the user of the client.
#[napi(catch_unwind)]
pub fn approval_rule(
    tools: Vec<String>,
    approve: Option<Function<'_, String, ()>>,
) -> Result<Rule> {
    let needs = matching_tools(tools).map_err(misuse)?;
    let Some(approve) = approve else {
        return Ok(Rule::of(Approval::by_client(needs)));
    };
    let approvals = AwaitedQuestions::new(&approve)?;
    let asked = approvals.clone();
    let approval = Approval::new(needs, move |request: ChainRequest| {
        let verdict = asked.ask(&question(&request));
        async move { verdict.await.unwrap_or_else(|| Err(ENDED.to_owned())) }
    });
    Ok(Rule {
        approvals: Some(approvals),
        ..Rule::of(approval)
    })
}

/// The call of a tool, as members of JSON.
fn question(request: &ChainRequest) -> String {
    let mut question = "\"tool\":".to_owned();
    quote(&mut question, &request.target().unwrap_or_default());
    question.push_str(",\"revision\":");
    quote(&mut question, request.revision().name());
    if let Some(principal) = request.principal() {
        question.push_str(",\"principal\":");
        quote(&mut question, principal.as_str());
    }
    question.push_str(",\"arguments\":");
    question.push_str(reader::find(request.params(), "arguments").unwrap_or("{}"));
    question
}

/// Texts that are masked.
#[napi(catch_unwind)]
pub fn masking_rule(settings: String) -> Result<Rule> {
    let rule: MaskingRule = read(&settings)?;
    rule.build().map(Rule::of).map_err(misuse)
}

/// A server that fails often is left alone for a time.
#[napi(catch_unwind)]
pub fn breaker_rule(settings: String) -> Result<Rule> {
    let rule: BreakerRule<Milliseconds> = read(&settings)?;
    let breaker = rule.build().map_err(misuse)?;
    Ok(Rule {
        breaker: Some(breaker.clone()),
        ..Rule::of(breaker)
    })
}

/// Requests that are sent again when the server is lost.
#[napi(catch_unwind)]
pub fn retry_rule(settings: String) -> Result<Rule> {
    let rule: RetryRule = read(&settings)?;
    rule.build().map(Rule::of).map_err(misuse)
}

/// Reports of requests: `{server, method, name, principal, outcome, error, seconds, dropped}`.
#[napi(catch_unwind)]
pub fn call_reports_rule(report: Function<'_, String, ()>) -> Result<Rule> {
    let reports = Reports::new(&report)?;
    Ok(Rule::named(move |server| {
        let reports = reports.clone();
        Arc::new(CallReports::new(server, move |call: &UpstreamCall<'_>| {
            reports.tell(|dropped| called(call, dropped));
        }))
    }))
}

fn called(call: &UpstreamCall<'_>, dropped: u64) -> String {
    json!({
        "server": call.server,
        "method": call.method,
        "name": call.name,
        "principal": call.principal,
        "outcome": call.outcome.name(),
        "error": call.error.map(ToString::to_string),
        "seconds": call.duration.as_secs_f64(),
        "dropped": dropped,
    })
    .to_string()
}
