//! Versions of the action dialect, and their negotiation.

use std::fmt;
use std::str::FromStr;

/// A semantic version: major, minor and optionally patch (R-ACT-37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Breaking changes.
    pub major: u32,
    /// New features.
    pub minor: u32,
    /// Corrections.
    pub patch: u32,
}

/// The supported versions in their spellings with two and with three numbers.
const SPELT: [(&str, &str); Version::SUPPORTED.len()] = [("1.0", "1.0.0")];

/// The newest supported version, with three numbers.
pub const NEWEST: &str = SPELT[SPELT.len() - 1].1;

impl Version {
    /// The supported versions, oldest first.
    pub const SUPPORTED: [Self; 1] = [Self::new(1, 0, 0)];

    /// The version with those numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// The version in the style of `like`: with two numbers, or with three (R-ACT-37). Always with
    /// three if the patch number is not zero.
    pub fn written_like(self, like: &str) -> String {
        match is_short(like) && self.patch == 0 {
            true => format!("{}.{}", self.major, self.minor),
            false => self.to_string(),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Whether `like` has only two numbers.
fn is_short(like: &str) -> bool {
    like.bytes().filter(|byte| *byte == b'.').count() < 2
}

impl FromStr for Version {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a version is MAJOR.MINOR or MAJOR.MINOR.PATCH";
        let number = |part: &[u8]| {
            let digit = |sum: u32, byte: &u8| {
                let digit = byte.wrapping_sub(b'0');
                let sum = sum.checked_mul(10)?.checked_add(digit.into())?;
                (digit <= 9).then_some(sum)
            };
            let sum = part.iter().try_fold(0, digit);
            sum.filter(|_| !part.is_empty()).ok_or(WRONG)
        };
        let mut parts = text.as_bytes().split(|byte| *byte == b'.');
        let mut next = || parts.next().map(number).transpose();
        let (Some(major), Some(minor), patch, None) = (next()?, next()?, next()?, next()?) else {
            return Err(WRONG);
        };
        Ok(Self::new(major, minor, patch.unwrap_or(0)))
    }
}

/// The newest of `supported` that a peer accepts: at most `newest` and at least `oldest`. Without
/// `oldest`, versions of the same major number are accepted, because their features only grow
/// (R-ACT-38).
pub fn negotiate(
    supported: &[Version],
    newest: Version,
    oldest: Option<Version>,
) -> Option<Version> {
    let oldest = oldest.unwrap_or(Version::new(newest.major, 0, 0));
    let fits = |version: &&Version| (oldest..=newest).contains(*version);
    supported.iter().filter(fits).max().copied()
}

/// The supported version that a raw token spells exactly, as most clients do.
#[inline]
pub fn known(token: &[u8]) -> Option<&'static str> {
    let inner = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let spellings = SPELT.iter().flat_map(|(short, long)| [*short, *long]);
    spellings.into_iter().find(|own| own.as_bytes() == inner)
}

/// The version to use with a peer that accepts versions from `oldest` up to `newest`, in the style
/// of `newest`; `None` if there is none.
///
/// # Errors
/// `newest` or `oldest` is not a version.
pub fn agree(newest: &str, oldest: Option<&str>) -> Result<Option<&'static str>, &'static str> {
    let like = |(short, long)| if is_short(newest) { short } else { long };
    let oldest = oldest.map(str::parse).transpose()?;
    let version = negotiate(&Version::SUPPORTED, newest.parse()?, oldest);
    let mut spelt = Version::SUPPORTED.iter().zip(SPELT);
    let found = version.and_then(|version| spelt.find(|(own, _)| **own == version));
    Ok(found.map(|(_, spelt)| like(spelt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_here_is_spelt_as_others_are() {
        for (version, (short, long)) in Version::SUPPORTED.into_iter().zip(SPELT) {
            assert_eq!(version.written_like("1.0"), short);
            assert_eq!(version.written_like("1.0.0"), long);
            for spelt in [short, long] {
                assert_eq!(agree(spelt, None), Ok(Some(spelt)));
            }
        }
        assert_eq!(Version::SUPPORTED.last().unwrap().to_string(), NEWEST);
        assert_eq!(known(br#""1.0""#), Some("1.0"));
        assert_eq!((known(b"1.0"), known(br#""1.1""#)), (None, None));
        assert_eq!(agree("99.0", None), Ok(None));
        assert!(agree("1", None).is_err() && agree("1.0", Some("x")).is_err());
    }

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    /// R-ACT-37: two parts or three, and nothing else.
    #[test]
    fn versions_are_read_and_written_in_the_form_they_came_in() {
        for text in ["2.0", "1.5", "1.0.0", "10.20.30"] {
            assert_eq!(version(text).written_like(text), text);
        }
        assert_eq!(version("1.0.0").written_like("2.0"), "1.0");
        assert_eq!(version("1.5.2").written_like("2.0"), "1.5.2");
        assert!(version("1.10.0") > version("1.9"));
        for text in [
            "",
            "1",
            "1.",
            "1.0.0.0",
            "v1.0",
            "1.0-rc",
            "+1.0",
            "1. 0",
            "4294967296.0",
        ] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }

    /// R-ACT-38: the document's own example, and its edges.
    #[test]
    fn the_highest_version_that_both_speak_is_chosen() {
        let own = [version("1.0"), version("1.5")];
        let chosen = |newest: &str, oldest: Option<&str>| {
            negotiate(&own, version(newest), oldest.map(version)).map(|it| it.written_like(newest))
        };
        for (newest, oldest, expected) in [
            ("2.0", Some("1.0"), Some("1.5")),
            ("1.5.0", None, Some("1.5.0")),
            ("1.4", None, Some("1.0")),
            ("1.9.9", None, Some("1.5.0")),
            ("2.0", None, None),
            ("0.9", None, None),
            ("2.0", Some("1.6"), None),
            ("1.0", Some("2.0"), None),
        ] {
            assert_eq!(
                chosen(newest, oldest).as_deref(),
                expected,
                "{newest} {oldest:?}"
            );
        }
    }
}
