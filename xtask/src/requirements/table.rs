//! The page of requirements: its rows, and the reasons why some have no test.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::ids::Id;

/// The state of a row that has a test.
pub const TESTED: &str = "tested";

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

/// One requirement.
#[derive(Debug)]
pub struct Row {
    pub id: Id,
    pub level: Level,
    pub text: String,
    /// [`TESTED`], or the name of a reason.
    pub state: String,
}

/// A reason for having no test.
#[derive(Debug)]
pub struct Reason {
    pub why: String,
    /// A text and a path: the reason holds while no file there contains the text.
    pub absent: Option<(String, String)>,
}

#[derive(Debug, Default)]
pub struct Table {
    pub rows: Vec<Row>,
    /// By the state that names them.
    pub reasons: BTreeMap<String, Reason>,
}

impl Table {
    /// Reads the tables of a page: rows such as `| R-CMP-01 | MUST | source | demand | state |`, and reasons
    /// such as ``| state | why | `text` is not in `path` |``.
    ///
    /// # Errors
    ///
    /// A line of a table is none of these, or repeats an id.
    pub fn read(page: &str) -> Result<Self> {
        let mut table = Self::default();
        for line in page.lines().filter(|line| line.starts_with('|')) {
            table
                .add(line)
                .with_context(|| format!("not a row of requirements: {line}"))?;
        }
        Ok(table)
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let inner = line
            .strip_prefix('|')
            .and_then(|rest| rest.strip_suffix('|'));
        let cells: Vec<&str> = inner.unwrap_or("").split('|').map(str::trim).collect();
        match *cells {
            ["id" | "state", ..] => {}
            [rule, ..] if rule.starts_with("---") => {}
            [id, level, _source, text, state] => {
                let row = row(id, level, text, state).context("a bad id or level")?;
                if self.rows.iter().any(|known| known.id == row.id) {
                    bail!("{} stands twice", row.id);
                }
                self.rows.push(row);
            }
            [state, why, holds] => {
                let absent = absent(holds)?;
                let why = why.to_owned();
                self.reasons
                    .insert(state.to_owned(), Reason { why, absent });
            }
            _ => bail!("{} cells", cells.len()),
        }
        Ok(())
    }

    /// Whether the page has this id.
    pub fn has(&self, id: &Id) -> bool {
        self.rows.iter().any(|row| row.id == *id)
    }
}

fn row(id: &str, level: &str, text: &str, state: &str) -> Option<Row> {
    let level = Level::ALL.into_iter().find(|known| known.name() == level)?;
    let (id, "") = Id::read(id)? else {
        return None;
    };
    let (text, state) = (text.to_owned(), state.to_owned());
    Some(Row {
        id,
        level,
        text,
        state,
    })
}

/// The text and the path in a cell such as `` `text` is not in `path` ``; `None` for an empty cell.
fn absent(cell: &str) -> Result<Option<(String, String)>> {
    if cell.is_empty() {
        return Ok(None);
    }
    let inner = cell
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    let (text, path) = inner
        .and_then(|inner| inner.split_once("` is not in `"))
        .with_context(|| format!("no condition: {cell}"))?;
    Ok(Some((text.to_owned(), path.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_reasons_are_read_and_anything_else_is_an_error() -> Result<()> {
        let row = "| R-CMP-01 | SHOULD | all basic | Do `a`. | tested |";
        let page = format!(
            "# Page\n\n| state | why | holds while |\n|---|---|---|\n| none | Not yet. | `b c` is not in `core/src` |\n\
             | never | Of others. | |\n\n| id | level | source | demand | state |\n|---|---|---|---|---|\n{row}\n"
        );
        let table = Table::read(&page)?;
        let [only] = &table.rows[..] else {
            panic!("{table:?}")
        };
        assert_eq!(
            (only.level, &*only.text, &*only.state),
            (Level::Should, "Do `a`.", "tested")
        );
        assert_eq!(only.id.to_string(), "R-CMP-01");
        let absent = table.reasons["none"].absent.as_ref();
        assert_eq!(absent, Some(&("b c".to_owned(), "core/src".to_owned())));
        assert!(table.reasons["never"].absent.is_none());
        for bad in [
            &format!("{row}\n{row}"),
            "| R-CMP-01 | all basic | Do. | tested |",
            "| R-CMP-01 | MIGHT | all basic | Do. | tested |",
            "| R-CMP-1 | MUST | all basic | Do. | tested |",
            "| none | Not yet. | while the sun shines |",
            "| R-CMP-01 | MUST | all basic | Do. | tested",
        ] {
            assert!(Table::read(bad).is_err(), "{bad}");
        }
        Ok(())
    }
}
