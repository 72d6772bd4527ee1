//! Tests of the secrets of workers and sites.

use core_cloudflare_fake::Fault;
use core_domain::kernel::Secret;
use core_domain::port::{Infrastructure, ProviderError, SetSecrets};
use core_domain::registry::ResourceType;

use crate::world::{OWNER, STRANGER, World, resource};

fn secrets<const N: usize>(of: ResourceType, secrets: [(&str, &str); N]) -> SetSecrets {
    let secrets = secrets.into_iter();
    SetSecrets {
        resource: resource(of),
        owner: OWNER.to_owned(),
        secrets: secrets
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .collect(),
        deleted: Vec::new(),
    }
}

#[tokio::test]
async fn worker_secrets_are_set_as_one_version() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let name = resource(ResourceType::Worker).name;
    let many = secrets(ResourceType::Worker, [("B", "2"), ("A", "1")]);
    world.cloudflare.set_secrets(&many).await.unwrap();
    let again = secrets(ResourceType::Worker, [("B", "3")]);
    world.cloudflare.set_secrets(&again).await.unwrap();
    assert_eq!(world.fake.script(&name).unwrap().versions, 3);
    assert_eq!(world.fake.secrets(&name)["A"], "1");
    assert_eq!(world.fake.secrets(&name)["B"], "3");
    let names = world.cloudflare.secret_names(&many.resource).await.unwrap();
    assert_eq!(names, ["A", "B"]);
}

#[tokio::test]
async fn site_secrets_apply_to_both_environments_and_keep_the_owner() {
    let world = World::new().await;
    world.make(ResourceType::Pages).await;
    let project = resource(ResourceType::Pages);
    let one = secrets(ResourceType::Pages, [("KEY", "v")]);
    world.cloudflare.set_secrets(&one).await.unwrap();
    for environment in ["production", "preview"] {
        let variables = world.fake.pages_variables(&project.name, environment);
        assert_eq!(
            (&*variables["KEY"], &*variables["CORE_OWNER"]),
            ("v", OWNER)
        );
    }
    assert_eq!(
        world.cloudflare.secret_names(&project).await.unwrap(),
        ["KEY"]
    );
    let mark = secrets(ResourceType::Pages, [("CORE_OWNER", STRANGER)]);
    let refused = world.cloudflare.set_secrets(&mark).await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn latest_version_is_deployed_before_it_gets_secrets() {
    let world = World::new().await;
    world.make(ResourceType::Worker).await;
    let path = "workers/scripts/*/secrets-bulk";
    let fault = Fault::Refusal {
        status: 400,
        code: 10_215,
    };
    world.fake.inject(world.matcher("PATCH", path), fault);
    let one = secrets(ResourceType::Worker, [("KEY", "v")]);
    world.cloudflare.set_secrets(&one).await.unwrap();
    assert_eq!(
        world
            .paths("POST")
            .iter()
            .filter(|path| path.ends_with("/deployments"))
            .count(),
        1
    );
    assert_eq!(world.fake.secrets(&one.resource.name)["KEY"], "v");
}

#[tokio::test]
async fn secrets_require_an_existing_object_of_the_owner() {
    for of in [ResourceType::Worker, ResourceType::Pages] {
        let world = World::new().await;
        let mut request = secrets(of, [("KEY", "v")]);
        let missing = world.cloudflare.set_secrets(&request).await;
        assert!(
            matches!(missing, Err(ProviderError::Permanent(_))),
            "{missing:?}"
        );
        assert_eq!(
            world.cloudflare.secret_names(&resource(of)).await.unwrap(),
            [""; 0]
        );
        world.make(of).await;
        request.owner = STRANGER.to_owned();
        let foreign = world.cloudflare.set_secrets(&request).await;
        assert_eq!(foreign, Err(ProviderError::NameTaken(resource(of).name)));
        assert_eq!(
            world.cloudflare.secret_names(&resource(of)).await.unwrap(),
            [""; 0]
        );
    }
    let world = World::new().await;
    let refused = world
        .cloudflare
        .set_secrets(&secrets(ResourceType::D1, [("KEY", "v")]))
        .await;
    assert!(
        matches!(refused, Err(ProviderError::Permanent(_))),
        "{refused:?}"
    );
}
