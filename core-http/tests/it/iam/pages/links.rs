//! Links that are sent by mail: to sign in, and for a new password.

use super::{ADA, EVE, OWN, PASSWORD, World, cookies, location, text};
use crate::iam::NEW;
use crate::world::ORIGIN;

/// The path and query of a link.
fn path(link: &str) -> &str {
    link.strip_prefix(ORIGIN).unwrap()
}

#[tokio::test]
async fn a_link_signs_in_once_and_the_page_says_when_it_is_good_for_nothing() {
    let world = World::new();
    world.sign_up(ADA).await;
    let fields = [("email", ADA), ("next", "/device?user_code=BCDF-GHJK")];
    let sent = world.form("/magic-link", &fields, &[OWN]).await;
    let said = text(&world.page(location(&sent), &[]).await, 200);
    assert!(said.contains("Look into your mail"));
    let link = world.mailed_link(ADA).await;
    let followed = world.page(path(&link), &[]).await;
    let target = format!("{ORIGIN}/device?user_code=BCDF-GHJK");
    assert_eq!(followed.header("location"), target);
    assert_eq!(cookies(&followed).len(), 1);
    let again = world.page(path(&link), &[]).await;
    let asked = world.page(path(again.header("location")), &[]).await;
    let page = text(&asked, 200);
    assert!(page.contains("role=\"alert\"") && page.contains("not valid any more"));
    assert!(page.contains("value=\"/device?user_code=BCDF-GHJK\""));
}

#[tokio::test]
async fn a_link_sets_a_new_password_once_and_nobody_learns_who_has_an_account() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for email in [EVE, ADA] {
        let fields = [("email", email)];
        let sent = world.form("/reset-password", &fields, &[OWN]).await;
        assert_eq!(location(&sent), "/reset-password/sent");
    }
    assert_eq!(world.mails().await.len(), 1);
    let link = world.mailed_link(ADA).await;
    let page = text(&world.page(path(&link), &[]).await, 200);
    let token = world.mailed_token(ADA).await;
    assert!(page.contains(&format!("value=\"{token}\"")) && page.contains("new-password"));
    let set = async |password| {
        let fields = [("token", token.as_str()), ("password", password)];
        world.form("/reset-password/new", &fields, &[OWN]).await
    };
    assert!(text(&set("short").await, 400).contains("password-error"));
    let done = set(NEW).await;
    assert_eq!(location(&done), "/sign-in?notice=password-changed");
    for (password, status) in [(PASSWORD, 401), (NEW, 303)] {
        let fields = [("email", ADA), ("password", password)];
        let signed_in = world.form("/sign-in", &fields, &[OWN]).await;
        assert_eq!(signed_in.status, status);
    }
    let over = world.page_of(&ada, "/account").await;
    assert_eq!(location(&over), "/sign-in");
    assert!(text(&set("another horse battery").await, 400).contains("not valid any more"));
    let old = world.page(path(&link), &[]).await;
    assert!(text(&old, 200).contains("not valid any more"));
}
