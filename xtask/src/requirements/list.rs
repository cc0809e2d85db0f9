//! The list of requirements, and the reasons for which some have no test.

use std::collections::BTreeMap;

use super::ids::{self, Id};

/// How binding a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// MUST
    M,
    /// SHOULD
    S,
    /// MAY
    O,
    /// Not decided by the specification
    D,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::M, Self::S, Self::O, Self::D];
}

/// One row of the list.
pub struct Row {
    pub id: Id,
    pub level: Level,
    /// The heading it stands under, for example `B.4 Tools`.
    pub section: String,
    pub text: String,
}

/// The rows of a document: `| R-CMP-01 | M | S | all | … |` under headings `## B.11 …`.
pub fn rows(document: &str) -> Vec<Row> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for line in document.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.to_owned();
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, id, level, _, _, text @ ..] = &*cells else {
            continue;
        };
        let level = Level::ALL
            .into_iter()
            .find(|known| format!("{known:?}") == *level);
        if let (Some((id, "")), Some(level)) = (Id::read(id), level) {
            rows.push(Row {
                id,
                level,
                section: section.clone(),
                text: text.join("|"),
            });
        }
    }
    rows
}

/// Lines of `R-CMP-04, R-CMP-06 to R-CMP-08: why`; a whole group is named without a number.
pub fn reasons(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| line.starts_with("R-"));
    let mut reasons = BTreeMap::new();
    for (names, why) in lines.filter_map(|line| line.split_once(": ")) {
        let mut keys: Vec<_> = ids::all(names).iter().map(Id::to_string).collect();
        let is_group = |name: &&str| name.len() == "R-CMP".len();
        keys.extend(names.split(", ").filter(is_group).map(str::to_owned));
        reasons.extend(keys.into_iter().map(|key| (key, why.to_owned())));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_their_heading() {
        let rows = rows("## B.1 X\n| id | lvl |\n| R-CMP-01 | S | B | all | Do `a|b`. |\n");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].level, &*rows[0].section), (Level::S, "B.1 X"));
        assert_eq!(rows[0].id.to_string(), "R-CMP-01");
    }

    #[test]
    fn a_reason_may_hold_for_several_rows() {
        let reasons = reasons("# why\nR-CMP-01, R-CMP-03 to R-CMP-04: a: b\nR-AUS, R-AUC: later\n");
        let keys: Vec<_> = reasons.keys().map(String::as_str).collect();
        assert_eq!(keys, ["R-AUC", "R-AUS", "R-CMP-01", "R-CMP-03", "R-CMP-04"]);
        assert_eq!(reasons["R-CMP-03"], "a: b");
    }
}
