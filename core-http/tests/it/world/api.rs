//! A client that calls a service in process, as a gateway does.

use core_domain::kernel::Caller;
use core_http::kernel::testing::{Answer, call_with, send};
use core_http::kernel::{Body, Service};
use futures_util::future::join_all;
use http::Request;
use serde_json::Value;

#[derive(Clone, Debug)]
pub(crate) struct Api(pub(crate) Service);

/// Sends requests at the same time and returns their answers in the same order.
pub(crate) async fn send_concurrently<F>(requests: impl IntoIterator<Item = F>) -> Vec<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let answers = requests.into_iter().map(tokio::spawn);
    let answers = join_all(answers).await.into_iter();
    answers.map(Result::unwrap).collect()
}

impl Api {
    pub(crate) async fn send(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        call_with(&self.0, method, path, caller, headers, body).await
    }

    pub(crate) async fn get(&self, caller: &Caller, path: &str) -> Answer {
        self.send(caller, "GET", path, &[], Value::Null).await
    }

    pub(crate) async fn post(&self, caller: &Caller, path: &str, body: Value) -> Answer {
        self.send(caller, "POST", path, &[], body).await
    }

    pub(crate) async fn patch(&self, caller: &Caller, path: &str, body: Value) -> Answer {
        self.send(caller, "PATCH", path, &[], body).await
    }

    pub(crate) async fn delete(&self, caller: &Caller, path: &str) -> Answer {
        self.send(caller, "DELETE", path, &[], Value::Null).await
    }

    /// Sends a request as over the network: the service identifies the caller by the headers.
    pub(crate) async fn raw(&self, request: Request<Body>) -> Answer {
        send(&self.0, request).await
    }
}
