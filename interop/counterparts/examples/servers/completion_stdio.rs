//! Builds SQL queries by a prompt, and completes each argument from those that are filled in.

use mcpbolt::prelude::*;
use tracing_subscriber::EnvFilter;

const INSTRUCTIONS: &str =
    "Smart SQL query builder with progressive completion that adapts based on your choices:

Step 1: Choose operation type ('sel' → SELECT, 'ins' → INSERT, 'upd' → UPDATE, 'del' → DELETE)
Step 2: Specify table name ('users', 'orders', 'products')
Step 3: Add relevant fields based on operation type:
• SELECT/UPDATE: columns ('name', 'email', 'id')
• INSERT: values to insert
• All: optional WHERE clause

The completion adapts - only relevant fields appear based on your SQL operation!";

/// How well a candidate fits what was typed: the whole, its beginning, a part of it, the initials of its words,
/// or letters in this order.
fn score(typed: &str, candidate: &str) -> Option<u32> {
    let lower = candidate.to_lowercase();
    let initials = lower
        .split_whitespace()
        .flat_map(|word| word.chars().next());
    let mut rest = lower.chars();
    Some(if lower == typed {
        1000
    } else if lower.starts_with(typed) {
        900
    } else if lower.contains(typed) {
        800
    } else if initials.eq(typed.chars()) {
        700
    } else if typed
        .chars()
        .all(|wanted| rest.any(|letter| letter == wanted))
    {
        680
    } else {
        return None;
    })
}

/// The ten candidates that fit best, all if nothing was typed.
fn matches(typed: &str, candidates: &[&'static str]) -> Vec<&'static str> {
    let typed = typed.to_lowercase();
    let fitting = candidates
        .iter()
        .filter_map(|one| Some((score(&typed, one)?, *one)));
    let mut fitting: Vec<_> = fitting.collect();
    if !typed.is_empty() {
        fitting.sort_by_key(|(score, candidate)| (u32::MAX - score, *candidate));
    }
    fitting
        .into_iter()
        .map(|(_, candidate)| candidate)
        .take(10)
        .collect()
}

struct SqlQuery;

#[tools]
impl SqlQuery {
    /// Smart SQL query builder
    #[prompt]
    fn sql_query(
        /// SQL operation type (SELECT, INSERT, UPDATE, DELETE)
        operation: &str,
        /// Database table name
        table: &str,
        /// Columns to select/update (only for SELECT/UPDATE)
        columns: Option<&str>,
        /// WHERE clause condition (optional for all operations)
        where_clause: Option<&str>,
        /// Values to insert (only for INSERT)
        values: Option<&str>,
    ) -> PromptResult {
        let (question, answer) = if operation.is_empty() {
            (
                "I need help building a SQL query. Where should I start?".to_owned(),
                "I'll help you build a SQL query step by step. First, what type of operation do you want to perform? \
                 Choose from: SELECT (to read data), INSERT (to add data), UPDATE (to modify data), or DELETE (to remove data)."
                    .to_owned(),
            )
        } else if table.is_empty() {
            (
                format!("I want to {operation} data. What's next?"),
                format!(
                    "Great! For a {operation} operation, I need to know which table you want to work with. \
                     What's the name of your database table?"
                ),
            )
        } else {
            let columns = columns.filter(|columns| !columns.is_empty());
            let values = values.filter(|values| !values.is_empty());
            let condition = where_clause.map(|condition| format!(" WHERE {condition}"));
            let condition = condition.unwrap_or_default();
            let query = match operation.to_uppercase().as_str() {
                "SELECT" => format!("SELECT {} FROM {table}{condition}", columns.unwrap_or("*")),
                "INSERT" => match values {
                    Some(values) => format!("INSERT INTO {table} VALUES ({values})"),
                    None => format!("INSERT INTO {table} (...) VALUES (...)"),
                },
                "UPDATE" => format!("UPDATE {table} SET {}{condition}", columns.unwrap_or("...")),
                "DELETE" => format!("DELETE FROM {table}{condition}"),
                _ => format!("{operation} FROM {table}"),
            };
            let verb = operation.to_lowercase();
            (
                "Generate the SQL query based on my parameters and explain what it does."
                    .to_owned(),
                format!(
                    "Here's your SQL query:\n\n```sql\n{query}\n```\n\nThis query will {verb} the {table} table."
                ),
            )
        };
        let operation = Some(operation).filter(|name| !name.is_empty());
        let table = Some(table).filter(|name| !name.is_empty());
        let (operation, table) = (operation.unwrap_or("Unknown"), table.unwrap_or("table"));
        PromptResult::new([Role::User.says(question), Role::Assistant.says(answer)])
            .description(format!("SQL Query: {operation} on {table}"))
    }

    #[completion(sql_query, operation)]
    fn operations(value: &str) -> Vec<&'static str> {
        matches(value, &["SELECT", "INSERT", "UPDATE", "DELETE"])
    }

    #[completion(sql_query, table)]
    fn tables(value: &str) -> Vec<&'static str> {
        matches(
            value,
            &["users", "orders", "products", "categories", "reviews"],
        )
    }

    #[completion(sql_query, columns)]
    fn columns(value: &str, operation: Option<&str>) -> Vec<&'static str> {
        let all = ["id", "name", "email", "created_at", "updated_at", "*"];
        match operation.map(str::to_uppercase).as_deref() {
            Some("SELECT" | "UPDATE") => matches(value, &all),
            Some(_) => matches(value, &["Not applicable for this operation"]),
            None => matches(value, &["Choose operation first"]),
        }
    }

    #[completion(sql_query, values)]
    fn values(value: &str, operation: Option<&str>) -> Vec<&'static str> {
        let all = ["'John Doe'", "'jane@example.com'", "123", "NOW()"];
        match operation.map(str::to_uppercase).as_deref() {
            Some("INSERT") => matches(value, &all),
            Some(_) => matches(value, &["Not applicable for this operation"]),
            None => matches(value, &["Choose operation first"]),
        }
    }

    #[completion(sql_query, where_clause)]
    fn conditions(value: &str, operation: Option<&str>, table: Option<&str>) -> Vec<&'static str> {
        let all = [
            "id = 1",
            "name = 'example'",
            "created_at > '2023-01-01'",
            "status = 'active'",
        ];
        match operation.and(table) {
            Some(_) => matches(value, &all),
            None => matches(value, &["Complete operation and table first"]),
        }
    }
}

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let server = Server::builder("sql-query", "1.0.0").instructions(INSTRUCTIONS);
    Ok(server.with(SqlQuery).build()?.run()?)
}
