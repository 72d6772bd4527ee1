//! Creates the records that tests start with.

use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::iam::{Member, Organization, OrganizationType, RoleMappings};
use core_domain::kernel::{
    Caller, MemberId, Membership, Name, PlatformId, Role, SessionId, Slug, UserId,
};
use core_domain::port::{
    Infrastructure, Mode, ObjectRequest, Repository, ResourceRef, UnitOfWork, Within,
};
use core_domain::registry::ResourceType;
use core_domain::shared::{AuditEntry, AuditQuery, AuditStream};
use core_http::kernel::testing::{Answer, organization_of};
use serde_json::{Value, json};

use super::callers::operator;
use super::{SITE, World};
use core_http::kernel::{Body, bytes_body, testing::SERVICE_KEY};

pub(crate) const PLATFORMS: &str = "/api/v1/platforms";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// Returns the path of a platform, followed by `rest`.
pub(crate) fn platform_path(platform: &str, rest: &str) -> String {
    format!("{PLATFORMS}/{platform}{rest}")
}

pub(crate) fn resource_body(cf_name: &str) -> Value {
    json!({
        "stackId": "st1",
        "resourceType": "d1",
        "serviceName": "db",
        "environment": "prod",
        "cfName": cf_name,
    })
}

/// A person who has signed up, with their session.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) user_id: String,
    pub(crate) email: String,
    pub(crate) session_id: String,
    pub(crate) token: String,
    /// The session cookie, as a browser sends it back.
    pub(crate) cookie: String,
}

impl Person {
    fn of(signed_in: &Answer, session_id: String) -> Self {
        let cookies = signed_in.headers.get_all("set-cookie").iter();
        let mut cookies = cookies.filter_map(|value| value.to_str().ok());
        let cookie = cookies.find(|c| c.starts_with("better-auth.session_token="));
        let cookie = cookie.unwrap_or_default().split(';').next().unwrap();
        Self {
            user_id: signed_in.json["user"]["id"].as_str().unwrap().to_owned(),
            email: signed_in.json["user"]["email"].as_str().unwrap().to_owned(),
            session_id,
            token: signed_in.text("token").to_owned(),
            cookie: cookie.to_owned(),
        }
    }

    /// Returns the caller that a gateway passes on for this person, who acts for no organization.
    pub(crate) fn caller(&self) -> Caller {
        self.caller_with(None)
    }

    /// Returns the caller that a gateway passes on for this person, with a role in the organization of a platform.
    pub(crate) fn member_of(&self, platform: &str, role: Role) -> Caller {
        let known = core_http::kernel::testing::member(&self.user_id, platform, role);
        self.caller_with(known.unwrap().membership().cloned())
    }

    fn caller_with(&self, membership: Option<Membership>) -> Caller {
        Caller::User {
            user_id: UserId::parse(&self.user_id).unwrap(),
            session_id: SessionId::parse(&self.session_id),
            service: None,
            membership,
        }
    }
}

impl World {
    /// Creates a platform as the operator and returns its id. Advances the clock by a second, so that platforms differ
    /// in age.
    pub(crate) async fn create_platform(&self, slug: &str) -> String {
        self.platform_by(&operator(), slug).await
    }

    /// Like [`World::platform`], as this caller. The platform belongs to the organization that the caller acts for.
    pub(crate) async fn platform_by(&self, caller: &Caller, slug: &str) -> String {
        let body = json!({ "name": "Engines", "slug": slug });
        let created = self.registry.post(caller, PLATFORMS, body).await;
        self.tick(1);
        created.expect(201).id()
    }

    pub(crate) async fn tenant(&self, platform: &str, slug: &str) -> String {
        self.entity(platform, slug, "tenant", None).await
    }

    pub(crate) async fn subtenant(&self, platform: &str, parent: &str, slug: &str) -> String {
        self.entity(platform, slug, "subtenant", Some(parent)).await
    }

    async fn entity(&self, platform: &str, slug: &str, kind: &str, parent: Option<&str>) -> String {
        let body = json!({ "name": slug, "slug": slug, "type": kind, "parentId": parent });
        let path = platform_path(platform, "/entities");
        let created = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        created.expect(201).id()
    }

    pub(crate) async fn resource(&self, platform: &str, entity: &str, cf_name: &str) -> String {
        let path = platform_path(platform, &format!("/entities/{entity}/resources"));
        let body = resource_body(cf_name);
        let created = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        created.expect(201).id()
    }

    /// Creates a worker of an entity, active in the registry and at the provider. Returns the id of its resource.
    pub(crate) async fn active_worker(
        &self,
        platform: &str,
        entity: &str,
        cf_name: &str,
    ) -> String {
        let path = platform_path(platform, &format!("/entities/{entity}/resources"));
        let body = json!({ "stackId": "st1", "resourceType": "worker", "serviceName": "api", "cfName": cf_name,
            "environment": "prod" });
        let created = self.registry.post(&operator(), &path, body).await;
        let id = created.expect(201).id();
        let path = platform_path(platform, &format!("/resources/{id}"));
        for status in ["provisioning", "active"] {
            let change = json!({ "status": status });
            let changed = self
                .registry
                .send(&operator(), "PATCH", &path, &[], change)
                .await;
            let _ = changed.expect(200);
        }
        self.create_worker_object(platform, cf_name).await;
        id
    }

    /// Creates a worker at the provider.
    pub(crate) async fn create_worker_object(&self, platform: &str, cf_name: &str) {
        let request = ObjectRequest {
            resource: ResourceRef {
                resource_type: ResourceType::Worker,
                name: cf_name.to_owned(),
            },
            owner: platform.to_owned(),
            effect_key: cf_name.to_owned(),
            config: json!({}),
        };
        self.provider.create(&request).await.unwrap();
    }

    /// Creates an active deployment of a branch, performed by another program. Advances the clock by a second.
    pub(crate) async fn active_deployment(&self, platform: &str, branch: &str) -> String {
        let path = platform_path(platform, "/deployments");
        let key = format!("{branch}-{}", self.app.clock.now().millis());
        let body = json!({ "idempotencyKey": key, "userId": "ci", "projectName": "site", "branch": branch });
        let id = self
            .registry
            .post(&operator(), &path, body)
            .await
            .expect(201)
            .id();
        let path = platform_path(platform, &format!("/deployments/{id}"));
        let change = json!({ "status": "active" });
        let changed = self
            .registry
            .send(&operator(), "PATCH", &path, &[], change)
            .await;
        let _ = changed.expect(200);
        self.tick(1);
        id
    }

    pub(crate) async fn workspace_stack(&self, platform: &str, tenant: &str, name: &str) -> String {
        let body = json!({ "tenantId": tenant, "name": name });
        let path = platform_path(platform, "/stacks");
        let created = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        created.expect(201).id()
    }

    /// Sets a key of the configuration of a platform. Advances the clock by a second.
    pub(crate) async fn set_config(&self, platform: &str, key: &str, body: Value) -> Answer {
        let path = platform_path(platform, &format!("/config/{key}"));
        let caller = operator();
        let set = self.registry.send(&caller, "PUT", &path, &[], body).await;
        self.tick(1);
        set
    }

    /// Requests the activation of a feature in `prod` and returns the id of the job. Advances the clock by a second.
    pub(crate) async fn activate_feature(
        &self,
        platform: &str,
        entity: &str,
        feature: &str,
    ) -> String {
        let path = platform_path(platform, &format!("/entities/{entity}/features/activate"));
        let body = json!({ "featureId": feature, "version": "1.0.0", "environment": "prod" });
        let asked = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        asked.expect(202).text("provisionJobId").to_owned()
    }

    /// Records the status of a secret of a resource. Advances the clock by a second.
    pub(crate) async fn set_secret_status(
        &self,
        platform: &str,
        resource: &str,
        name: &str,
        status: &str,
    ) -> Answer {
        let path = platform_path(platform, &format!("/resources/{resource}/secrets/{name}"));
        let noted = self
            .registry
            .post(&operator(), &path, json!({ "status": status }))
            .await;
        self.tick(1);
        assert!(noted.status.is_success(), "{}", noted.json);
        noted
    }

    /// Creates the organization of a platform and returns its id. Its members are the people in [`super::callers`].
    pub(crate) async fn organization_of(&self, platform: &str) -> String {
        let mut uow = self.app.store.begin(Mode::Write).await.unwrap();
        let mut now = uow.now().await.unwrap();
        let organization = Organization {
            id: organization_of(platform),
            name: Name::parse("Engineers").unwrap(),
            slug: Slug::parse("engineers").unwrap(),
            kind: OrganizationType::Tenant,
            platform_id: PlatformId::parse(platform),
            logo: None,
            metadata: None,
            roles: RoleMappings::default(),
            created_at: now,
            updated_at: now,
        };
        let id = organization.id.clone();
        let repositories = uow.repositories(RecordKey::for_tests());
        let organizations = repositories.organizations();
        organizations.insert(organization).await.unwrap();
        for (user, role) in [
            ("olga", Role::OWNER),
            ("adam", Role::ADMIN),
            ("mary", Role::MEMBER),
        ] {
            now = now.plus(Duration::from_millis(1));
            let member = Member {
                id: MemberId::generate(now, self.app.entropy.as_ref()),
                organization_id: id.clone(),
                user_id: UserId::parse(user).unwrap(),
                role: role.into(),
                grants: Vec::new(),
                created_at: now,
            };
            let members = uow.repositories(RecordKey::for_tests()).members();
            members.insert(member).await.unwrap();
        }
        uow.commit().await.unwrap();
        id.to_string()
    }

    /// Grants a permission to a member. Returns the id of the grant.
    pub(crate) async fn create_grant(
        &self,
        organization: &str,
        user: &str,
        permission: &str,
    ) -> String {
        let grant = json!({
            "orgId": organization, "userId": user, "permission": permission,
            "granted": true, "grantedBy": "olga",
        });
        let granted = self.iam.post(&operator(), "/api/core/grants", grant).await;
        granted.expect(201).id()
    }

    /// Denies a permission to a member.
    pub(crate) async fn deny_permission(&self, organization: &str, user: &str, permission: &str) {
        let denial = json!({
            "orgId": organization, "userId": user, "permission": permission,
            "granted": false, "grantedBy": user,
        });
        let denied = self.iam.post(&operator(), "/api/core/grants", denial).await;
        let _ = denied.expect(201);
    }

    /// Invites an address with the suite's own route. Returns the id of the invitation. Advances the clock by a second.
    pub(crate) async fn invite_as_operator(&self, organization: &str, email: &str) -> String {
        let path = format!("/api/core/organizations/{organization}/invitations");
        let body = json!({ "email": email, "inviterId": "olga" });
        let invited = self.iam.post(&operator(), &path, body).await;
        self.tick(1);
        invited.expect(201).id()
    }

    /// Maps a role of the organization and grants a permission to a member. Returns the role and the id of the grant.
    pub(crate) async fn role_and_grant_in(&self, organization: &str) -> (String, String) {
        let mapping =
            json!({ "orgId": organization, "role": "auditor", "permissions": ["audit:read"] });
        let mapped = self.iam.post(&operator(), "/api/core/roles", mapping).await;
        let _ = mapped.expect(200);
        let grant = self
            .create_grant(organization, "adam", "entity:write")
            .await;
        ("auditor".to_owned(), grant)
    }

    /// Creates an API key as this caller.
    pub(crate) async fn create_api_key(&self, caller: &Caller, body: Value) -> Answer {
        let path = "/api/auth/api-key/create";
        self.iam.post(caller, path, body).await
    }

    /// Queues the job that creates the infrastructure of a platform. Returns the id of the job.
    pub(crate) async fn provision(&self, platform: &str) -> String {
        let body = json!({
            "platformId": platform, "planTier": "starter", "billingEmail": "ada@example.org",
        });
        let path = "/api/v1/provision/platform";
        let queued = self.provisioning.post(&operator(), path, body).await;
        queued.expect(202).text("jobId").to_owned()
    }

    /// Runs a job that the provider refuses. Returns the ids of the job and of its dead letter. Every other queued job
    /// fails too.
    pub(crate) async fn dead_letter(&self, platform: &str) -> (String, String) {
        let job = self.provision(platform).await;
        self.provider.set_failing(true);
        self.run_jobs().await;
        self.provider.set_failing(false);
        let entry = self.job(&job).await["dlqEntryId"].clone();
        (job, entry.as_str().unwrap().to_owned())
    }

    /// Creates a hold on jobs and returns its id.
    pub(crate) async fn create_hold(&self, body: Value) -> String {
        let path = "/api/v1/provision/holds";
        let set = self.provisioning.post(&operator(), path, body).await;
        set.expect(201).id()
    }

    /// Creates a stack template with version 1.0.0.
    pub(crate) async fn template(&self, name: &str) {
        let body = json!({ "name": name, "displayName": "Web", "description": "A web shop" });
        let created = self.stacks.post(&operator(), "/api/v1/stacks", body).await;
        let _ = created.expect(201);
        let version = json!({
            "version": "1.0.0", "stackDefinition": { "resources": [] }, "coreSdkVersion": "1.0.0",
        });
        let path = format!("/api/v1/stacks/{name}/versions");
        let published = self.stacks.post(&operator(), &path, version).await;
        let _ = published.expect(201);
    }

    /// Starts a deployment of a site and returns its id.
    pub(crate) async fn deployment(&self, platform: &str, caller: &Caller) -> String {
        let path = platform_path(platform, "/deploy");
        let deployed = self.deploy(&path, caller, &[]).await;
        deployed.expect(202).text("deploymentId").to_owned()
    }

    pub(crate) async fn deploy(
        &self,
        path: &str,
        caller: &Caller,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.upload(path, caller, headers, bytes_body(SITE)).await
    }

    /// Like [`World::deploy`], with any body.
    pub(crate) async fn upload(
        &self,
        path: &str,
        caller: &Caller,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Answer {
        let mut request = http::Request::post(path)
            .extension(std::sync::Arc::new(caller.clone()))
            .extension(core_http::kernel::ViaGateway);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.cli.raw(request.body(body).unwrap()).await
    }

    pub(crate) async fn sign_up(&self, email: &str) -> Person {
        let body = json!({ "name": "Ada", "email": email, "password": PASSWORD });
        let path = "/api/auth/sign-up/email";
        let signed_up = self.iam.post(&Caller::Anonymous, path, body).await;
        let signed_up = signed_up.expect(200);
        let session = self.session_of(signed_up.text("token")).await;
        Person::of(&signed_up, session)
    }

    pub(crate) async fn session_of(&self, token: &str) -> String {
        let bearer = format!("Bearer {token}");
        let request = http::Request::get("/api/auth/get-session").header("authorization", bearer);
        let request = request.body(core_http::kernel::empty_body()).unwrap();
        let found = self.iam.raw(request).await.expect(200);
        found.json["session"]["id"].as_str().unwrap().to_owned()
    }

    /// Sends a request to IAM with the service key, as over the network.
    pub(crate) async fn post_with_service_key(&self, path: &str, body: &Value) -> Answer {
        let request = http::Request::post(path)
            .header("authorization", format!("Bearer {SERVICE_KEY}"))
            .header("content-type", "application/json");
        let request = request.body(bytes_body(body.to_string())).unwrap();
        self.iam.raw(request).await
    }

    /// Returns the newest 100 audit entries of an action, newest first. Entries of `audit.read` have a stream of their
    /// own.
    pub(crate) async fn audit(&self, action: &str) -> Vec<AuditEntry> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let stream = match action {
            "audit.read" => AuditStream::Reads,
            _ => AuditStream::Changes,
        };
        let query = AuditQuery {
            stream,
            action: Some(action.to_owned()),
            ..AuditQuery::default()
        };
        let entries = audit_entries(uow.as_mut());
        let found = entries.list(Within::Installation, &query, 100).await;
        let found = found.unwrap().into_iter();
        found.map(core_domain::kernel::Stored::into_inner).collect()
    }
}

fn audit_entries(uow: &mut dyn UnitOfWork) -> &mut dyn Repository<AuditEntry> {
    uow.repositories(RecordKey::for_tests()).audit_entries()
}
