//! Single calls of an operator, and their results.

use core_domain::kernel::Caller;
use core_http::kernel::testing::{Answer, operator};
use serde_json::{Value, json};

use super::{ORIGIN, PLATFORMS, Person, World, owner, platform_path};

impl World {
    /// Returns the response of the registry to a `GET` of the operator, which must succeed.
    pub(crate) async fn get_record(&self, path: &str) -> Answer {
        self.registry.get(&operator(), path).await.expect(200)
    }

    /// Asserts that the registry has no record at this path.
    pub(crate) async fn assert_missing(&self, path: &str) {
        let missing = self.registry.get(&operator(), path).await;
        missing.expect_error(404, "NOT_FOUND");
    }

    /// Sends a `PATCH` to the registry as the operator.
    pub(crate) async fn patch_record(&self, path: &str, body: Value) -> Answer {
        self.registry.patch(&operator(), path, body).await
    }

    /// Changes the lifecycle of a platform: a `POST` to `suspend`, `restore`, `cancel` or `delete`, or a `DELETE` for
    /// `soft-delete`. Advances the clock by a second.
    pub(crate) async fn change_lifecycle(
        &self,
        platform: &str,
        step: &str,
        caller: &Caller,
    ) -> Answer {
        let answer = if step == "soft-delete" {
            self.registry
                .delete(caller, &platform_path(platform, ""))
                .await
        } else {
            let path = platform_path(platform, &format!("/{step}"));
            self.registry.post(caller, &path, Value::Null).await
        };
        self.tick(1);
        answer
    }

    /// Like [`World::moved`], as the operator. The change must succeed.
    pub(crate) async fn change_lifecycle_as_operator(&self, platform: &str, step: &str) {
        let _ = self
            .change_lifecycle(platform, step, &operator())
            .await
            .expect(200);
    }

    /// Deletes a record as the operator. Advances the clock by a second.
    pub(crate) async fn delete_record(&self, path: &str) {
        let deleted = self.registry.delete(&operator(), path).await.expect(200);
        assert_eq!(deleted.json, json!({ "success": true }));
        self.tick(1);
    }

    /// Sets the status of a platform with `/internal/platform-status`, a route for other services.
    pub(crate) async fn set_platform_status(&self, platform: &str, status: &str) {
        let body = json!({ "platformId": platform, "status": status });
        let path = "/internal/platform-status";
        let flagged = self.provisioning.post(&operator(), path, body).await;
        let _ = flagged.expect(200);
    }

    pub(crate) async fn status(&self, platform: &str) -> String {
        let shown = self.get_record(&platform_path(platform, "")).await;
        shown.text("status").to_owned()
    }

    /// Returns whether the platform's callers are refused with 451.
    pub(crate) async fn is_suspended(&self, platform: &str) -> bool {
        let path = platform_path(platform, "/entities");
        let answer = self.registry.get(&owner(platform), &path).await;
        answer.status == 451
    }

    /// Returns a job as operators see it.
    pub(crate) async fn job(&self, id: &str) -> Value {
        let path = format!("/api/v1/provision/jobs/{id}");
        self.provisioning
            .get(&operator(), &path)
            .await
            .expect(200)
            .json
    }

    /// Returns the jobs of a platform, newest first.
    pub(crate) async fn jobs(&self, platform: &str) -> Vec<Value> {
        let path = format!("/api/v1/provision/jobs?platformId={platform}");
        let listed = self.provisioning.get(&operator(), &path).await.expect(200);
        listed.json["data"].as_array().unwrap().clone()
    }

    /// Returns the number of records in a list of the registry.
    pub(crate) async fn count(&self, path: &str) -> u64 {
        self.get_record(path).await.total().unwrap()
    }

    /// Sets up an organization with a platform as this person, who sends their session cookie.
    pub(crate) async fn set_up_organization(&self, person: &Person, slug: &str) -> Answer {
        let body = json!({ "name": "Engines", "slug": slug });
        let headers = [("cookie", person.cookie.as_str()), ("origin", ORIGIN)];
        let path = "/api/core/org-setup";
        let caller = person.caller();
        self.iam.send(&caller, "POST", path, &headers, body).await
    }

    /// Returns the id of the platform that a person's session acts for; `null` if there is none.
    pub(crate) async fn active_platform(&self, person: &Person) -> Value {
        let session = self.iam.get(&person.caller(), "/api/core/session").await;
        session.expect(200).json["platformId"].clone()
    }

    pub(crate) async fn is_slug_available(&self, slug: &str) -> bool {
        let path = format!("/api/v1/onboarding/slug/{slug}");
        self.get_record(&path).await.json["available"] == true
    }

    /// Returns the number of platforms that are not deleted.
    pub(crate) async fn platform_count(&self) -> u64 {
        self.count(PLATFORMS).await
    }
}
