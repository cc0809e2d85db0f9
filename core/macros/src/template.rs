//! The variables of a URI template (RFC 6570). The template itself is checked when it is registered.

/// The names of the variables of a template, in order.
pub fn variables(template: &str) -> Vec<String> {
    let expressions = template.split('{').skip(1);
    let expressions = expressions.filter_map(|rest| rest.split_once('}'));
    let names = expressions.flat_map(|(expression, _)| {
        let list = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        list.split(',')
    });
    let bare = names.map(|name| name.split([':', '*']).next().unwrap_or_default());
    bare.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn variables_are_named_in_every_form_of_expression() {
        assert_eq!(variables("memo://{id}"), ["id"]);
        assert_eq!(
            variables("docs://{+path}{?page,lang}"),
            ["path", "page", "lang"]
        );
        assert_eq!(variables("a:{b:3}/{c*}"), ["b", "c"]);
        assert!(variables("config://app").is_empty());
    }
}
