//! Positions in the write-ahead log.

/// A position in the write-ahead log of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The number of promotions in the history of the server.
    pub(super) timeline: i64,
    /// The number of bytes before the position.
    pub(super) bytes: i64,
}

impl Position {
    /// Returns whether a server at this position has replayed all that the other had written.
    pub(super) const fn includes(self, other: Self) -> bool {
        self.timeline == other.timeline && self.bytes >= other.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_includes_only_earlier_positions_of_its_timeline() {
        let at = |timeline, bytes| Position { timeline, bytes };
        assert!(at(1, 10).includes(at(1, 10)));
        assert!(at(1, 11).includes(at(1, 10)));
        assert!(!at(1, 9).includes(at(1, 10)));
        assert!(!at(1, 11).includes(at(2, 10)));
        assert!(!at(2, 11).includes(at(1, 10)));
    }
}
