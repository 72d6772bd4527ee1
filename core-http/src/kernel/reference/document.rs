//! An OpenAPI document and where it is.

/// An OpenAPI document that the page can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// The name of the service, which selects the document in the query.
    pub(crate) service: &'static str,
    /// The path of the document, relative to the page.
    pub(crate) path: String,
    /// The prefixes of the service at a gateway. The page shows a path that has none of them with the first one in front
    /// of it, so that it is the path at the gateway. Empty if the paths are shown unchanged.
    pub(crate) prefixes: Vec<&'static str>,
}

impl Document {
    /// Returns the document of a service that shows its own reference.
    pub(crate) fn of_service(service: &'static str) -> Self {
        Self {
            service,
            path: "openapi.json".to_owned(),
            prefixes: Vec::new(),
        }
    }
}
