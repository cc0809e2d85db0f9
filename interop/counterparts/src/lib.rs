//! Counts lines of code, for the table in README.md.

/// Counts the lines of a Rust source, without its unit tests, that are neither blank nor comments. The
/// documentation of an item counts: here clients read it, as they read `description = "…"` in rmcp.
pub fn code_lines(source: &str) -> usize {
    let lines = source.lines().map(str::trim_start);
    let lines = lines.take_while(|line| !line.starts_with("#[cfg(test)]"));
    let is_code =
        |line: &&str| !line.is_empty() && (!line.starts_with("//") || is_documentation(line));
    lines.filter(is_code).count()
}

fn is_documentation(line: &str) -> bool {
    line.starts_with("///")
}
