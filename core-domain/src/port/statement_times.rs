//! The slowest statements of a unit of work, for the log.

use std::sync::Arc;
use std::time::Duration;

/// The number of statements that a unit of work reports.
const MAX_STATEMENTS: usize = 5;

/// A statement of a unit of work, and its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementTime {
    /// The text of the statement, with placeholders instead of values.
    pub text: Arc<str>,
    /// The time until the database responded.
    pub duration: Duration,
}

/// The slowest statements of a unit of work.
#[derive(Debug, Default)]
pub struct SlowestStatements(Vec<StatementTime>);

impl SlowestStatements {
    /// Records a statement. It is forgotten if there are five slower ones.
    pub fn record(&mut self, text: &Arc<str>, duration: Duration) {
        if let Some(fastest) = self.0.last()
            && self.0.len() == MAX_STATEMENTS
        {
            if fastest.duration >= duration {
                return;
            }
            self.0.pop();
        }
        let slower = |known: &StatementTime| known.duration >= duration;
        let at = self.0.partition_point(slower);
        let text = Arc::clone(text);
        self.0.insert(at, StatementTime { text, duration });
    }

    /// Removes and returns the statements, the slowest first.
    pub fn take(&mut self) -> Vec<StatementTime> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_slowest_statements_remain_with_the_slowest_first() {
        let mut slowest = SlowestStatements::default();
        for millis in [3, 9, 1, 7, 5, 8, 2, 4, 6] {
            let text = Arc::from(format!("statement {millis}"));
            slowest.record(&text, Duration::from_millis(millis));
        }
        let kept: Vec<_> = slowest.take().into_iter().map(|one| one.text).collect();
        let expected = [9, 8, 7, 6, 5].map(|millis| format!("statement {millis}"));
        assert!(kept.iter().map(AsRef::as_ref).eq(&expected), "{kept:?}");
        assert_eq!(slowest.take(), []);
    }
}
