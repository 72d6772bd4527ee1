//! The ids of features.

use crate::kernel::{Line, READABLE_LINE, READABLE_SEGMENT, TextError, text};

text! {
    /// The id of a feature, which is also the name of its package. It has 1 to 100 characters on one line, and is not
    /// `activate` or `deactivate`.
    FeatureId,
    feature_id,
    { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_LINE, "examples": ["search"] }
}

text! {
    /// The id of a feature in an activation request: a [`FeatureId`] that fits into one path segment. It contains no
    /// slash or backslash, and is not `.` or `..`. Features that were activated before this rule existed keep their
    /// ids.
    NewFeatureId,
    new_feature_id,
    { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_SEGMENT, "examples": ["search"] }
}

impl From<NewFeatureId> for FeatureId {
    fn from(id: NewFeatureId) -> Self {
        Self(id.0)
    }
}

fn feature_id(text: &str) -> Result<String, TextError> {
    let line = Line::<1, 100>::parse(text)?;
    if RESERVED_IDS.contains(&line.as_str()) {
        return Err(TextError::Malformed);
    }
    Ok(line.as_str().to_owned())
}

fn new_feature_id(text: &str) -> Result<String, TextError> {
    let id = feature_id(text)?;
    if [".", ".."].contains(&id.as_str()) || id.contains(['/', '\\']) {
        return Err(TextError::Malformed);
    }
    Ok(id)
}

/// Ids that would collide with path segments of the feature routes.
const RESERVED_IDS: [&str; 2] = ["activate", "deactivate"];
