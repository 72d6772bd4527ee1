//! Files that the pages link to.

use serde_json::Value;

use super::{World, text};

#[tokio::test]
async fn the_stylesheet_is_our_own_and_is_revalidated_by_its_etag() {
    let world = World::new();
    let page = text(&world.page("/sign-in", &[]).await, 200);
    let href = page.split("rel=\"stylesheet\" href=\"").nth(1).unwrap();
    let href = href.split('"').next().unwrap();
    assert!(href.starts_with("/assets/iam.css?v="));
    let sent = world
        .send_unidentified("GET", href, &[], Value::Null)
        .await
        .expect(200);
    assert_eq!(sent.header("content-type"), "text/css; charset=utf-8");
    let tag = [("if-none-match", sent.header("etag"))];
    let again = world
        .send_unidentified("GET", href, &tag, Value::Null)
        .await
        .expect(304);
    assert!(again.bytes.is_empty());
}
