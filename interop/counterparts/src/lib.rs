//! Counts lines of code, for the table of README.md.

/// The lines of a Rust source that are neither blank nor comments. Documentation counts if
/// `with_documentation`: in mcpbolt it is what clients read, as `description = "…"` is in rmcp.
pub fn code_lines(source: &str, with_documentation: bool) -> usize {
    let lines = source.lines().map(str::trim_start);
    lines
        .filter(|line| match line.starts_with("///") {
            true => with_documentation,
            false => !line.is_empty() && !line.starts_with("//"),
        })
        .count()
}
