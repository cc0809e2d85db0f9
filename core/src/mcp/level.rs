//! Severities of log messages (RFC 5424, section 6.2.1), least severe first.

macro_rules! levels {
    ($($variant:ident $name:literal,)*) => {
        /// How severe a log message is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum LogLevel { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl LogLevel {
            /// Every level, least severe first.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

levels! {
    Debug "debug",
    Info "info",
    Notice "notice",
    Warning "warning",
    Error "error",
    Critical "critical",
    Alert "alert",
    Emergency "emergency",
}

impl LogLevel {
    /// The level with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.name() == name)
    }

    pub(crate) fn from_index(index: u8) -> Self {
        Self::ALL
            .get(index as usize)
            .copied()
            .unwrap_or(Self::Emergency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_found_by_name() {
        assert!(LogLevel::Debug < LogLevel::Emergency);
        for (index, level) in LogLevel::ALL.iter().enumerate() {
            assert_eq!(LogLevel::parse(level.name()), Some(*level));
            assert_eq!(LogLevel::from_index(index as u8), *level);
        }
        assert_eq!(LogLevel::parse("trace"), None);
    }
}
