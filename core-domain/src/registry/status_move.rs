//! Moves between statuses that need no more than the status to decide.

use crate::kernel::{Error, Result};

/// The statuses that may be left for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusMove<S: 'static> {
    /// From one of these.
    pub from: &'static [S],
    /// To this one.
    pub to: S,
}

/// Asks a table of moves whether a status may be left for another one. To stay where one is, is always allowed.
///
/// # Errors
/// `INVALID_STATE` names the statuses from which the wanted one can be reached.
pub fn allowed<S>(
    moves: &[StatusMove<S>],
    from: S,
    to: S,
    word: impl Fn(S) -> &'static str,
) -> Result<()>
where
    S: Copy + PartialEq,
{
    let sources = moves.iter().filter(|m| m.to == to).flat_map(|m| m.from);
    let sources: Vec<S> = sources.copied().collect();
    if from == to || sources.contains(&from) {
        return Ok(());
    }
    Err(Error::InvalidState {
        status: word(from),
        allowed_from: sources.into_iter().map(word).collect(),
    })
}
