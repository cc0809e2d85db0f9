//! The table of requirements, and the reasons why some have no test.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::ids::{self, Id};

/// How binding a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Must,
    Should,
    May,
    /// Not decided by the specification
    Open,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::Must, Self::Should, Self::May, Self::Open];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
            Self::Open => "OPEN",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    pub id: Id,
    pub level: Level,
    pub text: String,
}

/// The rows of a table: lines of `R-CMP-01 | MUST | source | what is demanded`.
///
/// # Errors
///
/// A line is neither a row, a comment (`#`) nor empty, or repeats an id.
pub fn rows(table: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let lines = table.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let row = row(line).with_context(|| format!("not a row: {line}"))?;
        if rows.iter().any(|known| known.id == row.id) {
            bail!("{} stands twice in the table", row.id);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split(" | ").collect();
    let [id, level, _source, text] = *cells else {
        return None;
    };
    let level = Level::ALL.into_iter().find(|known| known.name() == level)?;
    let (id, "") = Id::read(id)? else {
        return None;
    };
    let text = text.to_owned();
    Some(Row { id, level, text })
}

/// The reasons, from lines such as `R-CMP-04, R-CMP-06 to R-CMP-08: why`; a name without a number stands
/// for a whole group.
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
    fn rows_are_read_and_anything_else_is_an_error() -> Result<()> {
        let row = "R-CMP-01 | SHOULD | all basic | Do `a`.";
        let rows_of = rows(&format!("# head\n\n{row}\n"))?;
        assert_eq!(rows_of.len(), 1);
        assert_eq!(
            (rows_of[0].level, &*rows_of[0].text),
            (Level::Should, "Do `a`.")
        );
        assert_eq!(rows_of[0].id.to_string(), "R-CMP-01");
        for bad in [
            &format!("{row}\n{row}"),
            "R-CMP-01 | all basic | Do.",
            "R-CMP-01 | MIGHT | all basic | Do.",
            "R-CMP-1 | MUST | all basic | Do.",
        ] {
            assert!(rows(bad).is_err(), "{bad}");
        }
        Ok(())
    }

    #[test]
    fn a_reason_may_hold_for_several_rows() {
        let reasons = reasons("# why\nR-CMP-01, R-CMP-03 to R-CMP-04: a: b\nR-AUS, R-AUC: later\n");
        let keys: Vec<_> = reasons.keys().map(String::as_str).collect();
        assert_eq!(keys, ["R-AUC", "R-AUS", "R-CMP-01", "R-CMP-03", "R-CMP-04"]);
        assert_eq!(reasons["R-CMP-03"], "a: b");
    }
}
