//! The method table: every wire name, the side that may send it, and the revisions that define it.

use super::revision::{Revision, Revisions};

/// A side of a connection. (MCP uses *role* for user and assistant.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that uses tools, resources and prompts.
    Client,
    /// The side that offers tools, resources and prompts.
    Server,
}

impl Side {
    /// The side with that name, in lower case.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "client" => Self::Client,
            "server" => Self::Server,
            _ => return None,
        })
    }

    /// The opposite side.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

const C: u8 = 1;
const S: u8 = 2;
const B: u8 = 3;
/// First and last revision of a row. `NEW` stands for a method that is still defined.
const R24: u8 = Revision::V2024_11_05 as u8;
const R06: u8 = Revision::V2025_06_18 as u8;
const R11: u8 = Revision::V2025_11_25 as u8;
const R26: u8 = Revision::V2026_07_28 as u8;
const NEW: u8 = Revision::NEWEST as u8;

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident $name:literal $kind:ident $from:ident $first:ident $last:ident,)*) => {
        /// A wire method that some revision defines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Method { $($(#[$doc])* #[doc = concat!("`", $name, "`")] $variant,)* }

        const TABLE: &[Row] = &[$(Row { method: Method::$variant, name: $name, request: kind::$kind, from: $from, first: $first, last: $last },)*];

        impl Method {
            /// The method with that wire name.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The method with that wire name, given as a JSON string token in quotes; `None` if
            /// the token has escapes.
            pub(crate) fn of_token(token: &[u8]) -> Option<Self> {
                let name = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
                $(if name == $name.as_bytes() {
                    return Some(Self::$variant);
                })*
                None
            }
        }
    };
}

mod kind {
    pub const REQUEST: bool = true;
    pub const NOTIFICATION: bool = false;
}

struct Row {
    method: Method,
    name: &'static str,
    request: bool,
    from: u8,
    first: u8,
    last: u8,
}

methods! {
    Initialize "initialize" REQUEST C R24 R11,
    Discover "server/discover" REQUEST C R26 NEW,
    Ping "ping" REQUEST B R24 R11,
    ListTools "tools/list" REQUEST C R24 NEW,
    CallTool "tools/call" REQUEST C R24 NEW,
    ListResources "resources/list" REQUEST C R24 NEW,
    ListResourceTemplates "resources/templates/list" REQUEST C R24 NEW,
    ReadResource "resources/read" REQUEST C R24 NEW,
    Subscribe "resources/subscribe" REQUEST C R24 R11,
    Unsubscribe "resources/unsubscribe" REQUEST C R24 R11,
    ListPrompts "prompts/list" REQUEST C R24 NEW,
    GetPrompt "prompts/get" REQUEST C R24 NEW,
    Complete "completion/complete" REQUEST C R24 NEW,
    SetLevel "logging/setLevel" REQUEST C R24 R11,
    CreateMessage "sampling/createMessage" REQUEST S R24 R11,
    ListRoots "roots/list" REQUEST S R24 R11,
    Elicit "elicitation/create" REQUEST S R06 R11,
    Listen "subscriptions/listen" REQUEST C R26 NEW,
    GetTask "tasks/get" REQUEST B R11 NEW,
    CancelTask "tasks/cancel" REQUEST B R11 NEW,
    TaskResult "tasks/result" REQUEST B R11 R11,
    ListTasks "tasks/list" REQUEST B R11 R11,
    UpdateTask "tasks/update" REQUEST C R26 NEW,
    ListSkills "skills/list" REQUEST C R26 NEW,
    GetSkill "skills/get" REQUEST C R26 NEW,
    ReadDirectory "resources/directory/read" REQUEST C R26 NEW,
    Initialized "notifications/initialized" NOTIFICATION C R24 R11,
    /// `notifications/initialized` as one of the profiles spells it (R-LIF-07).
    InitializedBare "initialized" NOTIFICATION C R24 R11,
    Cancelled "notifications/cancelled" NOTIFICATION B R24 NEW,
    Progress "notifications/progress" NOTIFICATION B R24 NEW,
    LogMessage "notifications/message" NOTIFICATION S R24 NEW,
    ToolsChanged "notifications/tools/list_changed" NOTIFICATION S R24 NEW,
    PromptsChanged "notifications/prompts/list_changed" NOTIFICATION S R24 NEW,
    ResourcesChanged "notifications/resources/list_changed" NOTIFICATION S R24 NEW,
    ResourceUpdated "notifications/resources/updated" NOTIFICATION S R24 NEW,
    RootsChanged "notifications/roots/list_changed" NOTIFICATION C R24 R11,
    ElicitationComplete "notifications/elicitation/complete" NOTIFICATION S R11 R11,
    TaskStatus "notifications/tasks/status" NOTIFICATION B R11 R11,
    Tasks "notifications/tasks" NOTIFICATION S R26 NEW,
    SubscriptionAcknowledged "notifications/subscriptions/acknowledged" NOTIFICATION S R26 NEW,
}

impl Method {
    /// Every method of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.method)
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The wire name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is a request rather than a notification.
    pub fn is_request(self) -> bool {
        self.row().request
    }

    /// Whether the server may ask the client for input before it answers (R-MRT-01).
    pub fn may_ask(self) -> bool {
        matches!(self, Self::CallTool | Self::GetPrompt | Self::ReadResource)
    }

    /// Whether the request is idempotent: sending it twice does no more than once, with any server.
    pub fn is_repeatable(self) -> bool {
        let changes = matches!(
            self,
            Self::Initialize
                | Self::CallTool
                | Self::CreateMessage
                | Self::Elicit
                | Self::UpdateTask
        );
        self.is_request() && !changes
    }

    /// Whether `from` may send it in `revision`. A message from the wrong side or of another
    /// revision is an unknown method.
    pub fn defined(self, revision: Revision, from: Side) -> bool {
        let row = self.row();
        let side = if from == Side::Client { C } else { S };
        row.from & side != 0 && (row.first..=row.last).contains(&(revision as u8))
    }

    /// The revisions that define it for either side.
    pub fn revisions(self) -> Revisions {
        Revision::ALL
            .into_iter()
            .filter(|r| (self.row().first..=self.row().last).contains(&(*r as u8)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_names() {
        for (i, row) in TABLE.iter().enumerate() {
            assert_eq!(row.method as usize, i);
            assert_eq!(Method::parse(row.name), Some(row.method));
            let token = format!("\"{}\"", row.name);
            assert_eq!(Method::of_token(token.as_bytes()), Some(row.method));
            assert_eq!(
                row.method.name().contains("notification"),
                !row.request && row.name != "initialized"
            );
        }
    }

    #[test]
    fn removed_and_one_sided_methods_are_unknown() {
        use Revision::*;
        assert!(Method::Ping.defined(V2025_11_25, Side::Server));
        assert!(!Method::Ping.defined(V2026_07_28, Side::Client), "R-PNG-03");
        assert!(!Method::Discover.defined(V2025_11_25, Side::Client));
        assert!(!Method::CreateMessage.defined(V2025_11_25, Side::Client));
        assert!(!Method::Elicit.defined(V2025_03_26, Side::Server));
        assert!(!Method::CallTool.defined(V2025_11_25, Side::Server));
    }
}
