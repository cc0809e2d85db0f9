//! `cargo xtask requirements`: the requirements of the protocol, and the tests for each.
//!
//! Each requirement is a line of a table; code, tests and documents cite its id.

mod ids;
mod list;
mod tests;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result};

use self::ids::Id;
use self::list::{Level, Row};
use self::tests::Cited;
use crate::repo;

const TABLE: &str = "corpus/requirements.txt";
const REASONS: &str = "xtask/requirements.txt";

/// Show which requirements of the protocol have a test, and why the others have none
///
/// Reads the table corpus/requirements.txt, the ids in files of all languages, and the reasons in
/// xtask/requirements.txt. Fails on a row with neither test nor reason, on an id that is not in
/// the table, and on a reason that is no longer needed.
#[derive(clap::Args)]
pub struct Args {
    /// Show only the groups that begin with this, for example R-TOL
    #[arg(long, default_value = "")]
    group: String,
    /// Also name the tests of each row
    #[arg(long)]
    covered: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let report = Report::read()?;
    report.print(args);
    let problems = report.problems();
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

struct Report {
    rows: Vec<Row>,
    cited: Cited,
    /// By id, or by group.
    reasons: BTreeMap<String, String>,
}

/// The number of rows with a test, and of all rows.
#[derive(Clone, Copy, Default)]
struct Count(usize, usize);

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        *self = Self(self.0 + other.0, self.1 + other.1);
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.0, self.1))
    }
}

impl Report {
    fn read() -> Result<Self> {
        let read = |path: &str| {
            std::fs::read_to_string(repo::root().join(path))
                .with_context(|| format!("reading {path}"))
        };
        Ok(Self {
            rows: list::rows(&read(TABLE)?)?,
            cited: tests::cited()?,
            reasons: list::reasons(&read(REASONS)?),
        })
    }

    fn is_covered(&self, row: &Row) -> bool {
        self.cited.tests.contains_key(&row.id)
    }

    fn reason(&self, id: &Id) -> Option<&str> {
        let own = self.reasons.get(&id.to_string());
        own.or_else(|| self.reasons.get(&id.group))
            .map(String::as_str)
    }

    fn print(&self, args: &Args) {
        let mut all = [Count::default(); 4];
        for rows in self.rows.chunk_by(|a, b| a.id.group == b.id.group) {
            let mut counts = [Count::default(); 4];
            for row in rows {
                let covered = usize::from(self.is_covered(row));
                counts[row.level as usize] += Count(covered, 1);
            }
            all.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
            let group = &*rows[0].id.group;
            if !group.starts_with(&*args.group) {
                continue;
            }
            println!("\n{group}: {}", line(&counts));
            for row in rows {
                let level = row.level.name();
                match self.cited.tests.get(&row.id) {
                    Some(tests) if args.covered => {
                        println!("  {} {level}  {}", row.id, tests.join(", "));
                    }
                    Some(_) => {}
                    None => {
                        let why = self.reason(&row.id).unwrap_or("NO TEST AND NO REASON");
                        println!("  {} {level}  {why}", row.id);
                    }
                }
            }
        }
        println!("\nrows with a test, of all rows: {}", line(&all));
        println!("ids named somewhere: {}", self.cited.anywhere.len());
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let known = |id: &str| self.rows.iter().any(|row| id == row.id.to_string());
        for (id, files) in &self.cited.anywhere {
            if !known(&id.to_string()) {
                let files = files.join(", ");
                problems.push(format!(
                    "error: {id} is not in {TABLE}, but named in {files}"
                ));
            }
        }
        for name in self.reasons.keys() {
            let is_group = self.rows.iter().any(|row| row.id.group == *name);
            if !is_group && !known(name) {
                problems.push(format!("error: {REASONS}: {name} is not in {TABLE}"));
            }
        }
        for row in &self.rows {
            let covered = self.is_covered(row);
            if !covered && self.reason(&row.id).is_none() {
                problems.push(format!(
                    "error: {} has no test and no reason: {}",
                    row.id, row.text
                ));
            }
            if covered && self.reasons.contains_key(&row.id.to_string()) {
                problems.push(format!("error: {} has a test and a reason", row.id));
            }
        }
        problems
    }
}

fn line(counts: &[Count; 4]) -> String {
    let levels = Level::ALL.iter().zip(counts);
    let words: Vec<_> = levels
        .filter(|(_, count)| count.1 > 0)
        .map(|(level, count)| format!("{} {count:7}", level.name()))
        .collect();
    words.join(" ").trim_end().to_owned()
}

#[cfg(test)]
mod check {
    use super::*;

    fn report(table: &str, cited: &str, tests: &str, reasons: &str) -> Result<Vec<String>> {
        let name = |text| -> BTreeMap<Id, Vec<String>> {
            let ids = ids::all(text).into_iter();
            ids.map(|id| (id, vec!["file".to_owned()])).collect()
        };
        let report = Report {
            rows: list::rows(table)?,
            cited: Cited {
                anywhere: name(cited),
                tests: name(tests),
            },
            reasons: list::reasons(reasons),
        };
        Ok(report.problems())
    }

    #[test]
    fn each_fault_of_the_table_is_told() -> Result<()> {
        let table = "R-CMP-01 | MUST | all basic | Do.";
        let none: [&str; 0] = [];
        assert_eq!(report(table, "R-CMP-01", "R-CMP-01", "")?, none);
        assert_eq!(report(table, "", "", "R-CMP: why")?, none);
        assert_eq!(
            report(table, "R-CMP-01 R-CMP-02", "R-CMP-01", "")?,
            ["error: R-CMP-02 is not in corpus/requirements.txt, but named in file"]
        );
        assert_eq!(
            report(table, "", "", "")?,
            ["error: R-CMP-01 has no test and no reason: Do."]
        );
        assert_eq!(
            report(table, "R-CMP-01", "R-CMP-01", "R-CMP-01: why")?,
            ["error: R-CMP-01 has a test and a reason"]
        );
        assert_eq!(
            report(table, "R-CMP-01", "R-CMP-01", "R-CMP-02: why")?,
            ["error: xtask/requirements.txt: R-CMP-02 is not in corpus/requirements.txt"]
        );
        Ok(())
    }

    #[test]
    fn every_id_of_the_repository_resolves() -> Result<()> {
        let problems = Report::read()?.problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        Ok(())
    }
}
