//! `cargo xtask requirements`: what the protocol demands and which tests show that it is met.
//!
//! The list of demands is not part of the repository; the tests are, and name the rows they show.

mod ids;
mod list;
mod tests;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result};

use self::ids::Id;
use self::list::{Level, Row};
use crate::repo;

/// Show which requirements of the protocol have a test, and why the others have none
///
/// Reads the list in $MCPBOLT_SHARED (default: `shared` beside the repository), the numbers that
/// the tests of all languages name, and the reasons of xtask/requirements.txt. Fails on a row that
/// has neither test nor reason, on a number that is not in the list and on a reason that is not
/// needed any more.
#[derive(clap::Args)]
pub struct Args {
    /// Show only the groups whose number begins like this, for example B or B.4
    #[arg(long, default_value = "")]
    section: String,
    /// Name the tests of each row, too
    #[arg(long)]
    covered: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let path = match std::env::var_os("MCPBOLT_SHARED") {
        Some(folder) => std::path::PathBuf::from(folder),
        None => repo::root().join("../shared"),
    }
    .join("spec/requirements.md");
    if !path.exists() {
        println!("SKIPPED: {} is not here", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
    };
    let report = Report {
        rows: list::rows(&read(&path)?),
        tests: tests::by_requirement()?,
        reasons: list::reasons(&read(&repo::root().join("xtask/requirements.txt"))?),
    };
    report.print(args);
    let problems = report.problems();
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

struct Report {
    rows: Vec<Row>,
    tests: BTreeMap<Id, Vec<String>>,
    /// By id, or by the group that an id begins with.
    reasons: BTreeMap<String, String>,
}

/// Rows with a test, and all of them.
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
    fn is_covered(&self, row: &Row) -> bool {
        self.tests.contains_key(&row.id)
    }

    fn reason(&self, id: &Id) -> Option<&str> {
        let own = self.reasons.get(&id.to_string());
        own.or_else(|| self.reasons.get(&id.group))
            .map(String::as_str)
    }

    fn print(&self, args: &Args) {
        let mut sums: BTreeMap<char, [Count; 4]> = BTreeMap::new();
        let mut groups: Vec<&str> = self.rows.iter().map(|row| &*row.section).collect();
        groups.dedup();
        for group in groups {
            let rows: Vec<_> = self.rows.iter().filter(|r| r.section == group).collect();
            let mut counts = [Count::default(); 4];
            for row in &rows {
                let covered = usize::from(self.is_covered(row));
                counts[row.level as usize] += Count(covered, 1);
            }
            let letter = group.chars().next().unwrap_or('?');
            let sum = sums.entry(letter).or_default();
            sum.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
            if !group.starts_with(&*args.section) {
                continue;
            }
            println!("\n{group}: {}", line(&counts));
            for row in rows {
                match self.tests.get(&row.id) {
                    Some(tests) if args.covered => {
                        println!("  {} {:?}  {}", row.id, row.level, tests.join(", "));
                    }
                    Some(_) => {}
                    None => {
                        let why = self.reason(&row.id).unwrap_or("NO TEST AND NO REASON");
                        println!("  {} {:?}  {why}", row.id, row.level);
                    }
                }
            }
        }
        println!("\nrows with a test, of all rows:");
        let mut all = [Count::default(); 4];
        for (letter, counts) in &sums {
            println!("  {letter}    {}", line(counts));
            all.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += *count);
        }
        println!("  all  {}", line(&all));
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let known = |id: &Id| self.rows.iter().any(|row| row.id == *id);
        for (id, tests) in self.tests.iter().filter(|(id, _)| !known(id)) {
            let tests = tests.join(", ");
            problems.push(format!("error: {id} is in no list, but named in {tests}"));
        }
        for row in &self.rows {
            let covered = self.is_covered(row);
            if !covered && self.reason(&row.id).is_none() {
                problems.push(format!("error: {} has no test: {}", row.id, row.text));
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
        .map(|(level, count)| format!("{level:?} {count:7}"))
        .collect();
    words.join(" ").trim_end().to_owned()
}
