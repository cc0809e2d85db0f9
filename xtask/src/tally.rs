//! Counts of tests, read from what the test runners of three languages print.

use std::ops::AddAssign;

/// How many tests passed, failed, or were not run for a stated reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Tally {
    pub fn total(self) -> u64 {
        self.passed + self.failed + self.skipped
    }

    /// Adds the counts in one line of output: cargo's `test result:`, pytest's and our own
    /// `N passed, N failed`, node's `# pass N`. A test that cannot run here prints a line
    /// `SKIPPED: why`; a runner that does not support skipping counts it as passed.
    pub fn read(&mut self, line: &str) {
        if line.starts_with("SKIPPED: ") {
            self.skipped += 1;
            return;
        }
        let words: Vec<&str> = line
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        // One word may stand before the counts: `interop: 57 passed, 0 failed`.
        let named = line
            .split_once(": ")
            .is_some_and(|(name, _)| !name.contains(' '));
        let words = if named && words.len() > 2 {
            &words[1..]
        } else {
            &words[..]
        };
        let (counts, before) = match words {
            ["test", "result", _, counts @ ..] => (counts, true),
            // Python's unittest, which reports failures by its exit status.
            ["Ran", n, "tests", "in", ..] => {
                self.passed += n.parse::<u64>().unwrap_or_default();
                return;
            }
            [n, "passed" | "failed" | "skipped", ..] if n.parse::<u64>().is_ok() => (words, true),
            ["pass" | "fail" | "skipped", n] if n.parse::<u64>().is_ok() => (words, false),
            _ => return,
        };
        for pair in counts.windows(2) {
            let (number, word) = if before {
                (pair[0], pair[1])
            } else {
                (pair[1], pair[0])
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" | "pass" => self.passed += number,
                "failed" | "fail" | "error" | "errors" => self.failed += number,
                "skipped" => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Subtracts the tests that announced themselves as skipped, because their runner counted them as passed.
    pub fn without_announced(mut self, announced: u64) -> Self {
        self.passed = self.passed.saturating_sub(announced);
        self
    }
}

/// Whether a line announces a skipped test. Such lines are shown even if the stage passes.
pub fn announces_skip(line: &str) -> bool {
    line.starts_with("SKIPPED") || line.contains(" # SKIP")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (u64, u64, u64) {
        let mut tally = Tally::default();
        for line in lines {
            tally.read(line);
        }
        (tally.passed, tally.failed, tally.skipped)
    }

    #[test]
    fn cargo_results_add_up_over_test_binaries() {
        let lines = [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s",
        ];
        assert_eq!(read(&lines), (7, 2, 0));
    }

    #[test]
    fn pytest_summary_is_read_with_and_without_rules() {
        assert_eq!(
            read(&["====== 12 passed, 3 skipped in 4.21s ======"]),
            (12, 0, 3)
        );
        assert_eq!(read(&["2 failed, 10 passed, 1 error in 0.10s"]), (10, 3, 0));
        assert_eq!(read(&["interop: 57 passed, 1 failed in 80 s"]), (57, 1, 0));
    }

    #[test]
    fn the_summary_of_unittest_is_read() {
        assert_eq!(read(&["Ran 7 tests in 0.345s", "OK"]), (7, 0, 0));
        assert_eq!(read(&["Ran for miles"]), (0, 0, 0));
    }

    #[test]
    fn node_summaries_are_read_from_both_reporters() {
        assert_eq!(
            read(&["# pass 5", "# fail 1", "# skipped 2", "# todo 0"]),
            (5, 1, 2)
        );
        assert_eq!(
            read(&["ℹ pass 9", "ℹ fail 0", "ℹ duration_ms 12"]),
            (9, 0, 0)
        );
    }

    #[test]
    fn prose_is_not_counted() {
        assert_eq!(
            read(&["the 3 passed tests", "pass the 5", "test x ... ok"]),
            (0, 0, 0)
        );
    }

    #[test]
    fn an_announced_skip_moves_a_test_from_passed_to_skipped() {
        let mut tally = Tally::default();
        tally.read("SKIPPED: the official schemas are not here");
        tally.read("test result: ok. 3 passed; 0 failed; 0 ignored");
        let tally = tally.without_announced(1);
        assert_eq!((tally.passed, tally.skipped), (2, 1));
    }
}
