//! Lists cut into pages, encoded once.

/// The members of one list's results, a page each.
pub(in crate::server) type Pages = Box<[Box<str>]>;

/// How lists are cut and what each page carries beside its items.
pub(in crate::server) struct Paging<'a> {
    pub size: usize,
    pub hints: &'a str,
}

impl Paging<'_> {
    /// The pages of one list; an empty list has one, too.
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

/// The cursor of a page.
pub(in crate::server) fn cursor(number: usize) -> String {
    format!("page-{number}")
}

/// The page that a request asks for, by its raw `cursor`; the first without one (R-PAG-07).
pub(in crate::server) fn page<'a>(pages: &'a Pages, raw: Option<&str>) -> Option<&'a str> {
    let number = match raw {
        None | Some("null") => 0,
        Some(raw) => {
            let text = crate::json::reader::as_str(raw)?;
            let number = text.strip_prefix("page-")?.parse().ok()?;
            // One spelling for each page, and none for the first (R-PAG-06).
            (number > 0 && cursor(number) == text).then_some(number)?
        }
    };
    pages.get(number).map(|page| &**page)
}
