//! Every row answers exactly the fields, types and words of the list of documented endpoints.

use serde_json::{Map, Value, json};

use super::world::{Says, World, at, resource_body};
use crate::kernel::testing::operator;

pub(super) const ENDPOINTS: &str = include_str!("../../../../tests/data/endpoints.json");

pub(super) fn documented(id: &str) -> Value {
    let all: Vec<Value> = serde_json::from_str(ENDPOINTS).unwrap();
    all.into_iter().find(|e| e["id"] == id).unwrap()
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "any" => true,
        other => panic!("unknown type {other}"),
    }
}

/// `2027-01-15T08:00:00.000Z`
fn is_instant(value: &Value) -> bool {
    let text = value.as_str().unwrap();
    let bytes = text.as_bytes();
    text.len() == 24 && bytes[10] == b'T' && bytes[19] == b'.' && text.ends_with('Z')
}

fn fits(id: &str, fields: &Map<String, Value>, words: &Value, record: &Value) {
    let record = record.as_object().unwrap();
    let mut shown: Vec<&String> = record.keys().collect();
    let mut wanted: Vec<&String> = fields.keys().collect();
    shown.sort();
    wanted.sort();
    assert_eq!(shown, wanted, "{id}");
    for (name, value) in record.iter().filter(|(_, value)| !value.is_null()) {
        let wanted = fields[name].as_str().unwrap();
        assert!(is_of_type(value, wanted), "{id}: {name} is {value}");
        assert!(
            !name.ends_with("At") || is_instant(value),
            "{id}: {name} is {value}"
        );
        if let Some(words) = words[name].as_array() {
            assert!(words.contains(value), "{id}: {name} is {value}");
        }
    }
}

fn fits_list(id: &str, response: &Value, answer: &Value) {
    let fields = response["item_fields"].as_object().unwrap();
    let data = answer["data"].as_array().unwrap();
    assert!(!data.is_empty(), "{id}: nothing to look at");
    for record in data {
        fits(id, fields, &response["enum"], record);
    }
    let envelope = response["envelope"]["pagination"].as_object().unwrap();
    fits(id, envelope, &Value::Null, &answer["pagination"]);
    assert!(answer["pagination"]["total"].is_u64(), "{id}");
    assert!(answer["pagination"]["hasMore"].is_boolean(), "{id}");
}

fn fits_row(id: &str, answer: &Value) {
    let response = &documented(id)["response"];
    match response["kind"].as_str().unwrap() {
        "list" => fits_list(id, response, answer),
        "object" => {
            let fields = response["fields"].as_object().unwrap();
            fits(id, fields, &response["enum"], answer);
            for (name, value) in response["values"].as_object().into_iter().flatten() {
                assert_eq!(&answer[name], value, "{id}");
            }
        }
        "data_array" => {
            let record = &response["records"]["entity"];
            let data = answer["data"].as_array().unwrap();
            assert_eq!(
                (data.len(), answer.as_object().unwrap().len()),
                (1, 1),
                "{id}"
            );
            for entity in data {
                fits(
                    id,
                    record["fields"].as_object().unwrap(),
                    &record["enum"],
                    entity,
                );
            }
        }
        other => panic!("{id}: unknown kind {other}"),
    }
}

struct Ids {
    platform: String,
    parent: String,
    child: String,
    resource: String,
}

/// Every row of the slice with a request that succeeds, in an order in which all of them do.
fn requests(ids: &Ids) -> Vec<(&'static str, u16, &'static str, String, Value)> {
    let Ids {
        platform: p,
        parent,
        child,
        resource: r,
    } = ids;
    let (none, why) = (Value::Null, json!({ "reason": "because" }));
    let of = |rest: &str| at(p, rest);
    let own = format!("/entities/{child}/resources");
    let one = format!("/resources/{r}");
    let entity =
        |slug: &str| json!({ "name": "E", "slug": slug, "type": "tenant", "parentId": null });
    let plain = |id, path: &str| (id, 200, "GET", path.to_owned(), none.clone());
    vec![
        plain("registry-039", "/api/v1/platforms"),
        (
            "registry-040",
            201,
            "POST",
            "/api/v1/platforms".to_owned(),
            json!({ "name": "P", "slug": "p" }),
        ),
        plain("registry-041", &of("")),
        (
            "registry-042",
            200,
            "PATCH",
            of(""),
            json!({ "name": "Looms", "tier": "growth" }),
        ),
        plain("registry-048", &of("/lifecycle")),
        plain("registry-049", "/api/v1/lookup?cfName=engines-db"),
        plain("registry-050", &of("/resources")),
        plain("registry-051", &of(&own)),
        (
            "registry-052",
            201,
            "POST",
            of(&own),
            resource_body("other-db"),
        ),
        plain("registry-053", &of(&one)),
        (
            "registry-054",
            200,
            "PATCH",
            of(&one),
            json!({ "status": "provisioning", "config": { "a": 1 } }),
        ),
        ("registry-055", 200, "DELETE", of(&one), none.clone()),
        plain("registry-056", &of("/entities")),
        (
            "registry-057",
            201,
            "POST",
            of("/entities"),
            entity("brand-new"),
        ),
        plain("registry-058", &of(&format!("/entities/{child}"))),
        (
            "registry-059",
            200,
            "PATCH",
            of(&format!("/entities/{child}")),
            json!({ "name": "Kid" }),
        ),
        plain("registry-061", &of(&format!("/entities/{child}/ancestors"))),
        plain(
            "registry-062",
            &of(&format!("/entities/{parent}/descendants")),
        ),
        (
            "registry-060",
            200,
            "DELETE",
            of(&format!("/entities/{child}?cascade=true")),
            none.clone(),
        ),
        plain("registry-073", &of("/audit")),
        plain("registry-074", "/api/v1/audit"),
        ("registry-044", 200, "POST", of("/suspend"), why.clone()),
        ("registry-045", 200, "POST", of("/restore"), why.clone()),
        ("registry-046", 200, "POST", of("/cancel"), why.clone()),
        ("registry-043", 200, "DELETE", of(""), none),
        ("registry-047", 200, "POST", of("/delete"), why),
    ]
}

#[tokio::test]
async fn every_row_answers_exactly_what_is_documented() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let resource = world.resource(&platform, &child, "engines-db").await;
    let ids = Ids {
        platform,
        parent,
        child,
        resource,
    };
    let requests = requests(&ids);
    for (id, status, method, path, body) in &requests {
        let answer = world
            .send(&operator(), method, path, &[], body.clone())
            .await;
        assert_eq!(answer.status.as_u16(), *status, "{id}: {}", answer.json);
        let documented = documented(id);
        assert_eq!(documented["method"], *method, "{id}");
        fits_row(id, &answer.json);
        assert!(!answer.header("x-request-id").is_empty(), "{id}");
    }
    let tested: Vec<&str> = requests.iter().map(|r| r.0).collect();
    let of_the_slice = (39..=62)
        .chain([73, 74])
        .map(|n| format!("registry-{n:03}"));
    for id in of_the_slice {
        assert!(tested.contains(&id.as_str()), "{id} is not tested");
    }
}

#[tokio::test]
async fn openapi_names_every_row_of_the_table_in_its_documented_form() {
    let world = World::new();
    let document = world
        .get(&operator(), "/openapi.json")
        .await
        .expect(200)
        .json;
    for row in world.service.endpoints() {
        let method = row.method().as_str().to_lowercase();
        let operation = &document["paths"][row.path()][&method];
        assert_eq!(
            operation["operationId"],
            row.operation(),
            "{method} {}",
            row.path()
        );
        assert!(
            !operation["summary"].as_str().unwrap_or_default().is_empty(),
            "{}",
            row.operation()
        );
    }
}
