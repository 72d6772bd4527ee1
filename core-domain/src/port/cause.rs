//! Why a call of a port failed, kept apart from what its callers are told.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a call failed, for the log alone: it may hold paths, SQL or an upstream's answer, so no `Display` of an error that
/// has it as its source shows it. Errors that differ in their cause alone are equal.
#[derive(Clone)]
pub struct Cause(Arc<dyn Error + Send + Sync>);

impl Cause {
    /// Takes an error or a text.
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

/// The whole chain, from the outermost error to the innermost.
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
    fn a_cause_shows_the_whole_chain_of_errors() {
        let inner = std::io::Error::other("/data/x: no space left");
        let cause = Cause::new(Outer(inner));
        assert_eq!(cause.to_string(), "the disk failed: /data/x: no space left");
    }
}
