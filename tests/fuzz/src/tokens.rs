//! Service tokens: signed JWTs.
//!
//! A signed token is read back with the same claims. Neither an altered token nor a text that was not signed is
//! accepted.

use core_domain::iam::{Ed25519Private, ServiceClaims, UnverifiedToken, sign_service_token};
use core_domain::kernel::{SessionId, SuiteService, Timestamp};

/// Tokens of other issuers and algorithms, and parts of tokens.
pub(crate) const SEEDS: &[&str] = &[
    "eyJhbGciOiJFZERTQSIsInR5cCI6ImF0K2p3dCIsImtpZCI6ImsifQ.e30.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
    "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0.e30.",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.e30.AAAA",
    "a.b.c",
    "..",
    "018f3c7e-session",
];

const ISSUER: &str = "http://iam.test";

/// Checks the claims for one text, as a token and as a part of a token.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let key = Ed25519Private::from_seed([7; 32]);
    let now = Timestamp::from_seconds(1_793_491_200);
    let read = |token: &str| {
        let token = UnverifiedToken::parse(token).ok()?;
        token.verify(&key.public(), ISSUER, "registry", now).ok()
    };
    assert!(
        read(text).is_none(),
        "a text that was not signed is accepted"
    );
    let claims = ServiceClaims {
        iss: ISSUER.to_owned(),
        sub: SuiteService::Gateway,
        aud: SuiteService::Registry,
        iat: now.seconds(),
        nbf: now.seconds(),
        exp: now.seconds() + 300,
        jti: text.chars().take(128).collect(),
        sid: SessionId::parse(text),
    };
    let token = sign_service_token(&key, &claims);
    let kid = key.public().thumbprint();
    let parsed = UnverifiedToken::parse(&token).ok();
    assert_eq!(
        parsed.and_then(|parsed| parsed.kid().map(str::to_owned)),
        Some(kid)
    );
    assert_eq!(read(&token).as_ref(), Some(&claims));
    if let Some(altered) = alter(&token, data) {
        assert!(
            read(&altered).is_none(),
            "an altered token is accepted: {altered}"
        );
    }
}

/// Replaces one character of a token, which the input chooses. Returns `None` if the character stays the same.
fn alter(token: &str, data: &[u8]) -> Option<String> {
    let at = data
        .iter()
        .fold(0, |sum, byte| sum * 31 % 65_521 + usize::from(*byte))
        % token.len();
    let other = if data.len().is_multiple_of(2) {
        '-'
    } else {
        '.'
    };
    let altered: String = token
        .char_indices()
        .map(|(index, c)| if index == at { other } else { c })
        .collect();
    (altered != token).then_some(altered)
}
