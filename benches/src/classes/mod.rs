//! The classes of inputs in the codec's table, each with its contenders.

mod decode;
mod encode;
mod kernels;
mod materialise;
mod stream;

use mcpbolt::scan::Isa;

use crate::corpus;
use crate::harness::{self, Contender, Row};

/// One pass over the classes.
pub struct Run {
    /// How many rounds each contender runs.
    pub rounds: usize,
    /// The classes to measure, by the beginning of their names; all if empty.
    pub only: Vec<String>,
    /// The figures.
    pub rows: Vec<Row>,
}

impl Run {
    /// Measures every selected class.
    pub fn all(&mut self) {
        for input in corpus::all() {
            decode::decode(self, &input);
        }
        decode::action(self);
        stream::mixed(self);
        stream::split(self);
        encode::forward(self);
        encode::escape(self);
        encode::value(self);
        materialise::materialise(self);
        kernels::kernels(self);
    }

    pub(crate) fn wants(&self, class: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| class.starts_with(only))
    }

    pub(crate) fn class(
        &mut self,
        class: &str,
        bytes: usize,
        per_run: u64,
        mut all: Vec<Contender<'_>>,
    ) {
        let default = Isa::chosen();
        let rows = harness::measure(class, bytes, per_run, self.rounds, &mut all);
        default.choose();
        harness::print(&rows);
        self.rows.extend(rows);
    }
}

/// The kernels that this processor supports.
pub(crate) fn available() -> Vec<Isa> {
    Isa::ALL
        .into_iter()
        .filter(|isa| isa.is_available())
        .collect()
}

pub(crate) fn name(isa: Isa) -> &'static str {
    match isa {
        Isa::Scalar => "mcpbolt scalar",
        Isa::Sse2 => "mcpbolt sse2",
        Isa::Avx2 => "mcpbolt avx2",
        Isa::Avx512 => "mcpbolt avx512",
    }
}

/// The engine with each kernel, the default first.
pub(crate) fn engines<'a>(run: impl Fn() + Clone + 'a) -> Vec<Contender<'a>> {
    let default = Isa::chosen();
    let mut all = available();
    all.sort_by_key(|isa| *isa != default);
    let each = all.into_iter().map(|isa| {
        let run = run.clone();
        Contender::new(name(isa), move || {
            isa.choose();
            run();
        })
    });
    each.collect()
}
