//! `cargo xtask requirements`: the requirements of the protocol, and the tests for each.
//!
//! Each requirement is a row of a page; code, tests and documents cite its id.

mod cited;
mod ids;
mod passed;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

use self::ids::Id;
use self::passed::{Passed, STAGES};
use self::table::{Level, Row, TESTED, Table};
use crate::log::Log;
use crate::repo;

const PAGE: &str = "core/REQUIREMENTS.md";

/// Show which requirements of the protocol have a test that passed, and why the others have none
///
/// Compares core/REQUIREMENTS.md with the ids that files in all languages cite, and with the tests that passed
/// in the last run of `cargo xtask test`. Fails if a row that should be tested was not, if one was tested that
/// should not be, if a reason for having no test no longer holds, and on an id that is not on the page.
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
    let (passed, age) = passed()?;
    let tests = passed.by_id(&report.files);
    report.print(args, &tests);
    println!("the oldest results are {} minutes old", age.as_secs() / 60);
    let problems = report.problems(&tests)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

/// The stage of `cargo xtask test`: every requirement is in the state that the page says.
pub fn check(log: &mut Log) -> Result<()> {
    let report = Report::read()?;
    let tests = passed()?.0.by_id(&report.files);
    let problems = report.problems(&tests)?;
    for problem in &problems {
        log.line(problem)?;
    }
    ensure!(
        problems.is_empty(),
        "{} requirements are not as {PAGE} says",
        problems.len()
    );
    Ok(())
}

/// The tests that passed in the last run of each stage with tests, and the age of the oldest run.
fn passed() -> Result<(Passed, Duration)> {
    let mut passed = Passed::default();
    let mut oldest = SystemTime::now();
    let root = repo::root().to_string_lossy();
    for stage in STAGES {
        let path = repo::log(stage);
        let log =
            fs::read(&path).with_context(|| format!("no results of {stage}: cargo xtask test"))?;
        passed.read(&String::from_utf8_lossy(&log), &root);
        oldest = oldest.min(fs::metadata(&path)?.modified()?);
    }
    Ok((passed, oldest.elapsed().unwrap_or_default()))
}

/// The names of tests, or the paths of files, that name each id.
type Named = BTreeMap<Id, Vec<String>>;

struct Report {
    table: Table,
    /// The files that cite requirements, with their texts.
    files: Vec<(String, String)>,
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
        let page = fs::read_to_string(repo::root().join(PAGE)).context(PAGE)?;
        Ok(Self {
            table: Table::read(&page)?,
            files: cited::files()?,
        })
    }

    fn print(&self, args: &Args, tests: &Named) {
        let mut all = [Count::default(); 4];
        for rows in self.table.rows.chunk_by(|a, b| a.id.group == b.id.group) {
            let mut counts = [Count::default(); 4];
            for row in rows {
                let covered = usize::from(tests.contains_key(&row.id));
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
                match tests.get(&row.id) {
                    Some(tests) if args.covered => {
                        println!("  {} {level}  {}", row.id, tests.join(", "));
                    }
                    Some(_) => {}
                    None => println!("  {} {level}  {}", row.id, self.why(row)),
                }
            }
        }
        println!(
            "\nrows with a test that passed, of all rows: {}",
            line(&all)
        );
    }

    /// Why a row has no test.
    fn why<'a>(&'a self, row: &Row) -> &'a str {
        let reason = self.table.reasons.get(&row.state);
        reason.map_or("MISSING", |reason| &reason.why)
    }

    /// The faults of the page by itself, and those beside the tests that passed.
    fn problems(&self, tests: &Named) -> Result<Vec<String>> {
        let mut problems = self.unresolved()?;
        let cited = cited::by_id(&self.files);
        for Row {
            id, state, text, ..
        } in &self.table.rows
        {
            match (state == TESTED, tests.get(id)) {
                (true, None) => {
                    let files = cited
                        .get(id)
                        .map_or("no file".to_owned(), |files| files.join(", "));
                    problems.push(format!(
                        "error: {id}: no test that names it passed; {files} names it: {text}"
                    ));
                }
                (false, Some(tests)) => problems.push(format!(
                    "error: {id}: its state is \"{state}\", but a test passed: {}",
                    tests.join(", ")
                )),
                _ => {}
            }
        }
        Ok(problems)
    }

    /// Ids, states and reasons that lead nowhere.
    fn unresolved(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let Table { rows, reasons } = &self.table;
        for (id, files) in cited::by_id(&self.files) {
            if !self.table.has(&id) {
                let files = files.join(", ");
                problems.push(format!(
                    "error: {id} is not in {PAGE}, but {files} names it"
                ));
            }
        }
        for Row { id, state, .. } in rows {
            if state != TESTED && !reasons.contains_key(state) {
                problems.push(format!("error: {id}: {PAGE} has no reason \"{state}\""));
            }
        }
        for (state, reason) in reasons {
            if !rows.iter().any(|row| row.state == *state) {
                problems.push(format!("error: {PAGE}: no row has the state \"{state}\""));
            }
            let Some((text, path)) = &reason.absent else {
                continue;
            };
            if let Some(file) = cited::find(text, path)? {
                problems.push(format!(
                    "error: {PAGE}: \"{state}\" no longer holds: `{text}` is in {file}"
                ));
            }
        }
        Ok(problems)
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
mod tests {
    use super::*;

    const ROW: &str = "| R-CMP-01 | MUST | all basic | Do. | tested |";

    /// The problems of a page, with ids that a file names, and those that passed tests name.
    fn problems(page: &str, cited: &str, tests: &str) -> Result<Vec<String>> {
        let report = Report {
            table: Table::read(page)?,
            files: vec![("file".to_owned(), cited.to_owned())],
        };
        let tests = ids::all(tests).into_iter();
        report.problems(&tests.map(|id| (id, vec!["test".to_owned()])).collect())
    }

    #[test]
    fn a_row_is_tested_if_a_test_that_names_it_passed() -> Result<()> {
        let none: [&str; 0] = [];
        assert_eq!(problems(ROW, "R-CMP-01", "R-CMP-01")?, none);
        assert_eq!(
            problems(ROW, "R-CMP-01", "")?,
            ["error: R-CMP-01: no test that names it passed; file names it: Do."]
        );
        assert_eq!(
            problems(ROW, "R-CMP-02", "R-CMP-01")?,
            ["error: R-CMP-02 is not in core/REQUIREMENTS.md, but file names it"]
        );
        Ok(())
    }

    #[test]
    fn a_reason_holds_while_its_text_is_absent_and_no_test_passes() -> Result<()> {
        let page = |state: &str, absent: &str| {
            let row = ROW.replace("tested", state);
            format!("{row}\n| none | Not yet. | `{absent}` is not in `xtask/Cargo.toml` |")
        };
        let none: [&str; 0] = [];
        assert_eq!(problems(&page("none", "no such crate"), "", "")?, none);
        assert_eq!(
            problems(&page("none", "no such crate"), "", "R-CMP-01")?,
            [r#"error: R-CMP-01: its state is "none", but a test passed: test"#]
        );
        assert_eq!(
            problems(&page("none", "[dependencies]"), "", "")?,
            [
                r#"error: core/REQUIREMENTS.md: "none" no longer holds: `[dependencies]` is in xtask/Cargo.toml"#
            ]
        );
        assert_eq!(
            problems(&page("other", "no such crate"), "", "")?,
            [
                r#"error: R-CMP-01: core/REQUIREMENTS.md has no reason "other""#,
                r#"error: core/REQUIREMENTS.md: no row has the state "none""#
            ]
        );
        assert!(problems(&page("none", "x").replace("xtask/", "nowhere/"), "", "").is_err());
        Ok(())
    }

    #[test]
    fn every_id_of_the_repository_resolves() -> Result<()> {
        let problems = Report::read()?.unresolved()?;
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        Ok(())
    }
}
