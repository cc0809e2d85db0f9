//! The revision table: one row per published protocol revision.

use std::fmt;

use super::task::TaskForm;

/// How a peer opens: with a handshake per connection, or with an envelope on each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` and `notifications/initialized` once per connection (up to 2025-11-25).
    Handshake,
    /// Version and capabilities in the `_meta` of each request (from 2026-07-28).
    Stateless,
}

/// A published protocol revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Revision {
    /// 2024-11-05.
    V2024_11_05,
    /// 2025-03-26.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25.
    V2025_11_25,
    /// 2026-07-28.
    V2026_07_28,
}

/// The `id` of the error that answers a frame whose id could not be read (R-RPC-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableId {
    /// `"id": null`.
    Null,
    /// No `id` member.
    Omitted,
}

/// The properties in which the revisions differ.
#[derive(Debug)]
pub struct Rules {
    /// The version string on the wire.
    pub name: &'static str,
    /// How a peer opens.
    pub era: Era,
    /// Whether a JSON array of messages is a message (R-BAT).
    pub batches: bool,
    /// The form of an error's id when the frame's id could not be read.
    pub unreadable_id: UnreadableId,
    /// Whether tool arguments that break the schema are a tool error (`isError`) rather than
    /// `-32602` (R-TOL-05).
    pub bad_arguments_is_tool_error: bool,
    /// Whether results carry `resultType` and `_meta` with `serverInfo` (R-RPC-18, R-MET-06).
    pub result_type: bool,
    /// Whether lists and reads carry `ttlMs` and `cacheScope` (R-CCH).
    pub cache_hints: bool,
    /// Whether tools may have `outputSchema`, results `structuredContent`, and definitions `title`
    /// and `_meta`.
    pub structured_content: bool,
    /// Whether content may be a link to a resource.
    pub resource_links: bool,
    /// Whether `structuredContent` may be any JSON value rather than an object (R-STR-05, R-STR-06).
    pub any_structured_content: bool,
    /// Whether tools may have `annotations`, and audio content exists.
    pub annotations: bool,
    /// Whether HTTP requests name the revision in a header (R-HTP-13).
    pub version_header: bool,
    /// Whether an answer sent as an event stream begins with an event id to resume from (R-SSE-06).
    pub primes_streams: bool,
    /// Whether named objects may have `icons`.
    pub icons: bool,
    /// Whether `message` may stand in a progress notification.
    pub progress_message: bool,
    /// Whether `completions` is a capability.
    pub completions: bool,
    /// Whether the server may ask the user for input (elicitation).
    pub elicitation: bool,
    /// Whether elicitation has modes (form and URL).
    pub elicitation_modes: bool,
    /// Whether an elicitation by URL has an id.
    pub elicitation_ids: bool,
    /// Whether sampling supports tools, and several content blocks in a message.
    pub sampling_tools: bool,
    /// Whether a completion request may carry the other arguments as `context`.
    pub completion_context: bool,
    /// The form of tasks that the revision has.
    pub tasks: Option<TaskForm>,
}

/// Each revision states what differs from the one before.
const RULES: [Rules; Revision::COUNT] = {
    const V2024_11_05: Rules = Rules {
        name: "2024-11-05",
        era: Era::Handshake,
        batches: false,
        unreadable_id: UnreadableId::Null,
        bad_arguments_is_tool_error: false,
        result_type: false,
        cache_hints: false,
        structured_content: false,
        resource_links: false,
        any_structured_content: false,
        annotations: false,
        version_header: false,
        primes_streams: false,
        icons: false,
        progress_message: false,
        completions: false,
        completion_context: false,
        elicitation: false,
        elicitation_modes: false,
        elicitation_ids: false,
        sampling_tools: false,
        tasks: None,
    };
    const V2025_03_26: Rules = Rules {
        name: "2025-03-26",
        batches: true,
        annotations: true,
        progress_message: true,
        completions: true,
        ..V2024_11_05
    };
    const V2025_06_18: Rules = Rules {
        name: "2025-06-18",
        batches: false,
        structured_content: true,
        resource_links: true,
        version_header: true,
        completion_context: true,
        elicitation: true,
        ..V2025_03_26
    };
    const V2025_11_25: Rules = Rules {
        name: "2025-11-25",
        unreadable_id: UnreadableId::Omitted,
        bad_arguments_is_tool_error: true,
        primes_streams: true,
        icons: true,
        elicitation_modes: true,
        elicitation_ids: true,
        sampling_tools: true,
        tasks: Some(TaskForm::Core),
        ..V2025_06_18
    };
    const V2026_07_28: Rules = Rules {
        name: "2026-07-28",
        era: Era::Stateless,
        result_type: true,
        cache_hints: true,
        any_structured_content: true,
        primes_streams: false,
        elicitation_ids: false,
        tasks: Some(TaskForm::Extension),
        ..V2025_11_25
    };
    [
        V2024_11_05,
        V2025_03_26,
        V2025_06_18,
        V2025_11_25,
        V2026_07_28,
    ]
};

impl Revision {
    /// Number of revisions.
    pub const COUNT: usize = 5;

    /// The newest revision.
    pub const NEWEST: Self = Self::ALL[Self::COUNT - 1];

    /// The newest revision that opens with `initialize`.
    pub const NEWEST_HANDSHAKE: Self = Self::V2025_11_25;

    /// Every revision, oldest first.
    pub const ALL: [Self; Self::COUNT] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The properties of this revision.
    pub fn rules(self) -> &'static Rules {
        &RULES[self as usize]
    }

    /// The version string on the wire.
    pub fn name(self) -> &'static str {
        self.rules().name
    }

    /// How a peer of this revision opens.
    pub fn era(self) -> Era {
        self.rules().era
    }

    /// The revision with that version string; `None` when there is no such revision.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.name() == name)
    }

    pub(crate) fn from_index(index: u8) -> Option<Self> {
        Self::ALL.get(index as usize).copied()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(name: &str) -> Result<Self, UnknownRevision> {
        Self::parse(name).ok_or(UnknownRevision)
    }
}

/// The version string names no published revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRevision;

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a protocol revision; known are {}", Revisions::ALL)
    }
}

impl std::error::Error for UnknownRevision {}

/// A set of revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisions(u8);

impl Revisions {
    /// Every revision.
    pub const ALL: Self = Self((1 << Revision::COUNT) - 1);

    /// The set of one revision.
    pub fn only(revision: Revision) -> Self {
        Self(1 << revision as u8)
    }

    /// The set of the revisions with those version strings.
    ///
    /// # Errors
    /// Returns the first string that names no revision, or `""` when there are no strings.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        let mut all = Self(0);
        for name in names {
            all = all.with(Revision::parse(name).ok_or(name)?);
        }
        match all {
            Self(0) => Err(""),
            all => Ok(all),
        }
    }

    /// This set with `revision` added.
    #[must_use]
    pub fn with(self, revision: Revision) -> Self {
        Self(self.0 | 1 << revision as u8)
    }

    /// Whether the set contains `revision`.
    pub fn contains(self, revision: Revision) -> bool {
        self.0 & 1 << revision as u8 != 0
    }

    /// The revisions in the set, newest first: the order of preference and announcement.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL
            .into_iter()
            .rev()
            .filter(move |revision| self.contains(*revision))
    }

    /// The newest revision of an era in the set.
    pub fn newest(self, era: Era) -> Option<Revision> {
        self.iter().find(|revision| revision.era() == era)
    }

    /// The members as a JSON array of version strings, newest first.
    pub fn to_json(self) -> String {
        let names: Vec<_> = self
            .iter()
            .map(|revision| format!("\"{revision}\""))
            .collect();
        format!("[{}]", names.join(","))
    }
}

impl FromIterator<Revision> for Revisions {
    fn from_iter<I: IntoIterator<Item = Revision>>(revisions: I) -> Self {
        revisions.into_iter().fold(Self(0), Self::with)
    }
}

impl fmt::Display for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, revision) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            f.write_str(revision.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_is_found_by_its_name() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.name()), Some(revision));
            assert_eq!(Revision::from_index(revision as u8), Some(revision));
        }
        assert_eq!(Revision::parse("2024-10-07"), None);
    }

    #[test]
    fn sets_list_the_newest_first() {
        let set: Revisions = [Revision::V2024_11_05, Revision::V2025_11_25]
            .into_iter()
            .collect();
        assert_eq!(set.to_json(), r#"["2025-11-25","2024-11-05"]"#);
        assert_eq!(set.newest(Era::Handshake), Some(Revision::V2025_11_25));
        assert_eq!(set.newest(Era::Stateless), None);
    }
}
