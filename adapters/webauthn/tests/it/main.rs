//! Tests of passkeys with a software authenticator: real keys, real signatures.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use core_domain::kernel::{JsonText, UserId};
use core_domain::port::{
    NewPasskey, PasskeyError, PasskeyUser, Passkeys, PresentedPasskey, UsedPasskey,
};
use core_webauthn::Webauthn;
use core_webauthn::testing::SoftAuthenticator;
use serde_json::{Value, json};

const ORIGIN: &str = "https://iam.example.org";
const APP: &str = "https://iam.example.org:8443";

fn webauthn() -> Webauthn {
    Webauthn::new(ORIGIN, &[APP.to_owned()]).unwrap()
}

fn ada() -> UserId {
    UserId::parse("ada").unwrap()
}

fn begin(passkeys: &Webauthn, existing: &[String]) -> (Value, JsonText) {
    let id = ada();
    let user = PasskeyUser {
        id: &id,
        name: "ada@example.org",
        display_name: "Ada",
    };
    let begun = passkeys.begin_registration(&user, existing).unwrap();
    (begun.options, begun.state)
}

fn register(
    passkeys: &Webauthn,
    authenticator: &mut SoftAuthenticator,
) -> Result<NewPasskey, PasskeyError> {
    let (options, state) = begin(passkeys, &[]);
    passkeys.complete_registration(&state, &authenticator.create(&options))
}

fn authenticate(
    passkeys: &Webauthn,
    authenticator: &mut SoftAuthenticator,
    credential: &JsonText,
    user: &UserId,
) -> Result<UsedPasskey, PasskeyError> {
    let begun = passkeys.begin_authentication().unwrap();
    let shown = PresentedPasskey {
        user_id: user,
        credential,
    };
    let response = authenticator.get(&begun.options);
    passkeys.complete_authentication(&begun.state, &response, &shown)
}

#[test]
fn a_registered_passkey_is_verified_and_its_counter_is_updated() {
    let passkeys = webauthn();
    let mut authenticator = SoftAuthenticator::new(1, ORIGIN);
    let made = register(&passkeys, &mut authenticator).unwrap();
    assert_eq!(made.credential_id, authenticator.id());
    assert_eq!((made.counter, made.backed_up), (1, false));
    assert_eq!(made.transports, ["internal"]);
    let used = authenticate(&passkeys, &mut authenticator, &made.credential, &ada()).unwrap();
    assert_eq!(used.counter, 2);
    let used = authenticate(&passkeys, &mut authenticator, &used.credential, &ada()).unwrap();
    assert_eq!(used.counter, 3);
}

#[test]
fn the_options_have_the_form_that_browsers_expect() {
    let passkeys = webauthn();
    let (options, _) = begin(&passkeys, &["AAEC".to_owned()]);
    assert_eq!(options["rp"]["id"], "iam.example.org");
    assert_eq!(options["user"]["name"], "ada@example.org");
    assert_eq!(options["attestation"], "none");
    assert_eq!(options["timeout"], 300_000);
    assert_eq!(options["excludeCredentials"][0]["id"], "AAEC");
    let selection = &options["authenticatorSelection"];
    assert_eq!(selection["residentKey"], "required");
    assert_eq!(selection["userVerification"], "required");
    let asked = passkeys.begin_authentication().unwrap().options;
    assert_eq!(asked["userVerification"], "required");
    assert_eq!(asked["allowCredentials"], json!([]));
    assert_ne!(
        asked["challenge"],
        passkeys.begin_authentication().unwrap().options["challenge"]
    );
}

#[test]
fn only_pages_of_trusted_origins_can_use_passkeys() {
    let passkeys = webauthn();
    let mut trusted = SoftAuthenticator::new(1, APP);
    register(&passkeys, &mut trusted).unwrap();
    for origin in [
        "https://evil.example.net",
        "http://iam.example.org",
        "https://iam.example.org:1",
    ] {
        let mut authenticator = SoftAuthenticator::new(1, origin);
        let refused = register(&passkeys, &mut authenticator);
        assert!(matches!(refused, Err(PasskeyError::Refused(_))), "{origin}");
    }
}

#[test]
fn a_response_without_user_verification_is_refused() {
    let passkeys = webauthn();
    let mut careless = SoftAuthenticator::new(1, ORIGIN);
    careless.verifies_user = false;
    let refused = register(&passkeys, &mut careless);
    assert!(matches!(refused, Err(PasskeyError::Refused(_))));
    let mut authenticator = SoftAuthenticator::new(1, ORIGIN);
    let made = register(&passkeys, &mut authenticator).unwrap();
    authenticator.verifies_user = false;
    let refused = authenticate(&passkeys, &mut authenticator, &made.credential, &ada());
    assert!(matches!(refused, Err(PasskeyError::Refused(_))));
}

#[test]
fn a_counter_that_goes_back_has_a_separate_error() {
    let passkeys = webauthn();
    let mut authenticator = SoftAuthenticator::new(1, ORIGIN);
    let made = register(&passkeys, &mut authenticator).unwrap();
    let mut copy = authenticator.clone();
    let used = authenticate(&passkeys, &mut authenticator, &made.credential, &ada()).unwrap();
    let refused = authenticate(&passkeys, &mut copy, &used.credential, &ada());
    assert!(matches!(refused, Err(PasskeyError::CounterNotIncreased)));
}

#[test]
fn an_authenticator_that_does_not_count_is_accepted() {
    let passkeys = webauthn();
    let mut synced = SoftAuthenticator::new(1, ORIGIN);
    (synced.counts, synced.backed_up) = (false, true);
    let made = register(&passkeys, &mut synced).unwrap();
    assert!(made.backed_up && made.backup_eligible);
    for _ in 0..2 {
        let used = authenticate(&passkeys, &mut synced, &made.credential, &ada()).unwrap();
        assert_eq!((used.counter, used.backed_up), (0, true));
    }
}

#[test]
fn another_key_another_user_and_another_challenge_are_refused() {
    let passkeys = webauthn();
    let mut authenticator = SoftAuthenticator::new(1, ORIGIN);
    let made = register(&passkeys, &mut authenticator).unwrap();
    let mut forged = SoftAuthenticator::new(2, ORIGIN);
    forged
        .credential_id
        .clone_from(&authenticator.credential_id);
    forged.user_handle.clone_from(&authenticator.user_handle);
    forged.counter = 7;
    let eve = UserId::parse("eve").unwrap();
    let refused = [
        authenticate(&passkeys, &mut forged, &made.credential, &ada()),
        authenticate(
            &passkeys,
            &mut authenticator.clone(),
            &made.credential,
            &eve,
        ),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(PasskeyError::Refused(_))));
    }
    let [first, second] = [(); 2].map(|()| passkeys.begin_authentication().unwrap());
    let id = ada();
    let shown = PresentedPasskey {
        user_id: &id,
        credential: &made.credential,
    };
    let response = authenticator.get(&first.options);
    let refused = passkeys.complete_authentication(&second.state, &response, &shown);
    assert!(matches!(refused, Err(PasskeyError::Refused(_))));
}

#[test]
fn a_malformed_authenticator_response_is_refused() {
    let passkeys = webauthn();
    let (_, state) = begin(&passkeys, &[]);
    let good = SoftAuthenticator::new(1, ORIGIN).create(&json!({
        "rp": { "id": "iam.example.org" }, "user": { "id": "AA" }, "challenge": "AA",
    }));
    let mut cut = good.clone();
    cut["response"]["attestationObject"] = json!("o2NmbXQ");
    for bad in [json!({}), Value::Null, json!({ "id": "x" }), good, cut] {
        let refused = passkeys.complete_registration(&state, &bad);
        assert!(matches!(refused, Err(PasskeyError::Refused(_))), "{bad}");
        let refused = passkeys.credential_id(&json!({ "response": bad }));
        assert!(matches!(refused, Err(PasskeyError::Refused(_))));
    }
}

#[test]
fn a_base_url_without_a_domain_name_is_refused() {
    for bad in [
        "http://127.0.0.1:8081",
        "http://[::1]",
        "iam.example.org",
        "",
    ] {
        let error = Webauthn::new(bad, &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("{bad:?}")), "{error}");
    }
    assert!(Webauthn::new("http://localhost:8081", &[]).is_ok());
}
