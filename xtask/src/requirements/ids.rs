//! Requirement ids, and how to find them in texts.

use std::fmt;

/// One id: `R-CMP-03`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// `R-CMP`.
    pub group: String,
    pub number: u8,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.group, self.number)
    }
}

impl Id {
    /// The id that `text` begins with, and the rest of `text`.
    pub fn read(text: &str) -> Option<(Self, &str)> {
        let name = text.strip_prefix("R-")?;
        let (area, rest) = name.split_at_checked(3)?;
        let digits = rest.strip_prefix('-')?;
        let (digits, rest) = digits.split_at_checked(2)?;
        let is_area = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        if !area.bytes().all(is_area) || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let group = format!("R-{area}");
        let number = digits.parse().ok()?;
        Some((Self { group, number }, rest))
    }
}

/// Every id in `text`; `R-CMP-01 to R-CMP-03` stands for three.
pub fn all(text: &str) -> Vec<Id> {
    let mut ids: Vec<Id> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("R-") {
        let Some((id, after)) = Id::read(&rest[at..]) else {
            rest = &rest[at + 2..];
            continue;
        };
        let between = rest[..at].trim_matches(|c: char| c.is_whitespace() || "/#*".contains(c));
        if let Some(first) = ids
            .last()
            .filter(|last| between == "to" && last.group == id.group)
        {
            let group = first.group.clone();
            let inner = first.number + 1..id.number;
            ids.extend(inner.map(|number| Id {
                group: group.clone(),
                number,
            }));
        }
        ids.push(id);
        rest = after;
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_ranges_filled() {
        let found = |text| all(text).iter().map(Id::to_string).collect::<Vec<_>>();
        assert_eq!(
            found("/// R-CMP-01 to\n/// R-CMP-03, R-TSK-20; R-B3X-01."),
            ["R-CMP-01", "R-CMP-02", "R-CMP-03", "R-TSK-20", "R-B3X-01"]
        );
        assert_eq!(found("R-CMP-1 R-cmp-01 R-CMP-012 R-"), [""; 0]);
        assert_eq!(found("R-CMP-01 to R-TSK-03"), ["R-CMP-01", "R-TSK-03"]);
    }
}
