//! What features are called.

use crate::kernel::{Line, READABLE_LINE, READABLE_SEGMENT, TextError, text};

/// What stands in the place of a feature in paths.
const RESERVED: [&str; 2] = ["activate", "deactivate"];

text! {
    /// The id of a feature, which is the name of its package: 1 to 100 characters on one line, and not `activate` or
    /// `deactivate`.
    FeatureId,
    feature_id,
    { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_LINE, "examples": ["search"] }
}

fn feature_id(text: &str) -> Result<String, TextError> {
    let line = Line::<1, 100>::parse(text)?;
    if RESERVED.contains(&line.as_str()) {
        return Err(TextError::Malformed);
    }
    Ok(line.as_str().to_owned())
}

text! {
    /// The id of a feature that is activated: a [`FeatureId`] that stands in a path as one segment, with no slash or
    /// backslash in it, and not `.` or `..`. Features that were activated before this was asked keep their ids.
    NewFeatureId,
    new_feature_id,
    { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_SEGMENT, "examples": ["search"] }
}

fn new_feature_id(text: &str) -> Result<String, TextError> {
    let id = feature_id(text)?;
    if [".", ".."].contains(&id.as_str()) || id.contains(['/', '\\']) {
        return Err(TextError::Malformed);
    }
    Ok(id)
}

impl From<NewFeatureId> for FeatureId {
    fn from(id: NewFeatureId) -> Self {
        Self(id.0)
    }
}

/// The version of a feature.
pub type FeatureVersion = Line<1, 100>;
