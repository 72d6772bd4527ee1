//! The static-site host: serves the deployments of pages projects.
//!
//! A project is found by host, `http://{project}.localhost:PORT/`, or by path, `http://127.0.0.1:PORT/{project}/`.

mod answer;
mod body;
mod lookup;
mod range;
mod target;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use core_domain::port::Cause;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};

pub use self::body::SiteBody;
use self::lookup::{Found, IndexCache, Page};
use self::target::Target;
use crate::data_dir::DataDir;
use crate::error::blocking;

/// Serves the sites of one local provider. A `tower` service without a socket of its own; cheap to clone.
///
/// Each request sees one deployment whole: a switch in its middle does not change what it gets.
#[derive(Clone, Debug)]
pub struct SiteHost {
    data: Arc<DataDir>,
    cache: Arc<IndexCache>,
    domain: Arc<str>,
}

impl SiteHost {
    pub(crate) fn new(data: Arc<DataDir>, domain: String) -> Self {
        Self {
            data,
            cache: Arc::default(),
            domain: domain.into(),
        }
    }

    async fn answer(self, method: Method, uri: Uri, headers: HeaderMap) -> Response<SiteBody> {
        if method != Method::GET && method != Method::HEAD {
            return answer::method_not_allowed();
        }
        let host = host_of(&uri, &headers);
        let Some(target) = Target::parse(host.as_deref(), uri.path(), &self.domain) else {
            return answer::plain(StatusCode::NOT_FOUND, "Not found.\n", &method);
        };
        let Self { data, cache, .. } = self;
        let found = blocking(move || lookup::find(&data, &cache, &target)).await;
        match found {
            Ok(Found::Page(page)) => respond(page, &method, &headers),
            Ok(Found::Elsewhere(path)) => answer::moved(&path, uri.query()),
            Ok(Found::Nothing) => answer::plain(StatusCode::NOT_FOUND, "Not found.\n", &method),
            Err(error) => {
                let cause = Cause::new(error);
                tracing::error!(%cause, path = uri.path(), "a site cannot be shown");
                let text = "This site cannot be shown at the moment.\n";
                answer::plain(StatusCode::INTERNAL_SERVER_ERROR, text, &method)
            }
        }
    }
}

fn respond(page: Page, method: &Method, headers: &HeaderMap) -> Response<SiteBody> {
    if page.missing {
        return answer::missing(page, method);
    }
    answer::page(page, method, headers)
}

/// The host a request is for: of the request line when it has one, otherwise of the header.
fn host_of(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let header = || headers.get(header::HOST)?.to_str().ok();
    uri.host().or_else(header).map(str::to_owned)
}

impl<B> tower::Service<Request<B>> for SiteHost {
    type Response = Response<SiteBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<SiteBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let host = self.clone();
        let (head, _) = request.into_parts();
        Box::pin(async move { Ok(host.answer(head.method, head.uri, head.headers).await) })
    }
}
