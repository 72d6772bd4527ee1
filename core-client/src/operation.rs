//! The description of an operation of the API: everything that a request needs besides its values.

use std::marker::PhantomData;

use http::Method;

/// A service of the API. It determines the address of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Iam,
    Registry,
    Provisioning,
    Stacks,
    Cli,
}

impl Service {
    /// Returns the path at the gateway for a documented path of the service. IAM has an address of its own.
    pub(crate) fn gateway_path(self, path: &str) -> String {
        match self {
            Self::Iam | Self::Registry | Self::Stacks => path.to_owned(),
            Self::Provisioning => path.replacen("/api/v1/provision/", "/api/v1/provisioning/", 1),
            Self::Cli => path.replacen("/api/v1/", "/api/v1/cli/", 1),
        }
    }
}

/// An operation with the types of its request body and its response.
pub(crate) struct Operation<B, R> {
    /// The name in error messages: the name of the constant in lower case.
    pub(crate) name: &'static str,
    pub(crate) service: Service,
    pub(crate) method: Method,
    /// The documented path, with parameters in braces.
    pub(crate) path: &'static str,
    /// The query parameters that the client sends.
    pub(crate) query: &'static [&'static str],
    /// The headers that the client sends, besides those of every request.
    pub(crate) headers: &'static [&'static str],
    pub(crate) types: PhantomData<fn(B) -> R>,
}

/// The name of the header that makes a write repeatable.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

impl<B, R> Operation<B, R> {
    /// Returns whether repeated requests have the effect of one.
    pub(crate) fn is_idempotent(&self) -> bool {
        matches!(self.method, Method::GET | Method::PUT | Method::DELETE) || self.takes_key()
    }

    /// Returns whether a write takes an idempotency key.
    pub(crate) fn takes_key(&self) -> bool {
        self.headers.contains(&IDEMPOTENCY_KEY)
    }
}

/// No request body.
pub(crate) struct NoBody;

/// A request body in JSON.
pub(crate) struct JsonBody<T>(PhantomData<T>);

/// A request body as a form.
pub(crate) struct FormBody<T>(PhantomData<T>);

/// A request body with an archive of a site.
pub(crate) struct ArchiveBody;

/// A response in JSON.
pub(crate) struct JsonReply<T>(PhantomData<T>);

/// A stream of server-sent events whose data is JSON.
pub(crate) struct EventsReply<T>(PhantomData<T>);

/// Declares operations as constants. In tests, `all` lists them with the schemas of their types.
macro_rules! operations {
    ($(
        $(#[$doc:meta])+
        $constant:ident $name:literal: $method:ident $service:ident $path:literal
            $(query[$($query:literal),+])? $(headers[$($header:literal),+])? ($body:ty) -> $reply:ty;
    )+) => {
        $(
            $(#[$doc])+
            pub(crate) const $constant: Operation<$body, $reply> = Operation {
                name: $name,
                service: Service::$service,
                method: http::Method::$method,
                path: $path,
                query: &[$($($query),+)?],
                headers: &[$($($header),+)?],
                types: std::marker::PhantomData,
            };
        )+

        /// Returns every operation for the comparison with the OpenAPI documents.
        #[cfg(test)]
        pub(crate) fn all() -> Vec<$crate::contract::ClientOperation> {
            vec![$( $crate::contract::ClientOperation::of(&$constant) ),+]
        }
    };
}

pub(crate) use operations;
