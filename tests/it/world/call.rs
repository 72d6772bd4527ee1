//! A request that is being built, for a tower service or a real server.

use std::convert::Infallible;

use bytes::Bytes;
use core_http::kernel::testing::Answer;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{Service, ServiceExt};

#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::upload(path, "application/json", body.to_string())
    }

    pub(crate) fn upload(
        path: impl Into<String>,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Self {
        let mut call = Self::new(Method::POST, path).header("content-type", content_type);
        call.body = body.into();
        call
    }

    pub(crate) fn by(mut self, method: &Method) -> Self {
        self.method = method.clone();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Returns the request, with its path below this base URL.
    pub(crate) fn at(self, address: &str) -> Request<Full<Bytes>> {
        let uri = format!("{address}{}", self.path);
        let mut request = Request::builder().method(self.method).uri(uri);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::from(self.body)).unwrap()
    }

    /// Sends the request to a tower service. Returns only the status, because the body of the response may not end.
    pub(crate) async fn status_of<S, B>(self, service: S) -> StatusCode
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
    {
        let request = self.header("host", "suite.test").at("");
        service.oneshot(request).await.unwrap().status()
    }

    /// Sends the request to a tower service.
    pub(crate) async fn to<S, B>(self, service: S) -> Answer
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
        B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
    {
        let request = self.header("host", "suite.test").at("");
        answer(service.oneshot(request).await.unwrap()).await
    }
}

/// Reads a complete response.
pub(crate) async fn answer<B>(response: Response<B>) -> Answer
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    whole_answer(response).await.unwrap()
}

/// Reads a complete response. Fails if the body ends early.
pub(super) async fn whole_answer<B: http_body::Body<Data = Bytes>>(
    response: Response<B>,
) -> Result<Answer, B::Error> {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let (status, headers): (StatusCode, HeaderMap) = (parts.status, parts.headers);
    Ok(Answer {
        status,
        headers,
        json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        bytes,
    })
}
