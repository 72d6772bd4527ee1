//! A call of an operation: the values of its path, query, headers and body.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::net::event_stream::{EventStream, StreamEnd};
use crate::net::random::idempotency_key;
use crate::net::transport::{Content, OutgoingRequest};
use crate::net::upload::Upload;
use crate::operation::{
    ArchiveBody, EventsReply, FormBody, IDEMPOTENCY_KEY, JsonBody, JsonReply, NoBody, Operation,
};

/// The characters of a path segment or query value that are sent as they are.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A call of an operation.
pub(crate) struct Call<'c, B, R> {
    client: &'c Client,
    operation: Operation<B, R>,
    path: Result<String>,
    query: String,
    headers: HeaderMap,
    header_error: Option<Error>,
}

impl Client {
    /// Starts a call. `path` has the values of the path's parameters in their order.
    pub(crate) fn call<B, R>(&self, operation: Operation<B, R>, path: &[&str]) -> Call<'_, B, R> {
        Call {
            client: self,
            path: fill_path(operation.path, path),
            query: String::new(),
            headers: HeaderMap::new(),
            header_error: None,
            operation,
        }
    }
}

/// Replaces the parameters of a path by values.
fn fill_path(path: &str, values: &[&str]) -> Result<String> {
    let mut filled = String::new();
    let mut values = values.iter();
    for segment in path.split('/').skip(1) {
        filled.push('/');
        let Some(name) = segment
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        else {
            filled.push_str(segment);
            continue;
        };
        let value = *values.next().unwrap_or(&"");
        // A dot segment would lead to another path.
        if matches!(value, "" | "." | "..") {
            return Err(Error::Argument(format!("{value:?} is not a valid {name}")));
        }
        filled.extend(utf8_percent_encode(value, UNESCAPED));
    }
    Ok(filled)
}

impl<B, R> Call<'_, B, R> {
    /// Sets a query parameter, if it has a value.
    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        debug_assert!(
            self.operation.query.contains(&name),
            "{name} is not in the table"
        );
        if let Some(value) = value {
            let value = value.to_string();
            self.query
                .push(if self.query.is_empty() { '?' } else { '&' });
            self.query.push_str(name);
            self.query.push('=');
            self.query.extend(utf8_percent_encode(&value, UNESCAPED));
        }
        self
    }

    /// Sets a header, if it has a value.
    pub(crate) fn header(mut self, name: &'static str, value: Option<&str>) -> Self {
        debug_assert!(
            self.operation.headers.contains(&name),
            "{name} is not in the table"
        );
        match value.map(HeaderValue::from_str) {
            None => {}
            Some(Ok(value)) => drop(self.headers.insert(HeaderName::from_static(name), value)),
            Some(Err(_)) => {
                let what = format!("the value of {name} has characters that headers cannot have");
                self.header_error = Some(Error::Argument(what));
            }
        }
        self
    }

    fn into_request(mut self, content: Content) -> Result<OutgoingRequest> {
        if let Some(error) = self.header_error {
            return Err(error);
        }
        let operation = &self.operation;
        let name = HeaderName::from_static(IDEMPOTENCY_KEY);
        if operation.takes_key()
            && !self.headers.contains_key(&name)
            && let Ok(key) = HeaderValue::from_str(&idempotency_key())
        {
            self.headers.insert(name, key);
        }
        let url = self.client.url(operation.service, &self.path?);
        Ok(OutgoingRequest {
            method: operation.method.clone(),
            url: url + &self.query,
            headers: self.headers,
            content,
            is_idempotent: operation.is_idempotent(),
        })
    }
}

impl<B, R: DeserializeOwned> Call<'_, B, JsonReply<R>> {
    async fn send_content(self, content: Content) -> Result<R> {
        let (client, operation) = (self.client.clone(), self.operation.name);
        let mut request = self.into_request(content)?;
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        let transport = &client.0.transport;
        let response = transport.send(&request).await?;
        let body = transport.read(response, &request.url).await?;
        serde_json::from_slice(&body).map_err(|error| Error::Decode {
            operation,
            problem: error.to_string(),
        })
    }
}

impl<R: DeserializeOwned> Call<'_, NoBody, JsonReply<R>> {
    /// Sends the call and decodes the response.
    pub(crate) async fn send(self) -> Result<R> {
        self.send_content(Content::None).await
    }
}

impl<T: Serialize, R: DeserializeOwned> Call<'_, JsonBody<T>, JsonReply<R>> {
    /// Sends the call with a body in JSON and decodes the response.
    pub(crate) async fn send(self, body: &T) -> Result<R> {
        let invalid = |error: serde_json::Error| Error::Argument(error.to_string());
        let body = serde_json::to_vec(body).map_err(invalid)?;
        self.send_content(Content::Bytes("application/json", body.into()))
            .await
    }
}

impl<T: Serialize, R: DeserializeOwned> Call<'_, FormBody<T>, JsonReply<R>> {
    /// Sends the call with a form and decodes the response.
    pub(crate) async fn send(self, body: &T) -> Result<R> {
        let invalid = |error: serde_urlencoded::ser::Error| Error::Argument(error.to_string());
        let body = serde_urlencoded::to_string(body).map_err(invalid)?;
        self.send_content(Content::Bytes(
            "application/x-www-form-urlencoded",
            body.into(),
        ))
        .await
    }
}

impl<R: DeserializeOwned> Call<'_, ArchiveBody, JsonReply<R>> {
    /// Sends the call with an upload and decodes the response.
    pub(crate) async fn send(self, upload: Upload) -> Result<R> {
        self.send_content(Content::Upload(upload)).await
    }
}

impl<T: DeserializeOwned> Call<'_, NoBody, EventsReply<T>> {
    /// Opens the stream of events. It is resumed after a lost connection, until it has ended as `end` says.
    pub(crate) async fn open(self, end: StreamEnd<T>) -> Result<EventStream<T>> {
        let (client, operation) = (self.client.clone(), self.operation.name);
        let mut request = self.into_request(Content::None)?;
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        EventStream::open(client, operation, request, end).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::GET_JOB;

    #[test]
    fn values_of_a_path_are_escaped() {
        assert_eq!(
            fill_path("/a/{x}/b/{y}", &["1/2", "\u{e4} c"]).unwrap(),
            "/a/1%2F2/b/%C3%A4%20c"
        );
    }

    #[test]
    fn values_that_would_change_the_path_are_refused() {
        for value in ["", ".", ".."] {
            assert!(fill_path("/a/{x}", &[value]).is_err(), "{value}");
        }
    }

    #[test]
    fn query_parameters_without_value_are_left_out() {
        let client = Client::builder("http://localhost").build().unwrap();
        let call = client.call(GET_JOB, &["j-1"]).query("wait", None::<u32>);
        assert_eq!(call.query, "");
        assert_eq!(call.query("wait", Some(5)).query, "?wait=5");
    }
}
