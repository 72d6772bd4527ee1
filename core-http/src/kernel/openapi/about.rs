//! What a description says of the service as a whole.

/// What the description says of the service as a whole.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct OpenApi {
    /// Its name.
    pub(in crate::kernel) service: &'static str,
    /// The cookie that sessions are known by, where cookies are.
    pub(in crate::kernel) session_cookie: Option<&'static str>,
}
