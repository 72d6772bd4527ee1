//! Second factors and passkeys: the ways to authenticate besides a password.

use core_domain::iam::TotpSecret;
use core_domain::kernel::Timestamp;
use core_domain::testing::totp_secret_of;
use core_http::kernel::testing::Answer;
use core_webauthn::testing::SoftAuthenticator;
use serde_json::json;

use super::IAM;
use super::story::{ADA, Story, THIRD, parameter};
use crate::world::Call;

impl Story<'_> {
    /// Signs in with both factors. Returns the cookie of the device, which is trusted from now on.
    pub(super) async fn second_factor(&mut self) -> String {
        let token = self.token.clone();
        let secret = self.set_up_totp(&token, THIRD).await;
        let own = json!({ "password": THIRD });
        let path = "/api/auth/two-factor/get-totp-uri";
        let shown = self.post(path, own.clone()).await.expect(200);
        assert_eq!(
            totp_secret_of(shown.text("totpURI")).unwrap().expose(),
            secret.expose()
        );
        let path = "/api/auth/two-factor/generate-backup-codes";
        let renewed = self.post(path, own).await.expect(200);
        let codes = self.recovery_codes(&renewed);
        let credentials = json!({ "email": ADA, "password": THIRD });
        let half = self.anonymous("/api/auth/sign-in/email", credentials).await;
        let half = half.expect(200);
        assert_eq!(half.json["twoFactorRedirect"], true);
        let waits = self.cookies(&half).join("; ");
        let _ = self
            .sign_in_with_recovery_code(&waits, "not-a-code")
            .await
            .expect(401);
        let shown = self
            .sign_in_with_recovery_code(&waits, &codes[0])
            .await
            .expect(200);
        self.signed_in(&shown);
        let given = self.cookies(&shown).into_iter();
        let mut devices = given.filter(|cookie| cookie.starts_with("better-auth.trust_device="));
        devices.next().unwrap()
    }

    /// Signs in with the password alone, with the cookie of a trusted device.
    pub(super) async fn trusted_device(&mut self, device: String) {
        let credentials = json!({ "email": ADA, "password": THIRD });
        let call = Call::post("/api/auth/sign-in/email", &credentials);
        let call = call.header("cookie", device).header("origin", IAM);
        let signed_in = self.send("iam", call).await.expect(200);
        assert_eq!(signed_in.json["user"]["email"], ADA);
        self.signed_in(&signed_in);
    }

    /// Sets up a second factor for the user of the session. Returns its secret.
    pub(super) async fn set_up_totp(&mut self, token: &str, password: &str) -> TotpSecret {
        let own = Call::post(
            "/api/auth/two-factor/enable",
            &json!({ "password": password }),
        );
        let set_up = self.send("iam", own.bearer(token)).await.expect(200);
        let _ = self.recovery_codes(&set_up);
        let encoded = parameter(set_up.text("totpURI"), "secret");
        let secret = totp_secret_of(set_up.text("totpURI")).unwrap();
        self.marks.text("a TOTP secret", &encoded);
        self.marks
            .text("a TOTP secret in plain text", secret.expose());
        let code = json!({ "code": secret.code_at(now()) });
        let code = Call::post("/api/auth/two-factor/verify-totp", &code);
        let shown = self.send("iam", code.bearer(token)).await.expect(200);
        let _ = self.cookies(&shown);
        secret
    }

    /// Completes the sign-in of these cookies, and trusts the device.
    pub(super) async fn sign_in_with_recovery_code(&mut self, cookies: &str, code: &str) -> Answer {
        let body = json!({ "code": code, "trustDevice": true });
        let call = Call::post("/api/auth/two-factor/verify-backup-code", &body);
        let call = call.header("cookie", cookies).header("origin", IAM);
        self.send("iam", call).await
    }

    pub(super) fn recovery_codes(&mut self, answer: &Answer) -> Vec<String> {
        let codes = answer.json["backupCodes"].as_array().unwrap();
        let codes: Vec<String> = codes
            .iter()
            .map(|code| code.as_str().unwrap().to_owned())
            .collect();
        for code in &codes {
            self.marks.text("a recovery code", code);
        }
        codes
    }

    pub(super) async fn passkey(&mut self) {
        let mut authenticator = SoftAuthenticator::new(1, IAM);
        let token = self.token.clone();
        let added = self.add_passkey(&token, &mut authenticator).await;
        let _ = added.expect(200);
        let signed_in = self
            .sign_in_with_passkey(&mut authenticator)
            .await
            .expect(200);
        self.signed_in(&signed_in);
        let token = signed_in.json["session"]["token"].as_str().unwrap();
        self.marks.text("a session's token", token);
        token.clone_into(&mut self.token);
    }

    /// Registers a passkey for the user of the session.
    pub(super) async fn add_passkey(
        &mut self,
        token: &str,
        authenticator: &mut SoftAuthenticator,
    ) -> Answer {
        let begin = Call::get("/api/auth/passkey/generate-register-options").bearer(token);
        let begun = self.send("iam", begin).await;
        if !begun.is_success() {
            return begun;
        }
        let made = json!({ "response": authenticator.create(&begun.json), "name": "My laptop" });
        let call = Call::post("/api/auth/passkey/verify-registration", &made).bearer(token);
        self.complete(&begun, call).await
    }

    /// Signs in with a passkey.
    pub(super) async fn sign_in_with_passkey(
        &mut self,
        authenticator: &mut SoftAuthenticator,
    ) -> Answer {
        let begin = Call::get("/api/auth/passkey/generate-authenticate-options");
        let begun = self.send("iam", begin).await;
        if !begun.is_success() {
            return begun;
        }
        let shown = json!({ "response": authenticator.get(&begun.json) });
        let call = Call::post("/api/auth/passkey/verify-authentication", &shown);
        self.complete(&begun, call).await
    }

    async fn complete(&mut self, begun: &Answer, call: Call) -> Answer {
        let cookie = self.cookies(begun).join("; ");
        let call = call.header("cookie", cookie).header("origin", IAM);
        self.send("iam", call).await
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server uses the clock of the machine"
)]
fn now() -> Timestamp {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_seconds(i64::try_from(elapsed.unwrap().as_secs()).unwrap())
}
