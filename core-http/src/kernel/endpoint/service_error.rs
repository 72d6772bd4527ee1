//! The errors of building a service and of describing it.

/// The reason why a service cannot be built from its table, or its table cannot be described.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Two rows have the same method and path.
    #[error("two rows have the method and path {0}")]
    Duplicate(String),
    /// Two rows have the same operation id.
    #[error("two rows have the operation id {0}")]
    Operation(&'static str),
    /// The path of a row is malformed.
    #[error("invalid path {0}")]
    Path(String),
    /// A handler has a different number of path parameters than its path.
    #[error("the handler of {0} and its path have different numbers of parameters")]
    Params(&'static str),
    /// The schema of an operation's input cannot be compiled.
    #[error("the schema of {0} cannot be compiled: {1}")]
    Schema(&'static str, String),
    /// Two types have the same schema name, or one type has different schemas as input and as output.
    #[error("two different schemas are named {0}")]
    Component(String),
}
