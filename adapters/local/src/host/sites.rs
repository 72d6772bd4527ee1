//! The responses of sites.

use std::sync::Arc;

use core_domain::port::Cause;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::answer;
use super::body::SiteBody;
use super::lookup::{self, IndexCache, LookupResult, Page};
use super::target::SitePath;
use crate::error::LocalError;
use crate::stores::Stores;

/// The sites of one local provider. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Sites {
    stores: Stores,
    cache: Arc<IndexCache>,
}

impl Sites {
    pub(crate) fn new(stores: Stores) -> Self {
        Self {
            stores,
            cache: Arc::default(),
        }
    }

    /// Responds to a request for the site with this address label.
    pub(crate) async fn respond<B: Sync>(
        &self,
        label: &str,
        request: &Request<B>,
    ) -> Response<SiteBody> {
        let (method, uri) = (request.method(), request.uri());
        match SitePath::of_site(label.to_owned(), uri.path()) {
            Some(target) => self.page(target, method, uri, request.headers()).await,
            None => not_found(method),
        }
    }

    /// Responds with the file at a path of a site.
    pub(super) async fn page(
        &self,
        target: SitePath,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Response<SiteBody> {
        if method != Method::GET && method != Method::HEAD {
            return answer::method_not_allowed();
        }
        let cache = Arc::clone(&self.cache);
        let found = self
            .stores
            .run(move |data| lookup::find(data, &cache, &target));
        match found.await {
            Ok(LookupResult::Page(page)) => respond(page, method, headers),
            Ok(LookupResult::Elsewhere(path)) => answer::redirect(&path, uri.query()),
            Ok(LookupResult::Nothing) => not_found(method),
            Err(error) => internal_error(error, uri, method),
        }
    }
}

/// Responds with 404.
pub(super) fn not_found(method: &Method) -> Response<SiteBody> {
    answer::plain_text(StatusCode::NOT_FOUND, "Not found.\n", method)
}

/// Logs an error and responds with 500.
pub(super) fn internal_error(error: LocalError, uri: &Uri, method: &Method) -> Response<SiteBody> {
    let cause = Cause::new(error);
    tracing::error!(%cause, path = uri.path(), "failed to serve a site");
    let text = "This site is not available at the moment.\n";
    answer::plain_text(StatusCode::INTERNAL_SERVER_ERROR, text, method)
}

fn respond(page: Page, method: &Method, headers: &HeaderMap) -> Response<SiteBody> {
    if page.is_404_page {
        return answer::missing(page, method);
    }
    answer::page(page, method, headers)
}
