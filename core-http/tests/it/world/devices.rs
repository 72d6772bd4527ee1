//! Devices that sign in for people, such as the command-line client.

use core_domain::access::RecordKey;
use core_domain::kernel::Caller;
use core_domain::port::{Mode, Within};
use serde_json::json;

use super::{Answer, Person, World};

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

impl World {
    /// Requests the codes of a device login.
    pub(crate) async fn device_codes(&self) -> Answer {
        let body = json!({ "client_id": "core-cli" });
        let asked = self
            .iam
            .post(&Caller::Anonymous, "/oauth/device/code", body);
        asked.await.expect(200)
    }

    /// Approves or denies the device with this user code, as a person. `action` is `approve` or `deny`.
    pub(crate) async fn decide(&self, person: &Person, code: &str, action: &str) -> Answer {
        let body = json!({ "user_code": code, "action": action });
        let path = "/oauth/device/authorize";
        self.iam.post(&person.caller(), path, body).await
    }

    /// Polls for the tokens of a device.
    pub(crate) async fn poll(&self, device_code: &str) -> Answer {
        let body = json!({
            "grant_type": DEVICE_GRANT, "device_code": device_code, "client_id": "core-cli",
        });
        let path = "/oauth/device/token";
        self.iam.post(&Caller::Anonymous, path, body).await
    }

    /// Exchanges a refresh token for new tokens.
    pub(crate) async fn refresh(&self, token: &str) -> Answer {
        let body = json!({
            "grant_type": "refresh_token", "refresh_token": token, "client_id": "core-cli",
        });
        self.iam
            .post(&Caller::Anonymous, "/oauth/token", body)
            .await
    }

    /// Requests codes for a device that the person then approves. Returns the device code.
    pub(crate) async fn approve_device(&self, person: &Person) -> String {
        let codes = self.device_codes().await;
        let approved = self
            .decide(person, codes.text("user_code"), "approve")
            .await;
        let _ = approved.expect(200);
        codes.text("device_code").to_owned()
    }

    /// Marks a person as banned in the store. Their sessions stay.
    pub(crate) async fn ban_in_store(&self, person: &Person) {
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

    /// Signs in a device for a person. Returns the response with its tokens.
    pub(crate) async fn device_login(&self, person: &Person) -> Answer {
        let device_code = self.approve_device(person).await;
        self.poll(&device_code).await.expect(200)
    }
}
