//! Errors of every kind, each with a secret in what is refused.

use http::Method;
use serde_json::{Value, json};

use super::SERVICE_KEY;
use super::story::{ADA, EVE, EVES, FIRST, Story, THIRD};
use crate::world::Call;

/// Fields that hold secrets, and where they are taken.
const TAKEN: [(&str, &str); 16] = [
    ("/api/auth/sign-up/email", "password"),
    ("/api/auth/sign-in/email", "password"),
    ("/api/auth/change-password", "currentPassword"),
    ("/api/auth/change-password", "newPassword"),
    ("/api/auth/verify-password", "password"),
    ("/api/auth/reset-password", "newPassword"),
    ("/api/auth/reset-password", "token"),
    ("/api/auth/two-factor/enable", "password"),
    ("/api/auth/two-factor/verify-totp", "code"),
    ("/api/auth/two-factor/verify-backup-code", "code"),
    ("/api/auth/revoke-session", "token"),
    ("/api/validate-session", "token"),
    ("/api/core/apikey/validate", "key"),
    ("/oauth/device/token", "device_code"),
    ("/oauth/token", "refresh_token"),
    ("/oauth/device/authorize", "user_code"),
];

/// Tables whose rows are made of secrets, and what writes to them.
const WRITTEN: [&str; 9] = [
    "accounts",
    "sessions",
    "verifications",
    "api_keys",
    "two_factors",
    "idempotency_keys",
    "refresh_tokens",
    "device_authorizations",
    "outbox_messages",
];

impl Story<'_> {
    /// Requests that are refused for each reason there is.
    pub(super) async fn provoke(&mut self) {
        for (number, (path, field)) in TAKEN.into_iter().enumerate() {
            self.refused_at(
                path,
                field,
                &format!("marked-refused-{number:02}-{field}-x9Q"),
            )
            .await;
        }
        self.credentials_that_are_none().await;
        self.forms_of_pages().await;
        self.passwords_that_are_wrong().await;
    }

    async fn refused_at(&mut self, path: &str, field: &str, secret: &str) {
        self.marks.text("what a refused request held", secret);
        let nested = json!({ field: { secret: secret } });
        let long = format!("{secret}{}", "x".repeat(3_000));
        let bodies = [
            format!("{{\"{field}\": \"{secret}\""),
            format!("{{\"{field}\": \"{secret}\"}} {secret}"),
            format!("\"{secret}\""),
            json!({ field: [secret] }).to_string(),
            nested.to_string(),
            json!({ field: secret, "email": [secret], "client_id": 7, "name": 1 }).to_string(),
            json!({ field: long, "email": "nobody@example.org", "name": "Ada" }).to_string(),
            json!({ field: format!("{secret}\0"), "email": "nobody@example.org", "name": "Ada" }).to_string(),
            json!({ field: secret, secret: secret }).to_string(),
            json!({ field: secret, "email": "nobody@example.org", "client_id": secret, "grant_type": secret })
                .to_string(),
        ];
        for body in bodies {
            for token in [self.token.clone(), SERVICE_KEY.to_owned()] {
                let call = Call::upload(path, "application/json", body.clone());
                let _ = self.send("iam", call.bearer(&token)).await;
            }
        }
        let form = format!("{field}={secret}&{field}={secret}&%zz={secret}");
        for kind in ["application/x-www-form-urlencoded", "text/plain", "x/"] {
            let call = Call::upload(path, kind, form.clone());
            let _ = self.send("iam", call).await;
        }
        let queried = format!("{path}?{field}={secret}&limit={secret}");
        for (service, path) in [
            ("iam", queried.clone()),
            ("gateway", format!("/api/v1/iam{queried}")),
        ] {
            let call = Call::post(path, &json!({ field: secret }));
            let _ = self.send(service, call.bearer(SERVICE_KEY)).await;
        }
        let elsewhere = Call::new(Method::PUT, format!("{path}?{field}={secret}"));
        let _ = self.send("iam", elsewhere).await;
    }

    async fn credentials_that_are_none(&mut self) {
        let made_up = "marked-made-up-credential-5Tq";
        self.marks.text("a made-up credential", made_up);
        let key = format!("{}x", self.key);
        for service in ["gateway", "iam", "registry"] {
            let path = if service == "gateway" {
                "/api/v1/platforms"
            } else {
                "/api/sessions"
            };
            for (name, value) in [
                ("authorization", format!("Bearer {made_up}")),
                ("authorization", format!("Basic {made_up}")),
                ("authorization", made_up.to_owned()),
                ("x-api-key", key.clone()),
                ("x-api-key", format!("core_{made_up}")),
                (
                    "cookie",
                    format!("better-auth.session_token={made_up}.{made_up}"),
                ),
                ("x-request-id", format!("{made_up} {made_up}")),
            ] {
                let _ = self
                    .send(service, Call::get(path).header(name, value))
                    .await;
            }
        }
        let unknown = json!({ "key": key });
        let told = self.as_service("/api/core/apikey/validate", unknown).await;
        assert_eq!(told.expect(200).json["valid"], false);
        let (code, token) = (self.device_code.clone(), self.refresh_token.clone());
        for (grant, field, value) in [
            ("refresh_token", "refresh_token", token),
            (
                "urn:ietf:params:oauth:grant-type:device_code",
                "device_code",
                code,
            ),
        ] {
            let form = format!("grant_type={grant}&client_id=core-cli&{field}={value}");
            let form = Call::upload("/oauth/token", "application/x-www-form-urlencoded", form);
            let _ = self.send("iam", form).await.expect(400);
        }
        let path = format!("/api/auth/reset-password/{made_up}?callbackURL=//{made_up}");
        let _ = self.send("iam", Call::get(path)).await;
        let path = format!("/api/auth/magic-link/verify?token={made_up}&callbackURL=//{made_up}");
        let _ = self.send("iam", Call::get(path)).await;
    }

    async fn forms_of_pages(&mut self) {
        let password = FIRST.replace(' ', "+").replace('/', "%2F");
        let origin = self.origin();
        for (path, form) in [
            ("/sign-in", format!("email={ADA}&password={password}")),
            ("/sign-in", format!("email=nothing&password={password}")),
            (
                "/sign-up",
                format!("name=&email=nothing&password={password}"),
            ),
            (
                "/sign-up",
                format!("email={ADA}&password={password}&password={password}"),
            ),
            (
                "/reset-password/new",
                format!("token=unknown&password={password}"),
            ),
            ("/two-factor", format!("code={password}")),
        ] {
            let call = Call::upload(path, "application/x-www-form-urlencoded", form);
            let _ = self.send("iam", call.header("origin", &origin)).await;
        }
    }

    async fn passwords_that_are_wrong(&mut self) {
        let change = json!({ "currentPassword": FIRST, "newPassword": "marked wrong+change/x" });
        self.marks.text("a new password", "marked wrong+change/x");
        let refused = self.post("/api/auth/change-password", change).await;
        assert!(refused.status.is_client_error());
        let verify = json!({ "password": FIRST });
        let refused = self.post("/api/auth/verify-password", verify).await;
        assert!(refused.status.is_client_error());
        let again = json!({ "name": "Ada", "email": ADA, "password": THIRD });
        let taken = self.anonymous("/api/auth/sign-up/email", again).await;
        let _ = taken.expect(422);
    }

    /// The database refuses rows of each table in turn, and says what is in them.
    pub(super) async fn fail(&mut self, client: &tokio_postgres::Client) {
        let find =
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE tablename = $1";
        let mut failed = 0;
        for table in WRITTEN {
            let found = client.query_one(find, &[&table]).await.unwrap();
            let table: String = found.get(0);
            let broken = "ADD CONSTRAINT broken CHECK (false) NOT VALID";
            let broken = format!("ALTER TABLE {table} {broken}");
            client.batch_execute(&broken).await.unwrap();
            failed += self.write_everywhere().await;
            let mended = format!("ALTER TABLE {table} DROP CONSTRAINT broken");
            client.batch_execute(&mended).await.unwrap();
        }
        assert!(failed >= WRITTEN.len(), "{failed} requests failed");
    }

    /// One write of each kind; tells how many failed with 500.
    async fn write_everywhere(&mut self) -> usize {
        let password = "marked lost+pass/word";
        self.marks
            .text("a password that was never stored", password);
        let email = format!("new-{}@example.org", self.next());
        let (organization, key_id) = (self.organization.clone(), self.key_id.clone());
        let calls: [(&str, Value); 8] = [
            (
                "/api/auth/sign-up/email",
                json!({ "name": "N", "email": email, "password": password }),
            ),
            (
                "/api/auth/sign-in/email",
                json!({ "email": EVE, "password": EVES }),
            ),
            ("/api/auth/sign-in/magic-link", json!({ "email": ADA })),
            (
                "/api/auth/api-key/create",
                json!({ "organizationId": organization }),
            ),
            ("/api/auth/api-key/rotate", json!({ "keyId": key_id })),
            (
                "/api/auth/two-factor/generate-backup-codes",
                json!({ "password": THIRD }),
            ),
            ("/oauth/device/code", json!({ "client_id": "core-cli" })),
            ("/api/core/apikey/validate", json!({ "key": self.key })),
        ];
        let mut failed = 0;
        for (path, body) in calls {
            let token = if path.ends_with("validate") {
                SERVICE_KEY
            } else {
                &self.token
            };
            let call = Call::post(path, &body).bearer(token);
            let call = call.header("idempotency-key", format!("k{}", self.next()));
            let answer = self.send("iam", call).await;
            failed += usize::from(answer.status.as_u16() == 500);
            for field in ["key", "token", "device_code"] {
                if let Some(secret) = answer.json[field].as_str() {
                    self.marks.text("a secret of a later answer", secret);
                }
            }
        }
        failed
    }
}
