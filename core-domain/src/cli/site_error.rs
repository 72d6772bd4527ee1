//! What can be wrong with a site.

/// Why an upload is no site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// It, or something in it, is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// Something in it has no place in a site; the word tells what in snake case.
    #[error("{1}")]
    Unfit(&'static str, String),
    /// It is in no format that is understood.
    #[error("the upload is no tar, tar.gz or zip")]
    UnknownFormat,
}
