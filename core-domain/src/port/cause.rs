//! The cause of a failed call of a port, separate from the message for callers.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The cause of a failed call, only for the log. It can contain paths, SQL or the response of an upstream service.
/// Errors therefore keep it as their source and do not include it in their `Display` output. All causes are equal, so
/// errors that differ only in their cause are equal.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// Creates a cause from an error or a text.
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Cause {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// Prints the whole chain of errors, from the outermost to the innermost.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(error) = next {
            write!(f, ": {error}")?;
            next = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cause({self})")
    }
}

impl Error for Cause {}

impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the disk failed")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn display_prints_the_whole_chain_of_errors() {
        let inner = std::io::Error::other("/data/x: no space left");
        let cause = Cause::new(Outer(inner));
        assert_eq!(cause.to_string(), "the disk failed: /data/x: no space left");
    }
}
