//! What can be wrong with a table of endpoints.

/// Why a table of endpoints is no service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Two rows answer the same method and path.
    #[error("two rows answer {0}")]
    Duplicate(String),
    /// Two rows have the same operation id.
    #[error("two rows have the operation id {0}")]
    Operation(&'static str),
    /// A path the router cannot take.
    #[error("bad path {0}")]
    Path(String),
    /// A handler takes another number of path parameters than its path has.
    #[error("{0} takes another number of parameters than its path has")]
    Params(&'static str),
    /// The schema of a shape cannot be compiled.
    #[error("schema of {0}: {1}")]
    Schema(&'static str, String),
    /// Two types of its shapes have the same name, or one looks different coming in and going out.
    #[error("two schemas are named {0}")]
    Component(String),
}
