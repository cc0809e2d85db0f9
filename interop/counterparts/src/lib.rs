//! Counts lines of code, for the table in README.md.

/// Counts the lines of a Rust source, without its unit tests, that are neither blank nor comments. Documentation
/// of items counts if `with_documentation`: here clients read it, as they read `description = "…"` in rmcp.
pub fn code_lines(source: &str, with_documentation: bool) -> usize {
    let lines = source.lines().map(str::trim_start);
    let lines = lines.take_while(|line| !line.starts_with("#[cfg(test)]"));
    let is_code = |line: &&str| match line.starts_with("///") {
        true => with_documentation,
        false => !line.is_empty() && !line.starts_with("//"),
    };
    lines.filter(is_code).count()
}
