//! The attributes of spans and metrics, by the OpenTelemetry conventions for MCP.

use std::borrow::Cow;

use super::names::Ended;
use super::series::Series;
use crate::connection::{Channel, ObservedRequest, ObservedSession};
use crate::mcp::Era;

/// The value of an attribute.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Text(Cow<'a, str>),
    Number(i64),
    Flag(bool),
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Value<'a> {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// Calls `add` with the attributes that requests of a series have in common.
pub(super) fn of_series<N: AsRef<str>, P: AsRef<str>>(
    series: &Series<N, P>,
    mut add: impl FnMut(&'static str, Value<'_>),
) {
    if series.is_overflow {
        return add("otel.metric.overflow", Value::Flag(true));
    }
    add("mcp.method.name", series.method().into());
    let mut text = |name: &'static str, value: Option<&str>| {
        value.into_iter().for_each(|value| add(name, value.into()));
    };
    text("gen_ai.tool.name", series.tool());
    text("gen_ai.prompt.name", series.prompt());
    text(
        "gen_ai.operation.name",
        series.tool().map(|_| "execute_tool"),
    );
    text("mcp.protocol.version", Some(series.revision.name()));
    text("network.transport", series.transport.map(|it| it.name()));
    text(
        "network.protocol.name",
        series.protocol.map(|(name, _)| name),
    );
    let version = series.protocol.and_then(|(_, version)| version);
    text("network.protocol.version", version);
    if let Some((address, port)) = &series.server {
        add("server.address", address.as_ref().into());
        if let Some(port) = *port {
            add("server.port", Value::Number(port.into()));
        }
    }
}

/// Calls `add` with the attributes of one request.
pub(super) fn of_request(
    request: &ObservedRequest<'_>,
    mut add: impl FnMut(&'static str, Value<'_>),
) {
    let id = request.id();
    if !id.is_empty() {
        add("jsonrpc.request.id", id.into());
    }
    if let Some(uri) = request.uri() {
        // A query may have secrets.
        let end = uri.find(['?', '#']).unwrap_or(uri.len());
        add(
            "mcp.resource.uri",
            uri.get(..end).unwrap_or_default().into(),
        );
    }
    let Some(channel) = request.channel() else {
        return;
    };
    if let Some(session) = &channel.session
        && request.revision().era() == Era::Handshake
    {
        add("mcp.session.id", (&**session).into());
    }
    if let Some((address, port)) = channel.peer.as_ref().filter(|_| !request.is_sent()) {
        add("client.address", (&**address).into());
        if let Some(port) = *port {
            add("client.port", Value::Number(port.into()));
        }
    }
}

/// Calls `add` with the attributes of how a request ended.
pub(super) fn of_end(ended: &Ended, mut add: impl FnMut(&'static str, Value<'static>)) {
    if let Some(error) = &ended.error {
        add("error.type", error.clone().into());
    }
    if let Some(code) = &ended.code {
        add("rpc.response.status_code", code.clone().into());
    }
}

/// Calls `add` with the attributes of a session.
pub(super) fn of_session(
    session: &ObservedSession<'_>,
    mut add: impl FnMut(&'static str, Value<'static>),
) {
    add("mcp.protocol.version", session.revision().name().into());
    if let Some(channel) = session.channel() {
        of_channel(channel, add);
    }
}

fn of_channel(channel: &Channel, mut add: impl FnMut(&'static str, Value<'static>)) {
    add("network.transport", channel.transport.name().into());
    if let Some((name, version)) = channel.protocol {
        add("network.protocol.name", name.into());
        if let Some(version) = version {
            add("network.protocol.version", version.into());
        }
    }
}
