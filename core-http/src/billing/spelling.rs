//! The second spelling of documented paths.

/// Returns the second spelling of a documented path.
macro_rules! prefixed {
    ($path:literal) => {
        concat!("/api/billing", $path)
    };
}
pub(super) use prefixed;
