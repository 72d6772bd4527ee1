//! Signatures of webhooks.

use core_domain::kernel::{Secret, Timestamp, parse_hex};
use core_domain::port::{ProviderEvent, WebhookError};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::client::API_VERSION;
use crate::event::Event;

/// Maximum difference between the time of a signature and now, in seconds.
const MAX_AGE_SECONDS: u64 = 300;

/// The parts of the header `Stripe-Signature`.
struct Signature<'a> {
    time: &'a str,
    /// The digests. While a secret is replaced there are two.
    digests: Vec<[u8; 32]>,
}

fn parse(header: &str) -> Option<Signature<'_>> {
    let mut time = None;
    let mut digests = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=')? {
            ("t", value) => time = Some(value),
            ("v1", value) => digests.extend(parse_hex(value)),
            // Other schemes, among them the one of test events.
            _ => {}
        }
    }
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    Some(Signature {
        time: time.filter(is_number)?,
        digests,
    })
}

/// Returns whether one of the digests is that of the body with one of the secrets. Takes the same time for all digests.
fn is_signed(secrets: &[Secret], signature: &Signature<'_>, body: &[u8]) -> bool {
    let mut is_equal = Choice::from(0);
    for secret in secrets {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else {
            continue;
        };
        mac.update(signature.time.as_bytes());
        mac.update(b".");
        mac.update(body);
        let digest = mac.finalize().into_bytes();
        for candidate in &signature.digests {
            is_equal |= candidate[..].ct_eq(&digest[..]);
        }
    }
    is_equal.into()
}

/// Returns the name of the major version, for example `endive`.
fn major(version: &str) -> Option<&str> {
    version.split_once('.').map(|(_, name)| name)
}

/// Checks the signature of a webhook over its bytes, and returns its event.
pub(crate) fn verify(
    secrets: &[Secret],
    is_live: bool,
    body: &[u8],
    header: &str,
    now: Timestamp,
) -> Result<ProviderEvent, WebhookError> {
    if secrets.is_empty() {
        return Err(WebhookError::NotConfigured);
    }
    let signature = parse(header).ok_or(WebhookError::Signature)?;
    if !is_signed(secrets, &signature, body) {
        return Err(WebhookError::Signature);
    }
    let time: i64 = signature
        .time
        .parse()
        .map_err(|_| WebhookError::Signature)?;
    if now.seconds().abs_diff(time) > MAX_AGE_SECONDS {
        return Err(WebhookError::Stale);
    }
    let malformed = |why: &str| WebhookError::Malformed(why.to_owned());
    let event: Event =
        serde_json::from_slice(body).map_err(|_| malformed("the body is no event"))?;
    if event.livemode != is_live {
        return Err(WebhookError::OtherMode);
    }
    let version = event.api_version.as_deref().and_then(major);
    if version.is_none() || version != major(API_VERSION) {
        return Err(malformed(
            "its version differs; set the version of the webhook endpoint to that of the adapter",
        ));
    }
    Ok(event.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_793_491_200;

    fn body() -> String {
        format!(
            r#"{{"id":"evt_1","type":"invoice.paid","created":{NOW},"livemode":false,"api_version":"{API_VERSION}","data":{{"object":{{"id":"in_1","object":"invoice","customer":"cus_1"}}}}}}"#
        )
    }

    fn digest(secret: &str, time: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{time}.{body}").as_bytes());
        core_domain::kernel::hex(&mac.finalize().into_bytes())
    }

    fn verify_at(now: i64, header: &str, body: &str) -> Result<ProviderEvent, WebhookError> {
        let secrets = [Secret::new("whsec_old"), Secret::new("whsec_new")];
        let now = Timestamp::from_seconds(now);
        verify(&secrets, false, body.as_bytes(), header, now)
    }

    #[test]
    fn every_digest_is_compared_with_every_secret() {
        let body = body();
        let other = digest("whsec_other", NOW, &body);
        for secret in ["whsec_old", "whsec_new"] {
            let own = digest(secret, NOW, &body);
            for header in [
                format!("t={NOW},v1={own}"),
                format!("t={NOW},v1={other},v1={own},v0=ff"),
                format!("v1={own}, t={NOW}"),
            ] {
                let event = verify_at(NOW, &header, &body).unwrap();
                assert_eq!(event.object_id.as_deref(), Some("in_1"));
                assert_eq!(event.customer.as_deref(), Some("cus_1"));
            }
        }
    }

    #[test]
    fn forged_altered_and_malformed_signatures_are_refused() {
        let body = body();
        let own = digest("whsec_new", NOW, &body);
        let other = digest("whsec_other", NOW, &body);
        for header in [
            String::new(),
            "nonsense".to_owned(),
            format!("v1={own}"),
            format!("t={NOW}"),
            format!("t={NOW},v1={other}"),
            format!("t={NOW},v0={own}"),
            format!("t={NOW},v1={}", &own[1..]),
            format!("t={NOW},v1={}", own.to_uppercase()),
            format!("t={},v1={own}", NOW + 1),
            format!("t=+{NOW},v1={own}"),
        ] {
            assert_eq!(
                verify_at(NOW, &header, &body),
                Err(WebhookError::Signature),
                "{header}"
            );
        }
        let header = format!("t={NOW},v1={own}");
        let altered = body.replace("in_1", "in_2");
        assert_eq!(
            verify_at(NOW, &header, &altered),
            Err(WebhookError::Signature)
        );
    }

    #[test]
    fn a_signature_is_valid_for_300_seconds() {
        let body = body();
        let header = format!("t={NOW},v1={}", digest("whsec_new", NOW, &body));
        for (now, is_valid) in [(300, true), (-300, true), (301, false), (-301, false)] {
            let verified = verify_at(NOW + now, &header, &body);
            assert_eq!(verified.is_ok(), is_valid, "{now}");
        }
    }

    #[test]
    fn events_of_another_mode_or_version_are_refused() {
        for (from, to, is_mode) in [
            (r#""livemode":false"#, r#""livemode":true"#, true),
            ("endive", "foxglove", false),
            ("2026-10-28.endive", "2020-08-27", false),
            (r#""id":"evt_1","#, "", false),
        ] {
            let body = body().replace(from, to);
            let header = format!("t={NOW},v1={}", digest("whsec_new", NOW, &body));
            let refused = verify_at(NOW, &header, &body).unwrap_err();
            assert_eq!(refused == WebhookError::OtherMode, is_mode, "{refused}");
        }
        // A later version of the same name is compatible.
        let body = body().replace("2026-10-28", "2026-12-01");
        let header = format!("t={NOW},v1={}", digest("whsec_new", NOW, &body));
        assert!(verify_at(NOW, &header, &body).is_ok());
    }

    #[test]
    fn without_a_secret_webhooks_are_refused() {
        let refused = verify(&[], false, b"{}", "", Timestamp::from_seconds(NOW));
        assert_eq!(refused, Err(WebhookError::NotConfigured));
    }
}
