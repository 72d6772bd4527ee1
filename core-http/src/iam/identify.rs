//! Who calls IAM: a gateway's word, the service key, or a session by bearer or cookie; and where from.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Caller, Code, Error, Result};
use core_domain::port::Mode;
use core_domain::use_case::iam::authorize;
use http::request::Parts;
use http::{HeaderMap, Method, header};

use super::config::{Iam, invalid_origin};
use crate::kernel::{App, Identify, known_caller, unknown_caller};

/// Identifies callers by their session, after the ways every service knows.
#[derive(Debug)]
pub(super) struct IdentifySessions(pub(super) Arc<Iam>);

#[async_trait]
impl Identify for IdentifySessions {
    async fn identify(&self, app: &App, request: &Parts) -> Result<Caller> {
        self.0.refuse_forgery(request)?;
        if let Some(caller) = known_caller(app, request) {
            return Ok(caller);
        }
        let Some(token) = self.0.presented_token(&request.headers) else {
            return Ok(unknown_caller(app));
        };
        let mut uow = app.store.begin(Mode::Read).await?;
        let found = authorize(uow.as_mut(), &token).await;
        uow.rollback().await;
        Ok(found?.map_or_else(|| unknown_caller(app), |authorized| authorized.caller))
    }
}

impl Iam {
    /// A browser sends cookies along whatever page makes it send the request; so what changes something and comes with
    /// cookies must say that it comes from a trusted page.
    fn refuse_forgery(&self, request: &Parts) -> Result<()> {
        let safe = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if safe || !request.headers.contains_key(header::COOKIE) {
            return Ok(());
        }
        let origin = request
            .headers
            .get(header::ORIGIN)
            .and_then(|value| value.to_str().ok())
            .filter(|origin| *origin != "null");
        match origin {
            None => Err(Error::refused(
                Code::MissingOrNullOrigin,
                "Missing or null Origin",
            )),
            Some(origin) if self.trusts(origin) => Ok(()),
            Some(_) => Err(invalid_origin()),
        }
    }

    /// The session token of a request: of its `Authorization` header, or else of its cookies.
    pub(super) fn presented_token(&self, headers: &HeaderMap) -> Option<String> {
        match headers.get(header::AUTHORIZATION) {
            Some(value) => self.signer.token_in_bearer(value.to_str().ok()?),
            None => self.cookie_token(headers),
        }
    }

    /// The validly signed session token of the cookies.
    pub(super) fn cookie_token(&self, headers: &HeaderMap) -> Option<String> {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .find_map(|cookies| self.signer.token_in_cookies(self.names, cookies))
    }
}
