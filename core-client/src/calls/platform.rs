//! Platforms.

use crate::client::Client;
use crate::error::Result;
use crate::operations::{GET_PLATFORM, LIST_PLATFORMS};
use crate::types::page::{Page, PageQuery};
use crate::types::platform::Platform;

impl Client {
    /// Lists the platforms of the caller's organization.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_platforms(&self, page: &PageQuery) -> Result<Page<Platform>> {
        let call = self.call(LIST_PLATFORMS, &[]).query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Returns a platform.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 404 if the caller has no access to it.
    pub async fn get_platform(&self, platform: &str) -> Result<Platform> {
        self.call(GET_PLATFORM, &[platform]).send().await
    }
}
