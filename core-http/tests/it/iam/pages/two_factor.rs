//! The page that asks for the second factor.

use super::{ADA, OWN_ORIGIN, text};
use crate::world::{PASSWORD, World, pending_sign_in_cookie};

const PAGE: &str = "/two-factor?next=%2Fdevice";

#[tokio::test]
async fn a_form_sign_in_asks_for_the_second_factor_and_then_redirects() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let fields = [("email", ADA), ("password", PASSWORD), ("next", "/device")];
    let asked = world.form("/sign-in", &fields, &[OWN_ORIGIN]).await;
    assert_eq!(
        (asked.status.as_u16(), asked.header("location")),
        (303, PAGE)
    );
    let cookie = pending_sign_in_cookie(&asked);
    let waiting = [OWN_ORIGIN, ("cookie", cookie.as_str())];
    assert!(text(&world.page(PAGE, &waiting).await, 200).contains("one-time-code"));
    // The sign-in page sends a pending sign-in to this page.
    let signing_in = world.page("/sign-in?next=%2Fdevice", &waiting).await;
    assert_eq!(signing_in.header("location"), PAGE);
    let wrong = world
        .form("/two-factor", &[("code", "000000")], &waiting)
        .await;
    assert!(text(&wrong, 401).contains("This code is wrong"));
    let code = authenticator.code(&world);
    let fields = [("code", code.as_str()), ("next", "/device")];
    let done = world.form("/two-factor", &fields, &waiting).await;
    assert_eq!(
        (done.status.as_u16(), done.header("location")),
        (303, "/device")
    );
    assert!(!done.header("set-auth-token").is_empty());
    let over = world.form("/two-factor", &fields, &waiting).await;
    assert_eq!(
        over.header("location"),
        "/sign-in?restart=true&next=%2Fdevice"
    );
}

#[tokio::test]
async fn a_recovery_code_completes_a_pending_sign_in_and_others_start_again() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let authenticator = world.enable_second_factor(&ada).await;
    let cookie = world.begin_sign_in(ADA).await;
    let waiting = [OWN_ORIGIN, ("cookie", cookie.as_str())];
    let fields = [("code", authenticator.recovery_codes[0].as_str())];
    let done = world.form("/two-factor", &fields, &waiting).await;
    assert_eq!(
        (done.status.as_u16(), done.header("location")),
        (303, "/account")
    );
    let nobody = world.page(PAGE, &[]).await;
    assert_eq!(
        nobody.header("location"),
        "/sign-in?restart=true&next=%2Fdevice"
    );
    let refused = world
        .form("/two-factor", &fields, &[("origin", "https://evil.net")])
        .await;
    assert_eq!(refused.status, 403);
}
