//! The OpenAPI description of both endpoints.

use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn both_endpoints_are_described_with_their_bodies_headers_and_refusals() {
    let world = World::new().await;
    let document: Value = serde_json::from_str(world.service.openapi()).unwrap();
    let paths = &document["paths"];
    let deploy = &paths["/api/v1/platforms/{platformId}/deploy"]["post"];
    let content = deploy["requestBody"]["content"].as_object().unwrap();
    let binary = json!({ "type": "string", "format": "binary" });
    for kind in [
        "application/gzip",
        "application/x-tar",
        "application/zip",
        "application/octet-stream",
    ] {
        assert_eq!(content[kind]["schema"], binary, "{kind}");
    }
    let form = &content["multipart/form-data"]["schema"];
    assert_eq!(form["properties"]["file"], binary);
    assert_eq!(content.len(), 5);
    let headers: Vec<&str> = deploy["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|parameter| parameter["in"] == "header")
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    assert_eq!(
        headers,
        ["x-core-deploy-branch", "x-core-user-id", "Idempotency-Key"]
    );
    for status in [
        "200", "202", "400", "401", "403", "404", "409", "413", "415", "422", "502",
    ] {
        assert!(deploy["responses"].get(status).is_some(), "{status}");
    }
    let reply = &deploy["responses"]["202"]["content"]["application/json"]["schema"];
    assert!(reply["$ref"].as_str().unwrap().ends_with("DeployShape"));

    let show = &paths["/api/v1/platforms/{platformId}/deployments/{deploymentId}"]["get"];
    let wait = &show["parameters"][2];
    assert_eq!(wait["name"], "wait");
    assert_eq!(wait["required"], false);
    assert!(show["responses"].get("404").is_some());
}
