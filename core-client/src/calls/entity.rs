//! Entities: the tenants of a platform.

use crate::client::Client;
use crate::error::Result;
use crate::operations::LIST_ENTITIES;
use crate::types::entity::{Entity, EntityType};
use crate::types::page::{Page, PageQuery};

impl Client {
    /// Lists the entities of a platform, of one type or all.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_entities(
        &self,
        platform: &str,
        kind: Option<&EntityType>,
        page: &PageQuery,
    ) -> Result<Page<Entity>> {
        let call = self.call(LIST_ENTITIES, &[platform]).query("type", kind);
        let call = call
            .query("limit", page.limit)
            .query("cursor", page.cursor.as_ref());
        call.send().await.map(Into::into)
    }
}
