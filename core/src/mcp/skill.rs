//! Skills: folders of instructions for models, served as files at URIs. The rules that both sides
//! apply.

use serde_json::{Map, Value};

/// The file that every skill has at its root.
pub const MANIFEST: &str = "SKILL.md";

/// The frontmatter of a manifest: the YAML between its first two lines of `---`, as JSON.
pub fn frontmatter(text: &str) -> Option<Map<String, Value>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    (lines.next()?.trim_end_matches(['\r', '\n']) == "---").then_some(())?;
    let mut yaml = String::new();
    for line in lines {
        if line.trim_end() == "---" {
            let value: Value = serde_saphyr::from_str(&yaml).ok()?;
            return match value {
                Value::Object(members) => Some(members),
                _ => None,
            };
        }
        yaml.push_str(line);
    }
    None
}

/// Whether `name` is a valid skill name: 1 to 64 lower-case ASCII letters, digits and hyphens, with
/// no hyphen at either end or beside another.
#[cfg(feature = "server")]
pub fn is_name(name: &str) -> bool {
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let ends = !name.starts_with('-') && !name.ends_with('-') && !name.contains("--");
    (1..=64).contains(&name.len()) && ends && name.bytes().all(known)
}

/// The URI of a skill's folder, from the URI of its manifest.
pub fn folder(manifest: &str) -> Option<&str> {
    manifest.strip_suffix(MANIFEST)?.strip_suffix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_is_yaml_between_two_lines() {
        let text = "---\r\nname: pdf\ndescription: >\n  Two\n  lines\nmetadata:\n  a: [1, \"b\"]\n---\nBody\n---\n";
        let found = Value::Object(frontmatter(text).unwrap());
        let expected = serde_json::json!({
            "name": "pdf", "description": "Two lines\n", "metadata": {"a": [1, "b"]}
        });
        assert_eq!(found, expected);
        for bad in [
            "",
            "name: x",
            "---\nname: x",
            "---\n- a\n---\n",
            "---\na: [\n---\n",
            " ---\na: 1\n---",
        ] {
            assert_eq!(frontmatter(bad), None, "{bad:?}");
        }
    }

    #[test]
    #[cfg(feature = "server")]
    fn names_are_plain() {
        assert!(is_name("pdf-processing") && is_name("a") && is_name(&"x".repeat(64)));
        for bad in ["", "-a", "a-", "a--b", "A", "a b", "a/b", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_eq!(folder("skill://a/b/SKILL.md"), Some("skill://a/b"));
        assert_eq!(folder("skill://a/b.md"), None);
    }
}
