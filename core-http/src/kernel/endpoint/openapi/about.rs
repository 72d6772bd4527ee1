//! What a description says of the service as a whole.

/// What the description says of the service as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenApi {
    /// Its name.
    pub(crate) service: &'static str,
    /// The cookie that sessions are known by, where cookies are.
    pub(crate) session_cookie: Option<&'static str>,
}
