//! Compares the limits of this program with the OpenAPI documents of the server.

use serde_json::Value;

use crate::command::dotenv::{MAX_SECRETS, MAX_VALUE_BYTES};
use crate::inputs::{
    MAX_BRANCH_LENGTH, MAX_FEATURE_LENGTH, MAX_ID_LENGTH, MAX_MESSAGE_LENGTH, MAX_RESOURCE_LENGTH,
    MAX_SECRET_NAME_LENGTH, MAX_STACK_LENGTH, MAX_VERSION_LENGTH,
};
use crate::site::walk::{MAX_FILES, MAX_PATH_BYTES};

fn document(service: &str) -> Value {
    let folder = env!("CARGO_MANIFEST_DIR");
    let path = format!("{folder}/../../core-http/openapi/{service}.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns the schema of a parameter of an operation.
fn parameter<'d>(document: &'d Value, path: &str, method: &str, name: &str) -> &'d Value {
    let path = format!("/api/v1/platforms/{{platformId}}/{path}");
    let parameters = document["paths"][&path][method]["parameters"].as_array();
    let mut parameters = parameters.unwrap().iter();
    &parameters.find(|found| found["name"] == name).unwrap()["schema"]
}

#[test]
fn the_limits_are_those_of_the_server() {
    let (cli, provisioning) = (document("cli"), document("provisioning"));
    let schemas = &cli["components"]["schemas"];
    let deploy = |name| parameter(&cli, "deploy", "post", name);
    let limits = [
        (MAX_ID_LENGTH, &schemas["PlatformId"]),
        (MAX_SECRET_NAME_LENGTH, &schemas["SecretName"]),
        (MAX_FEATURE_LENGTH, &schemas["NewFeatureId"]),
        (
            MAX_FEATURE_LENGTH,
            &schemas["ActivatePlatformFeature"]["properties"]["version"],
        ),
        (MAX_MESSAGE_LENGTH, deploy("message")),
        (
            MAX_RESOURCE_LENGTH,
            parameter(&cli, "logs", "get", "resource"),
        ),
        (
            MAX_BRANCH_LENGTH,
            parameter(&cli, "deployments", "get", "branch"),
        ),
        (
            MAX_STACK_LENGTH,
            &provisioning["components"]["schemas"]["ActivateStack"]["properties"]["stackId"],
        ),
        (
            MAX_VERSION_LENGTH,
            &provisioning["components"]["schemas"]["SemVer"],
        ),
    ];
    for (limit, schema) in limits {
        assert_eq!(schema["maxLength"], limit, "{schema}");
    }
    let patterns = [
        (&schemas["PlatformId"], "^[A-Za-z0-9_.:-]+$"),
        (&schemas["SecretName"], "^[A-Z][A-Z0-9_]{0,127}$"),
        (deploy("x-core-deploy-branch"), "^[A-Za-z0-9._/-]{1,255}$"),
    ];
    for (schema, pattern) in patterns {
        assert_eq!(schema["pattern"], pattern);
    }
    let files = &schemas["NewPlan"]["properties"]["files"];
    assert_eq!(files["maxItems"], MAX_FILES);
    let path = &schemas["PlannedFile"]["properties"]["path"];
    assert_eq!(path["maxLength"], MAX_PATH_BYTES);
    let secrets = &schemas["SetPlatformSecrets"]["properties"]["secrets"];
    assert_eq!(secrets["maxProperties"], MAX_SECRETS);
    assert_eq!(
        secrets["additionalProperties"]["maxLength"],
        MAX_VALUE_BYTES
    );
}
