//! A tool that queries SQLite through sqlx, with progress; a cancelled call drops its query.

use futures_util::TryStreamExt;
use mcpbolt::prelude::*;
use sqlx::{Row, SqlitePool};
use tokio::sync::OnceCell;

#[derive(Default)]
struct Books {
    pool: OnceCell<SqlitePool>,
}

#[tools]
impl Books {
    /// Lists the titles of an author, the oldest first.
    #[tool(read_only)]
    async fn titles(
        &self,
        author: String,
        progress: ProgressReporter,
    ) -> Result<Json<Vec<String>>, sqlx::Error> {
        let pool = self.pool.get_or_try_init(open).await?;
        let query =
            sqlx::query("select title from books where author = ? order by year").bind(author);
        let mut rows = query.fetch(pool);
        let mut titles = Vec::new();
        while let Some(row) = rows.try_next().await? {
            titles.push(row.try_get("title")?);
            progress.report(titles.len() as f64, None, None);
        }
        Ok(Json(titles))
    }
}

async fn open() -> Result<SqlitePool, sqlx::Error> {
    let options = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
    let pool = options.connect("sqlite::memory:").await?;
    let script = "create table books (author text, title text, year integer);
        insert into books values ('Austen', 'Emma', 1815), ('Austen', 'Persuasion', 1817), ('Sterne', 'Tristram Shandy', 1759)";
    sqlx::raw_sql(script).execute(&pool).await?;
    Ok(pool)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("books", "1.0.0").with(Books::default());
    Ok(server.build()?.run()?)
}
