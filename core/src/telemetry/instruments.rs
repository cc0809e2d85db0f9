//! The histograms of the OpenTelemetry conventions for MCP.

/// A histogram of durations, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Durations {
    pub name: &'static str,
    pub description: &'static str,
}

/// Of requests: those that this side sent, or those that arrived.
pub(super) const fn of_requests(is_sent: bool) -> Durations {
    match is_sent {
        false => Durations {
            name: "mcp.server.operation.duration",
            description: "Duration of requests that arrived, until they were answered.",
        },
        true => Durations {
            name: "mcp.client.operation.duration",
            description: "Duration of requests that this side sent, until they were answered.",
        },
    }
}

/// Of sessions, as a client or a server sees them.
pub(super) const fn of_sessions(is_client: bool) -> Durations {
    match is_client {
        false => Durations {
            name: "mcp.server.session.duration",
            description: "Duration of sessions, as the server sees it.",
        },
        true => Durations {
            name: "mcp.client.session.duration",
            description: "Duration of sessions, as the client sees it.",
        },
    }
}
