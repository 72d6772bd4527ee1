//! Tests of the IAM service, from the request to the response.

mod api_keys;
mod authority;
mod confirmation;
mod confirmed_addresses;
mod cross_origin;
mod device_cookies;
mod effects;
mod factors;
mod imported;
mod invitation_mails;
mod invitations;
mod links;
mod machines;
mod membership_audit;
mod new_organizations;
mod notices;
mod oauth;
mod on_behalf;
mod organization_limits;
mod organizations;
mod pages;
mod passkey_limits;
mod passkeys;
mod people;
mod permissions;
mod plugin;
mod removal;
mod sessions;
mod sign_in;
mod sign_up;
mod step_up;
mod suspension;
mod take_over;
mod throttle;
mod trusted_devices;
mod two_factor;

use core_domain::kernel::Caller;
use core_http::kernel::{ViaGateway, bytes_body};
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use crate::world::{Answer, Person, World};

const ADA: &str = "ada@example.org";
const EVE: &str = "eve@example.org";
const WRONG_PASSWORD: &str = "wrong horse battery";
/// The new password in tests that change it.
const NEW_PASSWORD: &str = "staple battery horse";

/// One day, in seconds.
const DAY: u64 = 24 * 3_600;

const SIGN_UP: &str = "/api/auth/sign-up/email";
const SIGN_IN: &str = "/api/auth/sign-in/email";
const SIGN_OUT: &str = "/api/auth/sign-out";
const GET_SESSION: &str = "/api/auth/get-session";
const CORE_SESSION: &str = "/api/core/session";
const SESSIONS: &str = "/api/sessions";
const ORG_SETUP: &str = "/api/core/org-setup";
const BOOTSTRAP: &str = "/api/core/bootstrap";

/// The content type of forms.
const FORM_CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

type Headers<'h> = &'h [(&'h str, &'h str)];

impl World {
    /// Sends a request whose caller no gateway has identified. IAM identifies the caller by the headers.
    async fn send_unidentified(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: Value,
    ) -> Answer {
        let nobody = Caller::Anonymous;
        self.iam.send(&nobody, method, path, headers, body).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send_unidentified("POST", path, &[], body).await
    }

    /// Sends a request with this bearer token.
    async fn send_with_bearer(&self, token: &str, method: &str, path: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        self.send_unidentified(method, path, &headers, Value::Null)
            .await
    }

    /// Sends a request with the session token of a person.
    async fn send_as_person(
        &self,
        person: &Person,
        method: &str,
        path: &str,
        body: Value,
    ) -> Answer {
        let bearer = format!("Bearer {}", person.token);
        let headers = [("authorization", bearer.as_str())];
        self.send_unidentified(method, path, &headers, body).await
    }

    /// Sends a request with an API key, as a program that calls IAM itself.
    async fn send_with_key(&self, secret: &str, method: &str, path: &str, body: Value) -> Answer {
        self.send_unidentified(method, path, &[("x-api-key", secret)], body)
            .await
    }

    async fn sign_in(&self, email: &str, password: &str) -> Answer {
        let body = json!({ "email": email, "password": password });
        self.post(SIGN_IN, body).await
    }

    /// Signs in with the token of a magic link.
    async fn follow_magic_link(&self, token: &str) -> Answer {
        let path = format!("/api/auth/magic-link/verify?token={token}");
        self.send_unidentified("GET", &path, &[], Value::Null).await
    }

    /// Requests a reset link and sets a new password with it.
    async fn reset_password(&self, email: &str, new: &str) -> Answer {
        let body = json!({ "email": email });
        let asked = self.post("/api/auth/request-password-reset", body).await;
        let _ = asked.expect(200);
        let body = json!({ "token": self.mailed_token(email).await, "newPassword": new });
        self.post("/api/auth/reset-password", body).await
    }

    /// Posts a body of this content type.
    async fn post_text(&self, path: &str, content_type: &str, text: &str) -> Answer {
        let headers = [("content-type", content_type)];
        self.post_with(path, &headers, text).await
    }

    /// Posts a body whose content type is among the headers.
    async fn post_with(&self, path: &str, headers: Headers<'_>, text: &str) -> Answer {
        let mut request = Request::post(path).extension(ViaGateway);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(bytes_body(text.to_owned())).unwrap();
        self.iam.raw(request).await
    }
}

/// Returns the body and headers of an answer without its request id. Indistinguishable answers are then equal.
fn without_request_id(mut answer: Answer) -> (Value, HeaderMap) {
    answer.headers.remove("x-request-id");
    if let Some(id) = answer.json.pointer_mut("/error/requestId") {
        *id = Value::Null;
    }
    (answer.json, answer.headers)
}

/// Returns the `set-cookie` lines of an answer.
fn cookies(answer: &Answer) -> Vec<&str> {
    let lines = answer.headers.get_all("set-cookie").iter();
    lines.map(|line| line.to_str().unwrap()).collect()
}
