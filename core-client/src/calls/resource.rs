//! Resources: the objects of a platform at the infrastructure provider.

use crate::client::Client;
use crate::error::Result;
use crate::operations::LIST_RESOURCES;
use crate::types::page::{Page, PageQuery};
use crate::types::resource::Resource;

impl Client {
    /// Lists the resources of a platform.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_resources(&self, platform: &str, page: &PageQuery) -> Result<Page<Resource>> {
        let call = self
            .call(LIST_RESOURCES, &[platform])
            .query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }
}
