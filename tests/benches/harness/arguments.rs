//! The command line. Cargo passes `--bench` to benchmarks; a test runner does not.

/// The arguments of this process.
#[derive(Debug)]
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn read() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// Returns whether to measure (`--bench`). Otherwise every part runs once with tiny sizes, as a test.
    pub(crate) fn is_bench(&self) -> bool {
        self.has("--bench")
    }

    /// Returns whether a test runner asks for the list of tests, which is empty.
    pub(crate) fn asks_for_list(&self) -> bool {
        self.has("--list")
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|argument| argument == flag)
    }

    /// Returns the argument after `flag`.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == flag)?;
        self.0.get(at + 1).map(String::as_str)
    }
}
