//! The command line. Cargo passes `--bench` to benchmarks; a test runner does not.

/// The arguments of this process.
#[derive(Debug)]
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn read() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Whether a person asked for figures; otherwise every part runs once, tiny, to see that it works.
    pub(crate) fn is_bench(&self) -> bool {
        self.has("--bench")
    }

    /// Whether a test runner wants the names of tests, of which there are none.
    pub(crate) fn asks_for_list(&self) -> bool {
        self.has("--list")
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|argument| argument == flag)
    }

    /// What follows `flag`.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == flag)?;
        self.0.get(at + 1).map(String::as_str)
    }
}
