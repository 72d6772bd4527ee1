//! Requests that are refused for every kind of reason. Each contains a secret, which the response must not contain.

use http::Method;
use serde_json::json;

use super::story::{ADA, FIRST, Story, THIRD};
use super::{IAM, SERVICE_KEY};
use crate::world::Call;

/// Fields that hold secrets, and the paths that accept them.
const SECRET_FIELDS: [(&str, &str); 16] = [
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

/// Paths whose status for an unknown secret is not that of a refusal.
const UNKNOWN: [(&str, u16); 5] = [
    ("/api/auth/revoke-session", 200),
    ("/api/validate-session", 200),
    ("/api/core/apikey/validate", 200),
    ("/oauth/device/authorize", 404),
    ("/two-factor", 303),
];

impl Story<'_> {
    /// Sends requests that are refused, for each possible reason.
    pub(super) async fn provoke(&mut self) {
        // Wrong passwords come first, before other failures delay the account.
        self.passwords_that_are_wrong().await;
        for (number, (path, field)) in SECRET_FIELDS.into_iter().enumerate() {
            self.refused_at(
                path,
                field,
                &format!("marked-refused-{number:02}-{field}-x9Q"),
            )
            .await;
        }
        self.credentials_that_are_none().await;
        self.forms_of_pages().await;
    }

    async fn refused_at(&mut self, path: &str, field: &str, secret: &str) {
        self.marks.text("the secret of a refused request", secret);
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
                self.expect_refusal("iam", path, call.bearer(&token)).await;
            }
        }
        let form = format!("{field}={secret}&{field}={secret}&%zz={secret}");
        for kind in ["application/x-www-form-urlencoded", "text/plain", "x/"] {
            let call = Call::upload(path, kind, form.clone());
            self.expect_refusal("iam", path, call).await;
        }
        let queried = format!("{path}?{field}={secret}&limit={secret}");
        for (service, queried) in [
            ("iam", queried.clone()),
            ("gateway", format!("/api/v1/iam{queried}")),
        ] {
            let call = Call::post(queried, &json!({ field: secret }));
            self.expect_refusal(service, path, call.bearer(SERVICE_KEY))
                .await;
        }
        let elsewhere = Call::new(Method::PUT, format!("{path}?{field}={secret}"));
        self.expect_refusal("iam", path, elsewhere).await;
    }

    /// Sends a call to an existing path, and checks that it is refused.
    async fn expect_refusal(&mut self, service: &str, path: &str, call: Call) {
        let sent = format!("{call:?}");
        let status = self.send(service, call).await.status;
        let unknown = UNKNOWN
            .iter()
            .any(|(of, told)| *of == path && *told == status);
        let refused = status.is_client_error() && status != 404;
        assert!(refused || unknown, "{status}: {sent}");
    }

    async fn credentials_that_are_none(&mut self) {
        let made_up = "marked-made-up-credential-5Tq";
        self.marks.text("a made-up credential", made_up);
        let key = format!("{}x", self.key);
        for service in ["gateway", "iam", "registry"] {
            let path = if service == "iam" {
                "/api/sessions"
            } else {
                "/api/v1/platforms"
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
                let call = Call::get(path).header(name, value);
                let _ = self.send(service, call).await.expect(401);
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
        for path in [
            "reset-password/MADE?callbackURL=//MADE",
            "magic-link/verify?token=MADE&callbackURL=//MADE",
        ] {
            let call = Call::get(format!("/api/auth/{}", path.replace("MADE", made_up)));
            self.expect_refusal("iam", path, call).await;
        }
    }

    async fn forms_of_pages(&mut self) {
        let password = FIRST.replace(' ', "+").replace('/', "%2F");
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
            self.expect_refusal("iam", path, call.header("origin", IAM))
                .await;
        }
    }

    async fn passwords_that_are_wrong(&mut self) {
        let change = json!({ "currentPassword": FIRST, "newPassword": "marked wrong+change/x" });
        self.marks.text("a new password", "marked wrong+change/x");
        let refused = self.post("/api/auth/change-password", change).await;
        assert_eq!(refused.expect(400).json["code"], "INVALID_PASSWORD");
        let verify = json!({ "password": FIRST });
        let refused = self.post("/api/auth/verify-password", verify).await;
        assert_eq!(refused.expect(400).json["code"], "INVALID_PASSWORD");
        let again = json!({ "name": "Ada", "email": ADA, "password": THIRD });
        let taken = self.anonymous("/api/auth/sign-up/email", again).await;
        let _ = taken.expect(422);
    }
}
