//! Lists split into pages, each encoded once.

use crate::mcp::Method;

/// The result members of one list, one string per page.
pub(in crate::server) type Pages = Box<[Box<str>]>;

/// The list results of one revision.
#[derive(Debug)]
pub(in crate::server) struct Lists {
    pub tools: Pages,
    pub resources: Pages,
    pub templates: Pages,
    pub prompts: Pages,
}

impl Lists {
    /// The pages of the list that `method` asks for.
    pub fn of(&self, method: Method) -> &Pages {
        match method {
            Method::ListTools => &self.tools,
            Method::ListResources => &self.resources,
            Method::ListResourceTemplates => &self.templates,
            _ => &self.prompts,
        }
    }
}

/// The page size, and the members that each page carries besides its items.
pub(in crate::server) struct Paging<'a> {
    pub size: usize,
    pub hints: &'a str,
}

impl Paging<'_> {
    /// Encodes the pages of one list; an empty list has one page.
    pub fn of<T>(&self, key: &str, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) -> Pages {
        let count = items.len().div_ceil(self.size).max(1);
        let page = |number: usize| {
            let mut out = format!("\"{key}\":[").into_bytes();
            let items = items.iter().skip(number * self.size).take(self.size);
            for (i, item) in items.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, &mut out);
            }
            out.push(b']');
            if number + 1 < count {
                let next = format!(",\"nextCursor\":\"{}\"", cursor(number + 1));
                out.extend_from_slice(next.as_bytes());
            }
            out.extend_from_slice(self.hints.as_bytes());
            String::from_utf8(out).unwrap_or_default().into()
        };
        (0..count).map(page).collect()
    }
}

/// The cursor of the page with this number.
pub(in crate::server) fn cursor(number: usize) -> String {
    format!("page-{number}")
}

/// Returns the page that a raw `cursor` names; without a cursor the first (R-PAG-07).
pub(in crate::server) fn page<'a>(pages: &'a Pages, raw: Option<&str>) -> Option<&'a str> {
    let number = match raw {
        None | Some("null") => 0,
        Some(raw) => {
            let text = crate::json::reader::as_str(raw)?;
            let number = text.strip_prefix("page-")?.parse().ok()?;
            // Each page has exactly one valid cursor, and the first page has none (R-PAG-06).
            (number > 0 && cursor(number) == text).then_some(number)?
        }
    };
    pages.get(number).map(|page| &**page)
}
