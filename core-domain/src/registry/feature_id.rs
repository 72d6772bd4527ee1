//! What features are called.

use crate::kernel::{Line, READABLE_LINE, TextError, text};

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

/// The version of a feature.
pub type FeatureVersion = Line<1, 100>;
