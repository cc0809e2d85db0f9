//! Calls of `echo`, with texts of one or several lengths.

use super::answer;
use super::call::head;
use super::failure::Failure;
use super::link::Link;
use super::texts::Texts;

/// The lengths of `--workload sizes`, in bytes.
pub const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Calls that return their texts.
#[derive(Debug)]
pub struct Echo {
    head: String,
    /// One for each length; they take turns.
    texts: Vec<Texts>,
}

impl Echo {
    pub fn new(tool: &str, lengths: &[usize]) -> Self {
        Self {
            head: format!("{}{{\"text\":\"", head(tool)),
            texts: lengths.iter().map(|bytes| Texts::new(*bytes)).collect(),
        }
    }

    pub fn kinds(&self) -> usize {
        self.texts.len()
    }

    pub async fn one(&self, link: &Link<'_>, number: u64) -> Result<(), Failure> {
        let turn = usize::try_from(number).unwrap_or_default() % self.texts.len();
        let texts = &self.texts[turn];
        let mut params = String::with_capacity(self.head.len() + texts.len() + 3);
        params.push_str(&self.head);
        texts.append(number, &mut params);
        params.push_str("\"}}");
        let answer = link.ask("tools/call", Some(&params)).await?;
        match texts.is_of(number, &answer::text(&answer)?) {
            true => Ok(()),
            false => Err(Failure::wrong("the answer is not the text that was sent")),
        }
    }
}
