//! Lists that are read from a replica of the store.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Mode, Store, UnitOfWork};
use serde_json::json;

use crate::world::{World, bare_app, operator, platform_path};

/// A store with a replica.
#[derive(Debug)]
struct ReplicatedStore {
    primary: Arc<dyn Store>,
    replica: Arc<dyn Store>,
}

#[async_trait]
impl Store for ReplicatedStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        self.primary.begin(mode).await
    }

    async fn begin_stale(&self) -> Option<Box<dyn UnitOfWork>> {
        self.replica.begin(Mode::Read).await.ok()
    }

    async fn back_off(&self, run: u32) {
        self.primary.back_off(run).await;
    }
}

/// Creates services over a store whose replica has no records.
fn world_with_empty_replica() -> World {
    World::with(|app| {
        app.store = Arc::new(ReplicatedStore {
            primary: Arc::clone(&app.store),
            replica: bare_app().0.store,
        });
    })
}

#[tokio::test]
async fn only_lists_read_the_replica_and_the_primary_decides_about_access() {
    let world = world_with_empty_replica();
    let platform = world.create_platform("acme").await;
    let list = world.registry.get(&operator(), "/api/v1/platforms").await;
    assert_eq!(list.expect(200).json["data"], json!([]));
    let path = platform_path(&platform, "");
    let one = world.registry.get(&operator(), &path).await;
    assert_eq!(one.expect(200).id(), platform);

    // The platform is unknown on the replica, but not to the authorization.
    let entities = platform_path(&platform, "/entities");
    let list = world.registry.get(&operator(), &entities).await;
    assert_eq!(list.expect(200).json["data"], json!([]));
    let stranger = world.sign_up("eve@example.com").await.caller();
    let refused = world.registry.get(&stranger, &entities).await;
    let _ = refused.expect(404);
}

#[tokio::test]
async fn a_list_whose_parent_is_missing_on_the_replica_is_read_from_the_primary() {
    let world = world_with_empty_replica();
    let platform = world.create_platform("acme").await;
    let tenant = world.tenant(&platform, "t").await;
    let resource = world.resource(&platform, &tenant, "web").await;
    let path = platform_path(&platform, &format!("/entities/{tenant}/resources"));
    let list = world.registry.get(&operator(), &path).await.expect(200);
    assert_eq!(list.json["data"][0]["id"], json!(resource));
    let unknown = path.replace(&tenant, &platform);
    let _ = world.registry.get(&operator(), &unknown).await.expect(404);
}
