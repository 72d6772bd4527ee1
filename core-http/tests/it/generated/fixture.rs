//! A world with records for every endpoint, and valid requests that refer to these records.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use core_domain::kernel::{Caller, Role};
use core_http::kernel::testing::member;
use core_http::kernel::{Endpoint, Service, ViaGateway, bytes_body, empty_body};
use futures_util::FutureExt;
use http::{Method, Request};
use serde_json::{Map, Value, json};

use super::samples::{LowestRole, Sample, samples};
use crate::world::{
    Answer, Api, Person, SITE, WEBHOOKS, World, WorldImage, admin, operator, owner, plain_member,
    platform_path, user_without_organization, webhooks_of,
};

/// A world with records of every kind.
pub(super) struct Fixture {
    pub(super) world: World,
    /// The ids of the records, by the name of the path parameter or body field.
    pub(super) ids: BTreeMap<&'static str, String>,
    /// A person without access to the platform.
    pub(super) person: Person,
}

/// A request that can be changed before it is sent.
#[derive(Clone, Debug)]
pub(super) struct TestRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: Vec<(String, String)>,
    /// The JSON body; `null` if there is none.
    pub(super) body: Value,
    pub(super) uploads: bool,
}

impl TestRequest {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn with_query(mut self, query: &str) -> Self {
        self.query = if self.query.is_empty() {
            query.to_owned()
        } else {
            format!("{}&{query}", self.query)
        };
        self
    }

    /// Removes the cookies and the `Authorization` header.
    pub(super) fn without_credentials(mut self) -> Self {
        let credential = |name: &str| name == "cookie" || name == "authorization";
        self.headers.retain(|(name, _)| !credential(name));
        self
    }

    /// Sets a field of the body, or removes it if the value is `None`.
    pub(super) fn with_field(mut self, field: &str, value: Option<Value>) -> Self {
        let mut body = self.body.as_object().cloned().unwrap_or_default();
        match value {
            Some(value) => body.insert(field.to_owned(), value),
            None => body.remove(field),
        };
        self.body = body.into();
        self
    }

    pub(super) fn uri(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        format!("{}?{}", self.path, self.query)
    }
}

/// An endpoint with its sample, its service and a fixture.
pub(super) struct Case {
    pub(super) fixture: Fixture,
    pub(super) sample: Sample,
    pub(super) service: Api,
}

/// The fixture of a service, to which every case of the service returns.
struct FixtureImage {
    world: WorldImage,
    ids: BTreeMap<&'static str, String>,
    person: Person,
}

/// Checks every endpoint of every service, each with a new fixture, and reports all failures together. A check returns
/// `false` to skip its endpoint.
///
/// Returns the number of endpoints that were checked and not skipped.
pub(super) async fn for_each_endpoint<F>(check: F) -> usize
where
    F: AsyncFn(&Case) -> bool,
{
    let (mut checked, mut failed) = (0, Vec::new());
    let mut images = BTreeMap::new();
    let mut world = World::new();
    for sample in samples() {
        let case = Case::of(world, sample, &mut images).await;
        match AssertUnwindSafe(check(&case)).catch_unwind().await {
            Ok(counts) => {
                checked += usize::from(counts);
                world = case.fixture.world;
            }
            Err(_) => {
                failed.push(sample.operation);
                world = World::new();
                images.clear();
            }
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
    checked
}

impl Case {
    /// Creates the case of a sample and sends the requests that must come before its own.
    async fn of(
        world: World,
        sample: Sample,
        images: &mut BTreeMap<&'static str, FixtureImage>,
    ) -> Self {
        let services = world.services().map(|api| api.0.clone());
        let with_row = |service: &&Service| {
            service
                .endpoints()
                .iter()
                .any(|row| row.operation() == sample.operation)
        };
        let service = services.iter().find(with_row).unwrap().name();
        let fixture = match images.get(service) {
            Some(image) => Fixture {
                world: world.with_image(&image.world),
                ids: image.ids.clone(),
                person: image.person.clone(),
            },
            None => {
                let fixture = Fixture::for_service(world.with_empty_store(), service).await;
                let image = FixtureImage {
                    world: fixture.world.image(),
                    ids: fixture.ids.clone(),
                    person: fixture.person.clone(),
                };
                images.insert(service, image);
                fixture
            }
        };
        let case = Self::within(fixture, sample);
        for step in sample.preparation {
            let path = case.fixture.fill_in(step.1);
            let (service, operator) = (&case.service, operator());
            let before = service.send(&operator, step.0, &path, &[], Value::Null);
            let before = before.await;
            assert!(before.is_success(), "{}: {}", case.name(), before.json);
        }
        case
    }

    /// Creates a case in a fixture that other cases share.
    pub(super) fn within(fixture: Fixture, sample: Sample) -> Self {
        let mut services = fixture.world.services().into_iter();
        let service = services.find(|api| find(api, sample.operation).is_some());
        let service = service.unwrap().clone();
        drop(services);
        Self {
            fixture,
            sample,
            service,
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        self.sample.operation
    }

    pub(super) fn row(&self) -> &Endpoint {
        find(&self.service, self.sample.operation).unwrap()
    }

    /// Returns the valid request of the endpoint.
    pub(super) fn valid_request(&self) -> TestRequest {
        let row = self.row();
        let uploads = row.takes_uploads();
        let headers = self.sample.headers.iter().map(|(name, value)| {
            let value = match *value {
                "{cookie}" => self.fixture.person.cookie.clone(),
                "{bearer}" => format!("Bearer {}", self.fixture.person.token),
                value => self.fixture.fill_in(value),
            };
            ((*name).to_owned(), value)
        });
        TestRequest {
            method: row.method().clone(),
            path: self.path(row.path()),
            query: self.fixture.fill_in(self.sample.query),
            headers: headers.collect(),
            body: self.body(),
            uploads,
        }
    }

    fn path(&self, pattern: &str) -> String {
        let mut path = pattern.to_owned();
        for (parameter, id) in self.sample.id_overrides {
            path = path.replace(&format!("{{{parameter}}}"), &self.fixture.ids[id]);
        }
        self.fixture.fill_in(&path)
    }

    /// Returns the id that the valid request has for a path parameter.
    pub(super) fn id_of(&self, parameter: &str) -> &str {
        let mut using = self.sample.id_overrides.iter();
        let other = using.find(|(name, _)| *name == parameter);
        &self.fixture.ids[other.map_or(parameter, |(_, id)| id)]
    }

    /// Returns the example body of the OpenAPI document, with the ids of the fixture and the fields of the sample.
    fn body(&self) -> Value {
        let mut body =
            match self.operation()["requestBody"]["content"]["application/json"]["example"].clone()
            {
                Value::Object(body) => body,
                _ => return Value::Null,
            };
        for (field, value) in &mut body {
            let known = self.fixture.ids.get(field.as_str());
            if let (Some(id), true) = (known, value.is_string()) {
                *value = json!(id);
            }
        }
        let own: Map<String, Value> = serde_json::from_str(self.sample.body).unwrap();
        for (field, value) in own {
            match value {
                Value::String(text) => {
                    body.insert(field, text_or_object(self.fixture.fill_in(&text)))
                }
                Value::Null => body.remove(&field),
                value => body.insert(field, value),
            };
        }
        body.into()
    }

    /// Returns the endpoint's operation in the OpenAPI document.
    pub(super) fn operation(&self) -> Value {
        let row = self.row();
        let method = row.method().as_str().to_ascii_lowercase();
        description(&self.service)["paths"][row.path()][method].clone()
    }

    /// Returns a caller with the lowest role that the endpoint accepts.
    pub(super) fn lowest_caller(&self) -> Caller {
        let platform = &self.fixture.ids["platformId"];
        match self.sample.least {
            LowestRole::Public => Caller::Anonymous,
            LowestRole::SignedIn => user_without_organization(),
            LowestRole::Person => self.fixture.person.caller(),
            LowestRole::Member => plain_member(platform),
            LowestRole::Admin => admin(platform),
            LowestRole::Owner => owner(platform),
            LowestRole::Operator | LowestRole::Service => operator(),
        }
    }

    /// Sends a request, and asserts that the OpenAPI document of the endpoint describes the response.
    pub(super) async fn send(&self, caller: &Caller, ask: &TestRequest) -> Answer {
        let answer = Self::send_to(&self.service, caller, ask).await;
        // A test can also read the record, which is another endpoint.
        if ask.method == *self.row().method() {
            self.assert_documented(&answer);
        }
        answer
    }

    /// Asserts that the OpenAPI document has the status, the error code and the media type of a response.
    fn assert_documented(&self, answer: &Answer) {
        let document = description(&self.service);
        let row = self.row();
        let method = row.method().as_str().to_ascii_lowercase();
        let response = &document["paths"][row.path()][method]["responses"][answer.status.as_str()];
        let context = format!("{}: {} {}", self.name(), answer.status, answer.json);
        assert!(
            !response.is_null(),
            "the status is not documented: {context}"
        );
        let code = json!(answer.code());
        if let Some(codes) = response["x-codes"].as_array().filter(|_| code != "") {
            assert!(
                codes.contains(&code),
                "the code is not documented: {context}"
            );
        }
        let media_type = answer.headers.get("content-type");
        if let Some(media_type) = media_type.and_then(|value| value.to_str().ok()) {
            assert!(
                response["content"].get(media_type).is_some(),
                "{media_type} is not documented: {context}"
            );
        }
    }

    /// Sends a request to a service, which can be another one than the case's.
    pub(super) async fn send_to(service: &Api, caller: &Caller, ask: &TestRequest) -> Answer {
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(ask.uri())
            .extension(ViaGateway);
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        let given = ask.headers.iter().any(|(name, _)| name == "content-type");
        let body = match &ask.body {
            _ if ask.uploads => {
                request = request.header("content-type", "application/octet-stream");
                bytes_body(SITE)
            }
            Value::Null => empty_body(),
            body => {
                if !given {
                    request = request.header("content-type", "application/json");
                }
                bytes_body(body.to_string())
            }
        };
        // With an anonymous caller the endpoint authenticates the credentials of the request itself.
        let request = request.extension(std::sync::Arc::new(caller.clone()));
        service.raw(request.body(body).unwrap()).await
    }

    /// Sends the valid request as a caller with the lowest role, and asserts that it succeeds.
    pub(super) async fn succeed(&self) -> Answer {
        let answer = self
            .send(&self.lowest_caller(), &self.valid_request())
            .await;
        let name = self.sample.operation;
        assert!(
            answer.is_success(),
            "{name}: {} {}",
            answer.status,
            answer.json
        );
        answer
    }
}

/// Converts a filled-in text into a JSON object if it is one, and into a string otherwise.
fn text_or_object(text: String) -> Value {
    serde_json::from_str::<Map<String, Value>>(&text).map_or(Value::String(text), Value::Object)
}

/// Returns the OpenAPI document of a service. It is the same in every world, so it is parsed once.
pub(super) fn description(api: &Api) -> Arc<Value> {
    static KNOWN: Mutex<BTreeMap<&str, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    let read = || Arc::new(serde_json::from_slice(&api.0.openapi().unwrap()).unwrap());
    Arc::clone(known.entry(api.0.name()).or_insert_with(read))
}

fn find<'a>(api: &'a Api, operation: &str) -> Option<&'a Endpoint> {
    let mut rows = api.0.endpoints().iter();
    rows.find(|row| row.operation() == operation)
}

impl Fixture {
    /// Creates a fixture with all records.
    pub(super) async fn of(world: World) -> Self {
        let mut fixture = Self::with_platform(world).await;
        fixture.add_catalogue().await;
        fixture.add_people().await;
        fixture.add_billing().await;
        fixture
    }

    /// Creates a fixture with the records that the endpoints of a service need.
    pub(super) async fn for_service(world: World, service: &str) -> Self {
        let mut fixture = Self::with_platform(world).await;
        match service {
            "iam" => fixture.add_people().await,
            "billing" => fixture.add_billing().await,
            _ => fixture.add_catalogue().await,
        }
        fixture
    }

    /// Creates a fixture with a platform, and a person without access to it.
    async fn with_platform(world: World) -> Self {
        let platform = world.create_platform("engines").await;
        let person = world.sign_up("ada@example.org").await;
        let ids = BTreeMap::from([
            ("platformId", platform),
            ("userId", person.user_id.clone()),
            ("ownerId", person.user_id.clone()),
            ("id", person.session_id.clone()),
            ("token", person.token.clone()),
            ("name", "web".to_owned()),
            ("slug", "brand-new".to_owned()),
        ]);
        Self { world, ids, person }
    }

    /// Adds the records of the platform, and stack templates.
    async fn add_catalogue(&mut self) {
        let (world, platform) = (&self.world, &self.ids["platformId"]);
        let entity = world.tenant(platform, "parent").await;
        let child = world.subtenant(platform, &entity, "child").await;
        let leaf = world.subtenant(platform, &entity, "leaf").await;
        let served = world.resource(platform, &child, "engines-api").await;
        let resource = world.resource(platform, &child, "engines-db").await;
        let stack = world.workspace_stack(platform, &entity, "web").await;
        let dns = world.dns_record(platform, &stack, &served, "one.example.org");
        let dns = dns.await;
        let unused = world.dns_record(platform, &stack, &served, "two.example.org");
        let unused = unused.await;
        let domain = world.domain(platform, &dns, "shop.example.org").await;
        let (_, letter) = world.dead_letter(platform).await;
        let job = world.provision(platform).await;
        let hold = world.create_hold(json!({ "scope": "kind", "kind": "onboard" }));
        let hold = hold.await;
        world.template("web").await;
        world.begin_session_of(&owner(platform)).await;
        let staging = [("x-core-deploy-branch", "staging")];
        let path = platform_path(platform, "/deploy");
        let deployment = world.deploy(&path, &operator(), &staging).await;
        let deployment = deployment.expect(202).text("deploymentId").to_owned();
        let replaced = world.active_deployment(platform, "preview").await;
        world.active_deployment(platform, "preview").await;
        let live = world.active_deployment(platform, "production").await;
        let worker = world
            .active_worker(platform, &child, "engines-worker")
            .await;
        world.activate_feature(platform, &entity, "maps").await;
        for value in ["first", "second"] {
            let config = json!({ "configValue": { "theme": value } });
            let set = world.set_config(platform, "features", config).await;
            assert!(set.is_success(), "{}", set.json);
        }
        world
            .set_secret_status(platform, &resource, "API_KEY", "set")
            .await;
        world
            .set_secret_status(platform, &worker, "API_KEY", "set")
            .await;
        world.activate_feature(platform, &child, "search").await;
        let build = world
            .get_record(&platform_path(platform, "/builds/latest"))
            .await
            .id();
        let start = json!({ "platformName": "Looms", "slug": "looms" });
        let path = "/api/v1/onboarding/start";
        let caller = &user_without_organization();
        let started = world.registry.post(caller, path, start).await.expect(202);
        let [webhook, message] = world.webhook_with_messages(&webhooks_of(platform)).await;
        let [own_webhook, own_message] = world.webhook_with_messages(WEBHOOKS).await;
        self.ids.extend([
            ("webhookId", webhook),
            ("deliveryId", message),
            ("installationWebhookId", own_webhook),
            ("installationDeliveryId", own_message),
            ("parentId", entity.clone()),
            ("entityId", child),
            ("leafId", leaf),
            ("defaultEntityId", entity),
            ("resourceId", resource),
            ("stackInstanceId", stack.clone()),
            ("stackId", stack),
            ("dnsId", dns.clone()),
            ("dnsRecordId", dns),
            ("unusedDnsId", unused),
            ("domainId", domain),
            ("jobId", job.clone()),
            ("entryId", letter),
            ("holdId", hold),
            ("provisionJobId", job),
            ("deploymentId", deployment),
            ("replacedId", replaced),
            ("liveId", live),
            ("workerId", worker),
            ("platformFeatureId", "maps".to_owned()),
            ("configKey", "features".to_owned()),
            ("configVersion", "1".to_owned()),
            ("featureId", "search".to_owned()),
            ("secretName", "API_KEY".to_owned()),
            ("buildId", build),
            ("onboardingId", started.text("onboardingId").to_owned()),
            ("version", "1.0.0".to_owned()),
            ("stackTemplateId", "web".to_owned()),
        ]);
    }

    /// Adds a customer of the platform with a card and a paid subscription.
    async fn add_billing(&mut self) {
        let (world, platform) = (&self.world, &self.ids["platformId"].clone());
        let customer = world.customer(platform).await;
        let method = world.attach_card(&customer, "pm_card_visa").await;
        let subscription = world.subscribe(platform, "starter").await.expect(201);
        self.ids.extend([
            ("customerId", customer),
            ("paymentMethodId", method),
            ("subscriptionId", subscription.id()),
            ("invoiceId", subscription.text("latestInvoiceId").to_owned()),
        ]);
        let other = world.create_platform("spindles").await;
        let late = world.customer(&other).await;
        world.attach_card(&late, "pm_card_visa").await;
        let owing = world.subscribe(&other, "starter").await.expect(201).id();
        world.owe_usage(&other, &owing, 500).await;
        let unpaid = world.create_platform("bobbins").await;
        world.customer(&unpaid).await;
        let _ = world.subscribe(&unpaid, "starter").await.expect(201);
        let owed = world.pay_token(&world.last_invoice(&unpaid).await);
        let paid = world.last_invoice(platform).await["id"].clone();
        let paid = world.pay_token_of(paid.as_str().unwrap());
        let link = world.portal_link(platform).await;
        let secret = world.enter_portal(&world.portal_link(platform).await).await;
        self.ids.extend([
            ("lateCustomerId", late),
            ("owedToken", owed),
            ("paidToken", paid),
            ("portalLink", link),
            ("portalSecret", secret),
        ]);
        // A stack without usage, unless the platform has one.
        let stack = self.ids.entry("stackId");
        stack.or_insert_with(|| "a-stack".to_owned());
    }

    /// Adds organizations, memberships, invitations and tokens, of the platform and of persons.
    async fn add_people(&mut self) {
        let (world, person) = (&self.world, &self.person);
        let organization = world.organization_of(&self.ids["platformId"]).await;
        let (role, grant) = world.role_and_grant_in(&organization).await;
        let invited = world.invite_as_operator(&organization, "bob@example.org");
        let invitation = invited.await;
        let eve = world.sign_up("eve@example.net").await;
        let organizations = world.organizations_of(person, &eve).await;
        let dora = world.sign_up("dora@example.net").await;
        let [magic, reset, verify] = world.link_tokens(&dora.email).await;
        let unused = world.sign_up("hal@example.com").await;
        let [.., unused] = world.link_tokens(&unused.email).await;
        let with_platform = world
            .set_up_organization(person, "own-engines")
            .await
            .expect(201);
        let key = json!({ "organizationId": with_platform.text("orgId") });
        let key = world
            .create_api_key(&person.caller(), key)
            .await
            .expect(200);
        let event = world.audit("user.signed_up").await.pop().unwrap().id;
        let pending = world.device_codes().await;
        let approved = world.approve_device(person).await;
        let tokens = world.device_login(person).await;
        let grace = world.sign_up("grace@example.com").await;
        let factor = world.enable_second_factor(&grace).await;
        let waiting = world.begin_sign_in(&grace.email).await;
        let set_up = world.set_up_second_factor(person).await;
        let mut known = world.create_passkey(person, 1).await;
        let passkeys = world.passkeys_of(person).await;
        let registering = world.begin_passkey(person).await;
        let made = world.authenticator(2).create(&registering.options);
        let showing = world.begin_passkey_sign_in().await;
        let shown = known.get(&showing.options);
        self.ids.extend([
            ("organizationId", organizations.own),
            ("memberId", organizations.member.clone()),
            ("memberIdOrEmail", organizations.member),
            ("sentId", organizations.sent),
            ("invitationId", organizations.received),
            ("joinedId", organizations.joined),
            ("coreInvitationId", invitation),
            ("keyOrgId", with_platform.text("orgId").to_owned()),
            ("keyId", key.id()),
            ("key", key.text("key").to_owned()),
            ("eventId", event.to_string()),
            ("magicToken", magic),
            ("client_id", "core-cli".to_owned()),
            ("user_code", pending.text("user_code").to_owned()),
            ("device_code", approved),
            ("refresh_token", tokens.text("refresh_token").to_owned()),
            ("resetToken", reset),
            ("verifyToken", verify),
            ("unusedAccountToken", unused),
            ("twoFactorCookie", waiting),
            ("recoveryCode", factor.recovery_codes[0].clone()),
            ("totpCode", set_up.code(world)),
            ("passkeyId", passkeys[0]["id"].as_str().unwrap().to_owned()),
            ("registeringCookie", registering.cookie),
            ("madePasskey", made.to_string()),
            ("showingCookie", showing.cookie),
            ("shownPasskey", shown.to_string()),
            ("orgId", organization),
            ("orgSlug", "engineers".to_owned()),
            ("role", role),
            ("grantId", grant),
        ]);
    }

    /// Replaces the `{name}` parameters of a text by the ids of the fixture.
    pub(super) fn fill_in(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, id) in &self.ids {
            filled = filled.replace(&format!("{{{name}}}"), id);
        }
        filled
    }

    /// Creates another platform, and returns its members, who have no access to the fixture's platform.
    pub(super) async fn strangers(&self) -> Vec<Caller> {
        let other = self.world.create_platform("foreign").await;
        let of_other = |user, role| member(user, &other, role).unwrap();
        vec![
            of_other("oscar", Role::OWNER),
            of_other("mick", Role::MEMBER),
            self.person.member_of(&other, Role::OWNER),
        ]
    }
}

pub(super) fn below_platform(path: &str) -> bool {
    path.contains("{platformId}")
}
