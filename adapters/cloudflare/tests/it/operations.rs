//! Every operation of the port, with its preparation and the check of its effect.

use core_cloudflare_fake::Kind;
use core_domain::kernel::Secret;
use core_domain::port::{
    HostnameState, Infrastructure, ProviderError, RouteHostname, ServeHostname, SetSecrets,
    SiteDeployment, SiteState,
};
use core_domain::registry::ResourceType;

use crate::world::{OWNER, World, request, resource, site, upload};

/// A platform hostname, a wildcard, and a customer's hostname.
pub(crate) const OURS: &str = "shop.example.com";
pub(crate) const WILDCARD: &str = "*.shops.example.com";
pub(crate) const CUSTOMERS: &str = "shop.customer.org";

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Observe(ResourceType),
    Create(ResourceType),
    Remove(ResourceType),
    Owned(ResourceType),
    DeploySite,
    SiteDeployment,
    SetSecrets(ResourceType),
    SecretNames(ResourceType),
    Route(ResourceType, &'static str),
    RouteHostname(ResourceType, &'static str),
    RemoveRoute(ResourceType, &'static str),
    ServedHostname,
    ServeHostname,
    StopServing,
}

use Operation as O;

/// The types that have secrets.
const WITH_SECRETS: [ResourceType; 2] = [ResourceType::Worker, ResourceType::Pages];

/// The types that hostnames can serve, with the hostname.
const ROUTED: [(ResourceType, &str); 3] = [
    (ResourceType::Worker, OURS),
    (ResourceType::Worker, WILDCARD),
    (ResourceType::Pages, OURS),
];

/// The objects that a platform hostname consists of.
const ROUTES: [Kind; 3] = [Kind::DnsRecord, Kind::WorkerDomain, Kind::Route];

/// Returns all operations, with every resource type that they support.
pub(crate) fn all() -> Vec<Operation> {
    let every = ResourceType::ALL.iter().copied();
    let every = every.flat_map(|of| [O::Observe(of), O::Create(of), O::Remove(of), O::Owned(of)]);
    let secrets = WITH_SECRETS.into_iter();
    let secrets = secrets.flat_map(|of| [O::SetSecrets(of), O::SecretNames(of)]);
    let routes = ROUTED.into_iter();
    let routes = routes.flat_map(|(of, to)| {
        [
            O::Route(of, to),
            O::RouteHostname(of, to),
            O::RemoveRoute(of, to),
        ]
    });
    let others = [
        O::DeploySite,
        O::SiteDeployment,
        O::ServedHostname,
        O::ServeHostname,
        O::StopServing,
    ];
    every.chain(secrets).chain(routes).chain(others).collect()
}

pub(crate) fn kind(resource_type: ResourceType) -> Kind {
    match resource_type {
        ResourceType::Worker => Kind::Worker,
        ResourceType::Pages => Kind::PagesProject,
        ResourceType::D1 => Kind::D1,
        ResourceType::R2 => Kind::R2,
        ResourceType::Kv => Kind::Kv,
        ResourceType::Queue => Kind::Queue,
    }
}

fn of_secrets(resource_type: ResourceType) -> SetSecrets {
    SetSecrets {
        resource: resource(resource_type),
        owner: OWNER.to_owned(),
        secrets: vec![("API_KEY".to_owned(), Secret::new("correct horse battery"))],
        deleted: Vec::new(),
    }
}

fn of_route(resource_type: ResourceType, hostname: &str) -> RouteHostname {
    RouteHostname {
        hostname: hostname.to_owned(),
        target: resource(resource_type),
        owner: OWNER.to_owned(),
        effect_key: "effect".to_owned(),
    }
}

fn of_hostname() -> ServeHostname {
    ServeHostname {
        hostname: CUSTOMERS.to_owned(),
        target_dns: OURS.to_owned(),
        target: resource(ResourceType::Worker),
        owner: OWNER.to_owned(),
        effect_key: "effect".to_owned(),
    }
}

fn front_page() -> core_domain::port::SiteUpload {
    upload(
        site([("index.html", "<h1>hi</h1>\n"), ("a.css", "a{}")]),
        "production",
        "key-1",
    )
}

/// Polls until a deployment is active or failed.
pub(crate) async fn wait_for_deployment(world: &World, key: &str) -> SiteDeployment {
    let project = resource(ResourceType::Pages).name;
    for _ in 0..20 {
        let found = world
            .cloudflare
            .site_deployment(&project, key)
            .await
            .unwrap()
            .unwrap();
        if found.state != SiteState::Deploying {
            return found;
        }
    }
    panic!("the deployment does not finish");
}

impl Operation {
    /// Creates the objects that the operation requires.
    pub(crate) async fn prepare(self, world: &World) -> Result<(), ProviderError> {
        let cloudflare = &world.cloudflare;
        match self {
            O::Create(_) => {}
            O::ServeHostname => drop(cloudflare.create(&request(ResourceType::Worker)).await?),
            O::Observe(of) | O::Remove(of) | O::Owned(of) | O::SetSecrets(of) => {
                cloudflare.create(&request(of)).await?;
            }
            O::RouteHostname(of, _) => drop(cloudflare.create(&request(of)).await?),
            O::SecretNames(of) => {
                cloudflare.create(&request(of)).await?;
                cloudflare.set_secrets(&of_secrets(of)).await?;
            }
            O::Route(of, hostname) | O::RemoveRoute(of, hostname) => {
                cloudflare.create(&request(of)).await?;
                cloudflare.route_hostname(&of_route(of, hostname)).await?;
            }
            O::DeploySite => drop(cloudflare.create(&request(ResourceType::Pages)).await?),
            O::SiteDeployment => {
                cloudflare.create(&request(ResourceType::Pages)).await?;
                cloudflare.deploy_site(front_page()).await?;
            }
            O::ServedHostname | O::StopServing => {
                cloudflare.create(&request(ResourceType::Worker)).await?;
                cloudflare.serve_hostname(&of_hostname()).await?;
            }
        }
        Ok(())
    }

    /// Runs the operation and asserts its result.
    pub(crate) async fn perform(self, world: &World) -> Result<(), ProviderError> {
        let cloudflare = &world.cloudflare;
        match self {
            O::Observe(of) => {
                let found = cloudflare.observe(&resource(of)).await?.unwrap();
                assert!(!found.id.is_empty());
            }
            O::Create(of) => drop(cloudflare.create(&request(of)).await?),
            O::Remove(of) => cloudflare.remove(&resource(of), OWNER).await?,
            O::Owned(of) => {
                let owned = cloudflare.list_owned(OWNER, of, None).await?;
                let names: Vec<_> = owned
                    .objects
                    .into_iter()
                    .map(|object| object.name)
                    .collect();
                assert_eq!(names, [resource(of).name]);
            }
            O::DeploySite => drop(cloudflare.deploy_site(front_page()).await?),
            O::SiteDeployment => {
                let project = resource(ResourceType::Pages).name;
                assert!(
                    cloudflare
                        .site_deployment(&project, "key-1")
                        .await?
                        .is_some()
                );
            }
            O::SetSecrets(of) => cloudflare.set_secrets(&of_secrets(of)).await?,
            O::SecretNames(of) => {
                assert_eq!(cloudflare.secret_names(&resource(of)).await?, ["API_KEY"]);
            }
            O::Route(of, hostname) => {
                let found = cloudflare.get_route(hostname).await?.unwrap();
                assert_eq!(found.target, resource(of).name);
            }
            O::RouteHostname(of, hostname) => {
                let made = cloudflare.route_hostname(&of_route(of, hostname)).await?;
                assert_eq!(made.target, resource(of).name);
            }
            O::RemoveRoute(of, hostname) => {
                cloudflare.remove_route(hostname, &resource(of)).await?
            }
            O::ServedHostname => {
                let target = resource(ResourceType::Worker);
                let found = cloudflare.get_served_hostname(CUSTOMERS, OWNER, &target);
                let found = found.await?.unwrap();
                assert!(
                    !matches!(found.state, HostnameState::Failed(_)),
                    "{found:?}"
                );
            }
            O::ServeHostname => drop(cloudflare.serve_hostname(&of_hostname()).await?),
            O::StopServing => {
                let target = resource(ResourceType::Worker);
                cloudflare.stop_serving(CUSTOMERS, OWNER, &target).await?;
            }
        }
        Ok(())
    }

    /// Asserts that the operation took effect exactly once.
    pub(crate) async fn check(self, world: &World) {
        let count = |kind| world.fake.count(kind);
        match self {
            O::Create(of) => {
                assert_eq!(count(kind(of)), 1);
                let found = world
                    .cloudflare
                    .observe(&resource(of))
                    .await
                    .unwrap()
                    .unwrap();
                let platform = core_domain::kernel::PlatformId::parse(OWNER).unwrap();
                assert!(found.belongs_to(&resource(of).name, &platform));
            }
            O::Remove(of) => assert_eq!(count(kind(of)), 0),
            O::DeploySite => {
                let project = resource(ResourceType::Pages).name;
                wait_for_deployment(world, "key-1").await;
                let hosted = world.fake.pages_file(&project, "/index.html");
                assert_eq!(hosted.unwrap(), "<h1>hi</h1>\n");
            }
            O::SetSecrets(of) => {
                let names = world.cloudflare.secret_names(&resource(of)).await.unwrap();
                assert_eq!(names, ["API_KEY"]);
            }
            O::RouteHostname(of, hostname) => {
                let found = world.cloudflare.get_route(hostname).await.unwrap().unwrap();
                assert_eq!(found.target, resource(of).name);
                for kind in ROUTES {
                    assert!(count(kind) <= 1, "{kind:?}");
                }
            }
            O::RemoveRoute(_, hostname) => {
                assert_eq!(world.cloudflare.get_route(hostname).await.unwrap(), None);
                for kind in ROUTES {
                    assert_eq!(count(kind), 0, "{kind:?}");
                }
            }
            O::ServeHostname => assert_eq!(count(Kind::CustomHostname), 1),
            O::StopServing => assert_eq!(count(Kind::CustomHostname), 0),
            O::Observe(_)
            | O::Owned(_)
            | O::SiteDeployment
            | O::SecretNames(_)
            | O::Route(..)
            | O::ServedHostname => {}
        }
    }
}
