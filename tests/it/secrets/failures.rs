//! Each table with secrets refuses its rows, one table after the other. The responses and log lines must not contain
//! any secret then.

use core_http::kernel::testing::Answer;
use core_webauthn::testing::SoftAuthenticator;
use serde_json::{Value, json};

use super::IAM;
use super::story::Story;
use crate::world::Call;

const GRETE: &str = "grete@example.org";
const PASSWORD: &str = "marked grete+only/pass";

/// Tables with such columns to which no request writes a secret, and the reason.
const TABLES_WITHOUT_SECRETS: [(&str, &str); 9] = [
    (
        "billing_payment_attempts",
        "the column holds the reason of a declined card",
    ),
    ("signing_keys", "a key is created when the server starts"),
    ("deployments", "the column holds the hash of an upload"),
    ("job_lanes", "the column holds the state of a queue"),
    ("audit_seals", "the columns hold hashes of audit entries"),
    ("audit_heads", "the column holds the hash of a seal"),
    ("audit_checkpoints", "the column holds the hash of a seal"),
    (
        "audit_archives",
        "the column holds the hash of a checkpoint",
    ),
    (
        "webhook_deliveries",
        "messages are written when a change is sealed",
    ),
];

/// A user for whom no table has failed yet.
struct Person {
    token: String,
    organization: String,
    rounds: u8,
}

/// Returns the tables with a column for a secret, or for data that may contain one.
async fn tables_of_secrets(client: &tokio_postgres::Client) -> Vec<(String, String)> {
    let tables = "SELECT DISTINCT table_name, format('%I.%I', table_schema, table_name) \
        FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema') \
        AND (column_name ~ 'hash|sealed|token|code' OR column_name IN ('body', 'credential', 'payload', 'state')) \
        ORDER BY 1";
    let rows = client.query(tables, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

impl Story<'_> {
    pub(super) async fn fail(&mut self, client: &tokio_postgres::Client) {
        let mut person = self.person().await;
        for answer in self.write_everywhere(&mut person).await {
            assert!(answer.is_success(), "{}: {}", answer.status, answer.json);
        }
        let tables = tables_of_secrets(client).await;
        for (name, reason) in TABLES_WITHOUT_SECRETS {
            let known = tables.iter().any(|(table, _)| table == name);
            assert!(known, "the table {name} does not exist any more ({reason})");
        }
        for (name, table) in tables {
            if TABLES_WITHOUT_SECRETS
                .iter()
                .any(|(known, _)| *known == name)
            {
                continue;
            }
            let broken = "ADD CONSTRAINT broken CHECK (false) NOT VALID";
            let broken = format!("ALTER TABLE {table} {broken}");
            client.batch_execute(&broken).await.unwrap();
            let answers = self.write_everywhere(&mut person).await;
            let mended = format!("ALTER TABLE {table} DROP CONSTRAINT broken");
            client.batch_execute(&mended).await.unwrap();
            let statuses = answers.iter().map(|answer| answer.status.as_u16());
            let statuses: Vec<u16> = statuses.collect();
            // The embedded payment provider counts as another system, whose failure is a 502.
            let has_failed = statuses.iter().any(|status| [500, 502].contains(status));
            assert!(has_failed, "{name}: {statuses:?}");
        }
    }

    async fn person(&mut self) -> Person {
        self.marks.text("a password", PASSWORD);
        let body = json!({ "name": "Grete", "email": GRETE, "password": PASSWORD });
        let signed_up = self
            .anonymous("/api/auth/sign-up/email", body)
            .await
            .expect(200);
        let cookies = self.cookies(&signed_up).join("; ");
        let token = signed_up.text("token").to_owned();
        self.marks.text("a session's token", &token);
        let setup = Call::post(
            "/api/core/org-setup",
            &json!({ "name": "Looms", "slug": "looms" }),
        );
        let setup = setup.header("cookie", cookies).header("origin", IAM);
        let made = self.send("iam", setup).await.expect(201);
        self.confirm_address(GRETE, &token).await;
        let _ = self.set_up_totp(&token, PASSWORD).await;
        Person {
            token,
            organization: made.text("orgId").to_owned(),
            rounds: 0,
        }
    }

    /// Sends writes of each kind. A write that depends on a failed one is skipped.
    async fn write_everywhere(&mut self, person: &mut Person) -> Vec<Answer> {
        person.rounds += 1;
        let mut answers = vec![self.sign_up_lost(person.rounds).await];
        self.sign_in_twice_proved(person, &mut answers).await;
        // An address is sent only a few links per hour.
        let ask = json!({ "email": format!("linked{}@example.org", person.rounds) });
        answers.push(
            self.write(person, "/api/auth/sign-in/magic-link", ask)
                .await,
        );
        let invite = json!({
            "email": format!("guest{}@example.org", person.rounds),
            "role": "member",
            "organizationId": person.organization,
        });
        let path = "/api/auth/organization/invite-member";
        answers.push(self.write(person, path, invite).await);
        self.api_keys(person, &mut answers).await;
        self.device_tokens(person, &mut answers).await;
        self.passkeys(person, &mut answers).await;
        answers.push(self.setup_intent(person).await);
        answers
    }

    /// Creates a setup intent, whose secret is stored as a digest.
    async fn setup_intent(&mut self, person: &Person) -> Answer {
        let path = "/api/v1/billing/setup-intent";
        let call = Call::post(path, &json!({})).bearer(&person.token);
        let call = call.header("idempotency-key", format!("k{}", self.next()));
        let answer = self.send("gateway", call).await;
        if let Some(secret) = answer.json["clientSecret"].as_str() {
            self.marks.text("the secret of a setup intent", secret);
        }
        answer
    }

    /// Sends a write of the user with an idempotency key, so that its response is stored.
    async fn write(&mut self, person: &Person, path: &str, body: Value) -> Answer {
        let call = Call::post(path, &body).bearer(&person.token);
        let call = call.header("idempotency-key", format!("k{}", self.next()));
        let answer = self.send("iam", call).await;
        for field in [
            "key",
            "token",
            "device_code",
            "access_token",
            "refresh_token",
        ] {
            if let Some(secret) = answer.json[field].as_str() {
                self.marks.text("a secret of a later answer", secret);
            }
        }
        if let Some(code) = answer.json["user_code"].as_str() {
            self.marks
                .stored_text("a user code of a later answer", code);
        }
        let _ = self.cookies(&answer);
        answer
    }

    async fn sign_up_lost(&mut self, round: u8) -> Answer {
        let password = "marked lost+pass/word";
        self.marks
            .text("a password that was never stored", password);
        let email = format!("new-{round}@example.org");
        let body = json!({ "name": "N", "email": email, "password": password });
        let answer = self.anonymous("/api/auth/sign-up/email", body).await;
        let _ = self.cookies(&answer);
        answer
    }

    async fn sign_in_twice_proved(&mut self, person: &Person, answers: &mut Vec<Answer>) {
        let own = json!({ "password": PASSWORD });
        let path = "/api/auth/two-factor/generate-backup-codes";
        let renewed = self.write(person, path, own).await;
        let credentials = json!({ "email": GRETE, "password": PASSWORD });
        let half = self.anonymous("/api/auth/sign-in/email", credentials).await;
        if renewed.is_success() && half.is_success() {
            let codes = self.recovery_codes(&renewed);
            let cookies = self.cookies(&half).join("; ");
            let shown = self.sign_in_with_recovery_code(&cookies, &codes[0]).await;
            let _ = self.cookies(&shown);
            answers.push(shown);
        }
        answers.extend([renewed, half]);
    }

    async fn api_keys(&mut self, person: &Person, answers: &mut Vec<Answer>) {
        let new = json!({ "organizationId": person.organization });
        let made = self.write(person, "/api/auth/api-key/create", new).await;
        if made.is_success() {
            let valid = json!({ "key": made.text("key") });
            answers.push(self.as_service("/api/core/apikey/validate", valid).await);
            let rotate = json!({ "keyId": made.id() });
            answers.push(self.write(person, "/api/auth/api-key/rotate", rotate).await);
        }
        answers.push(made);
    }

    async fn device_tokens(&mut self, person: &Person, answers: &mut Vec<Answer>) {
        let client = json!({ "client_id": "core-cli" });
        let codes = self.write(person, "/oauth/device/code", client).await;
        if codes.is_success() {
            let approve = json!({ "user_code": codes.text("user_code"), "action": "approve" });
            answers.push(self.write(person, "/oauth/device/authorize", approve).await);
            let poll = json!({
                "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
                "device_code": codes.text("device_code"), "client_id": "core-cli",
            });
            let tokens = self.write(person, "/oauth/device/token", poll).await;
            if tokens.is_success() {
                let refresh = json!({
                    "grant_type": "refresh_token", "client_id": "core-cli",
                    "refresh_token": tokens.text("refresh_token"),
                });
                answers.push(self.write(person, "/oauth/token", refresh).await);
            }
            answers.push(tokens);
        }
        answers.push(codes);
    }

    async fn passkeys(&mut self, person: &Person, answers: &mut Vec<Answer>) {
        let mut authenticator = SoftAuthenticator::new(100 + person.rounds, IAM);
        let added = self.add_passkey(&person.token, &mut authenticator).await;
        let shown = self.sign_in_with_passkey(&mut authenticator).await;
        if added.is_success() {
            let id = json!({ "id": added.id() });
            let path = "/api/auth/passkey/delete-passkey";
            answers.push(self.write(person, path, id).await);
        }
        answers.extend([added, shown]);
    }
}
