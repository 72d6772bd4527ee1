//! The actions of users and programs that involve secrets, one after the other.

use std::path::Path;

use core_http::kernel::testing::Answer;
use serde_json::{Value, json};

use super::marks::Marks;
use super::remains::mailed_link;
use super::{IAM, SERVICE_KEY};
use crate::world::{Call, Installation, Server};

pub(super) const ADA: &str = "ada@example.org";
pub(super) const FIRST: &str = "marked ada+first/pass";
const SECOND: &str = "marked ada+second/pass";
pub(super) const THIRD: &str = "marked ada+third/pass";
const EVE: &str = "eve@example.net";
const EVES: &str = "marked eve+only/pass";

/// The actions of a user at an installation. Every secret used is marked.
pub(super) struct Story<'s> {
    server: &'s Server,
    data: &'s Path,
    pub(super) marks: &'s mut Marks,
    links: Vec<String>,
    count: u16,
    /// The newest session token of Ada.
    pub(super) token: String,
    cookie: String,
    /// The organization of Ada's platform.
    organization: String,
    pub(super) key: String,
    key_id: String,
    pub(super) refresh_token: String,
    pub(super) device_code: String,
}

impl<'s> Story<'s> {
    pub(super) fn of(server: &'s Server, data: &'s Path, marks: &'s mut Marks) -> Self {
        let empty = String::new;
        Self {
            server,
            data,
            marks,
            links: Vec::new(),
            count: 0,
            token: empty(),
            cookie: empty(),
            organization: empty(),
            key: empty(),
            key_id: empty(),
            refresh_token: empty(),
            device_code: empty(),
        }
    }

    /// Sends a call from its own client address, so that no rate limit applies. A refusal must not contain a secret.
    pub(super) async fn send(&mut self, service: &str, call: Call) -> Answer {
        self.count += 1;
        let [high, low] = self.count.to_be_bytes();
        let call = call.header("x-forwarded-for", format!("10.1.{high}.{low}"));
        let name = format!("the answer to {call:?}");
        let answer = self.server.send(service, call).await;
        if answer.status.as_u16() >= 400 {
            self.marks.answer(name, answer.bytes.clone());
        }
        answer
    }

    /// Returns a number that was not used yet.
    pub(super) const fn next(&self) -> u16 {
        self.count + 1
    }

    /// Calls IAM with the newest session of Ada.
    pub(super) async fn post(&mut self, path: &str, body: Value) -> Answer {
        let call = Call::post(path, &body).bearer(&self.token);
        self.send("iam", call).await
    }

    pub(super) async fn anonymous(&mut self, path: &str, body: Value) -> Answer {
        self.send("iam", Call::post(path, &body)).await
    }

    pub(super) async fn as_service(&mut self, path: &str, body: Value) -> Answer {
        let call = Call::post(path, &body).bearer(SERVICE_KEY);
        self.send("iam", call).await
    }

    /// Sends the same write twice with one idempotency key. The second response must be the stored first one.
    async fn twice(&mut self, credential: &str, path: &str, body: Value, key: &str) -> Answer {
        let call = Call::post(path, &body).bearer(credential);
        let call = call.header("idempotency-key", key);
        let first = self.send("iam", call.clone()).await;
        assert!(first.is_success(), "{}", first.json);
        let second = self.send("iam", call).await;
        assert_eq!(second.json, first.json);
        assert_eq!(second.header("idempotency-replayed"), "true");
        first
    }

    /// Marks the cookies of a response. Returns them as a client sends them back.
    pub(super) fn cookies(&mut self, answer: &Answer) -> Vec<String> {
        let cookies = answer.headers.get_all("set-cookie").iter();
        let cookies = cookies.filter_map(|cookie| cookie.to_str().ok()?.split(';').next());
        let cookies: Vec<String> = cookies
            .filter(|cookie| !cookie.ends_with('='))
            .map(str::to_owned)
            .collect();
        for cookie in &cookies {
            let (_, value) = cookie.split_once('=').unwrap();
            let (token, signature) = value.rsplit_once('.').unwrap();
            for part in [token, signature] {
                self.marks
                    .text("a part of a cookie", part.trim_end_matches("%3D"));
            }
        }
        cookies
    }

    /// Remembers the session that a response starts.
    pub(super) fn signed_in(&mut self, answer: &Answer) {
        for cookie in self.cookies(answer) {
            if cookie.starts_with("better-auth.session_token=") {
                self.cookie = cookie;
            }
        }
        if let Some(token) = answer.json["token"].as_str() {
            self.marks.text("a session's token", token);
            token.clone_into(&mut self.token);
        }
    }

    async fn link(&mut self, to: &str, part: &str) -> String {
        let link = mailed_link(self.server.log(), self.data, to, part, &self.links).await;
        self.links.push(link.clone());
        link
    }

    /// Runs the complete story, including some refused requests.
    pub(super) async fn live(&mut self) {
        for password in [FIRST, SECOND, THIRD, EVES] {
            self.marks.text("a password", password);
        }
        self.passwords().await;
        self.links_by_mail().await;
        self.platform_and_keys().await;
        self.invitation().await;
        self.device().await;
        self.service_tokens().await;
        let device = self.second_factor().await;
        self.passkey().await;
        self.trusted_device(device).await;
    }

    async fn passwords(&mut self) {
        let body = json!({ "name": "Ada", "email": ADA, "password": FIRST });
        let signed_up = self.anonymous("/api/auth/sign-up/email", body).await;
        self.signed_in(&signed_up.expect(200));
        let token = self.token.clone();
        self.confirm_address(ADA, &token).await;
        let wrong = json!({ "email": ADA, "password": SECOND });
        let refused = self.anonymous("/api/auth/sign-in/email", wrong).await;
        let _ = refused.expect(401);
        let right = json!({ "email": ADA, "password": FIRST });
        let through = Call::post("/api/v1/iam/api/auth/sign-in/email", &right);
        let signed_in = self.send("gateway", through.bearer(SERVICE_KEY)).await;
        self.signed_in(&signed_in.expect(200));
        let change = json!({
            "currentPassword": FIRST, "newPassword": SECOND, "revokeOtherSessions": true,
        });
        let changed = self.post("/api/auth/change-password", change).await;
        self.signed_in(&changed.expect(200));
        let ask = json!({ "email": ADA, "redirectTo": "/" });
        let asked = self.anonymous("/api/auth/request-password-reset", ask);
        let _ = asked.await.expect(200);
        let link = self.link(ADA, "/reset-password?").await;
        let token = parameter(&link, "token");
        self.marks.text("the token of a password's link", &token);
        let path = format!("/api/auth/reset-password/{token}?callbackURL=/");
        let followed = self.send("iam", Call::get(path)).await;
        assert!(followed.is_success(), "{}", followed.status);
        let page = Call::get(format!("/reset-password?token={token}"));
        let _ = self.send("iam", page).await.expect(200);
        let reset = json!({ "newPassword": THIRD, "token": token });
        for status in [200, 400] {
            let reset = self.anonymous("/api/auth/reset-password", reset.clone());
            let _ = reset.await.expect(status);
        }
        let right = json!({ "email": ADA, "password": THIRD });
        let signed_in = self.anonymous("/api/auth/sign-in/email", right).await;
        self.signed_in(&signed_in.expect(200));
    }

    /// Confirms the address of the session's user with the link in a mail.
    pub(super) async fn confirm_address(&mut self, email: &str, session: &str) {
        let ask = Call::post(
            "/api/auth/send-verification-email",
            &json!({ "email": email }),
        );
        let _ = self.send("iam", ask.bearer(session)).await.expect(200);
        let link = self.link(email, "/verify-email").await;
        let token = parameter(&link, "token");
        self.marks.text("the token of an address's link", &token);
        let verify = Call::get(format!("/api/auth/verify-email?token={token}"));
        let verify = verify.bearer(session);
        let _ = self.send("iam", verify).await.expect(200);
    }

    async fn links_by_mail(&mut self) {
        let ask = json!({ "email": ADA });
        let path = "/api/auth/sign-in/magic-link";
        let _ = self.anonymous(path, ask).await.expect(200);
        let link = self.link(ADA, "/magic-link?").await;
        let token = parameter(&link, "token");
        self.marks.text("the token of a magic link", &token);
        let path = format!("/api/auth/magic-link/verify?token={token}");
        let signed_in = self.send("iam", Call::get(&path)).await;
        self.signed_in(&signed_in.expect(200));
        let used = self.send("iam", Call::get(&path)).await;
        assert!(!used.status.is_success(), "{}", used.status);
    }

    async fn platform_and_keys(&mut self) {
        let setup = Call::post(
            "/api/core/org-setup",
            &json!({ "name": "Engines", "slug": "engines" }),
        );
        let setup = setup
            .header("cookie", &self.cookie)
            .header("origin", IAM)
            .header("idempotency-key", "setup");
        let made = self.send("iam", setup).await.expect(201);
        made.text("orgId").clone_into(&mut self.organization);
        let token = self.token.clone();
        let new = json!({ "organizationId": self.organization, "name": "ci" });
        let made = self
            .twice(&token, "/api/auth/api-key/create", new, "make")
            .await;
        self.marks.text("an API key", made.text("key"));
        let rotate = json!({ "keyId": made.id(), "overlap": 60 });
        let path = "/api/auth/api-key/rotate";
        let rotated = self.twice(&token, path, rotate, "rotate").await;
        self.marks.text("a new API key", rotated.text("key"));
        rotated.text("key").clone_into(&mut self.key);
        self.key_id = made.id();
        let key = json!({ "key": self.key });
        let path = "/api/core/apikey/validate";
        let valid = self.as_service(path, key).await.expect(200);
        assert_eq!(valid.json["valid"], true);
        let used = Call::get("/api/v1/platforms").header("x-api-key", &self.key);
        let _ = self.send("gateway", used).await.expect(200);
    }

    async fn invitation(&mut self) {
        let body = json!({ "name": "Eve", "email": EVE, "password": EVES });
        let eve = self
            .anonymous("/api/auth/sign-up/email", body)
            .await
            .expect(200);
        let hers = eve.text("token").to_owned();
        self.marks.text("a session's token", &hers);
        let invite = json!({ "email": EVE, "role": "member", "organizationId": self.organization });
        let path = "/api/auth/organization/invite-member";
        let token = self.token.clone();
        let _ = self.twice(&token, path, invite, "invite").await;
        let link = self.link(EVE, "/accept-invitation?").await;
        let name = parameter(&link, "id");
        let (_, secret) = name.split_once('.').unwrap();
        self.marks.text("the secret of an invitation", secret);
        let accept = json!({ "invitationId": name });
        let path = "/api/auth/organization/accept-invitation";
        let call = Call::post(path, &accept).bearer(&hers);
        let _ = self.send("iam", call).await.expect(200);
        let out = Call::post("/api/auth/sign-out", &json!({})).bearer(&hers);
        let _ = self.send("iam", out).await.expect(200);
    }

    async fn device(&mut self) {
        let client = json!({ "client_id": "core-cli" });
        let codes = self
            .anonymous("/oauth/device/code", client)
            .await
            .expect(200);
        self.marks.text("a device code", codes.text("device_code"));
        self.marks
            .stored_text("a user code", codes.text("user_code"));
        codes.text("device_code").clone_into(&mut self.device_code);
        let page = format!("/device?user_code={}", codes.text("user_code"));
        let page = Call::get(page).header("cookie", &self.cookie);
        let _ = self.send("iam", page).await.expect(200);
        let poll = json!({
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "device_code": self.device_code, "client_id": "core-cli",
        });
        let path = "/oauth/device/token";
        let _ = self.anonymous(path, poll.clone()).await.expect(400);
        let decide = json!({ "user_code": codes.text("user_code"), "action": "approve" });
        let decided = self.post("/oauth/device/authorize", decide).await;
        let _ = decided.expect(200);
        let tokens = self.anonymous(path, poll).await.expect(200);
        let second = self.refresh_tokens(&tokens).await.expect(200);
        let third = self.refresh_tokens(&second).await.expect(200);
        third
            .text("refresh_token")
            .clone_into(&mut self.refresh_token);
        let whoami = Call::post("/api/v1/cli/whoami", &json!({}));
        let whoami = whoami.bearer(third.text("access_token"));
        let shown = self.send("iam", whoami).await.expect(200);
        assert_eq!(shown.text("email"), ADA);
        let reused = self.refresh_tokens(&tokens).await;
        let _ = reused.expect(400);
    }

    async fn refresh_tokens(&mut self, tokens: &Answer) -> Answer {
        for (what, name) in [
            ("an access token", "access_token"),
            ("a refresh token", "refresh_token"),
        ] {
            self.marks.text(what, tokens.text(name));
        }
        let exchange = json!({
            "grant_type": "refresh_token", "client_id": "core-cli",
            "refresh_token": tokens.text("refresh_token"),
        });
        let answer = self.anonymous("/oauth/token", exchange).await;
        for name in ["access_token", "refresh_token"] {
            if let Some(token) = answer.json[name].as_str() {
                self.marks.text("a token of a program", token);
            }
        }
        answer
    }

    async fn service_tokens(&mut self) {
        let ask = json!({ "serviceId": "gateway", "targetService": "registry" });
        let path = "/api/core/service-token";
        let issued = self.twice(SERVICE_KEY, path, ask, "token").await;
        let signature = issued.text("token").rsplit('.').next().unwrap().to_owned();
        self.marks
            .text("the signature of a service token", &signature);
    }

    /// Reads the complete audit log, which must not contain a secret.
    pub(super) async fn read_audit(&mut self) {
        for (service, path) in [("iam", "/api/audit/events"), ("registry", "/api/v1/audit")] {
            let (mut cursor, mut entries) = (String::new(), 0);
            loop {
                let page = Call::get(format!("{path}?limit=100{cursor}")).bearer(SERVICE_KEY);
                let page = self.send(service, page).await.expect(200);
                entries += page.json["data"].as_array().unwrap().len();
                self.marks
                    .answer(format!("{path}{cursor}"), page.bytes.clone());
                match page.json["pagination"]["nextCursor"].as_str() {
                    Some(next) if !next.is_empty() => cursor = format!("&cursor={next}"),
                    _ => break,
                }
            }
            assert!(entries > 30, "{entries} entries");
        }
    }
}

pub(super) fn parameter(link: &str, name: &str) -> String {
    let (_, rest) = link.split_once(&format!("{name}=")).unwrap();
    rest.split(['&', '"', '<']).next().unwrap().to_owned()
}
