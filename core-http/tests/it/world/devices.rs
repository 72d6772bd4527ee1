//! Devices that people sign in with.

use core_domain::access::RecordKey;
use core_domain::kernel::Caller;
use core_domain::port::{Mode, Within};
use serde_json::json;

use super::{Answer, Person, World};

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

impl World {
    /// The codes of a device.
    pub(crate) async fn device_codes(&self) -> Answer {
        let body = json!({ "client_id": "core-cli" });
        let asked = self
            .iam
            .post(&Caller::Anonymous, "/oauth/device/code", body);
        asked.await.expect(200)
    }

    /// What a person decides about the device with a code.
    pub(crate) async fn decide(&self, person: &Person, code: &str, action: &str) -> Answer {
        let body = json!({ "user_code": code, "action": action });
        let path = "/oauth/device/authorize";
        self.iam.post(&person.caller(), path, body).await
    }

    /// A device asks for its tokens.
    pub(crate) async fn poll(&self, device_code: &str) -> Answer {
        let body = json!({
            "grant_type": DEVICE_GRANT, "device_code": device_code, "client_id": "core-cli",
        });
        let path = "/oauth/device/token";
        self.iam.post(&Caller::Anonymous, path, body).await
    }

    /// Exchanges a refresh token.
    pub(crate) async fn refresh(&self, token: &str) -> Answer {
        let body = json!({
            "grant_type": "refresh_token", "refresh_token": token, "client_id": "core-cli",
        });
        self.iam
            .post(&Caller::Anonymous, "/oauth/token", body)
            .await
    }

    /// A device that a person has approved; answers its device code.
    pub(crate) async fn approved(&self, person: &Person) -> String {
        let codes = self.device_codes().await;
        let approved = self
            .decide(person, codes.text("user_code"), "approve")
            .await;
        let _ = approved.expect(200);
        codes.text("device_code").to_owned()
    }

    /// Marks a person as banned in the store, and leaves their sessions.
    pub(crate) async fn keep_out(&self, person: &Person) {
        let mut uow = self.app.store.begin(Mode::Write).await.unwrap();
        let now = uow.now().await.unwrap();
        let id = &person.user_id;
        let users = uow.repositories(RecordKey::for_tests()).users();
        let seen = users.get(Within::Installation, id).await.unwrap();
        let seen = seen.unwrap();
        let mut next = seen.edit();
        next.banned_at = Some(now);
        users.replace(&seen, next).await.unwrap();
        uow.commit().await.unwrap();
    }

    /// A device that a person has signed in with; answers its tokens.
    pub(crate) async fn device_login(&self, person: &Person) -> Answer {
        let device_code = self.approved(person).await;
        self.poll(&device_code).await.expect(200)
    }
}
