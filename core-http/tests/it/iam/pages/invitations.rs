//! The page that answers invitations.

use super::{ADA, EVE, ORIGIN, OWN_ORIGIN, PASSWORD, World, cookies, location, text};

#[tokio::test]
async fn only_the_recipient_sees_accepts_and_declines_an_invitation() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    for (slug, action, notice) in [
        ("looms", "accept", "joined"),
        ("mills", "decline", "declined"),
    ] {
        let organization = world.create_organization(&eve, slug).await;
        world.invite(&eve, &organization, ADA, "member").await;
        let id = world.mailed_invitation(ADA).await;
        let path = format!("/accept-invitation?id={id}");
        let nobody = world.page(&path, &[]).await;
        let (to, query) = location(&nobody).split_once('?').unwrap();
        let query: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap();
        assert_eq!((to, query[0].0.as_str()), ("/sign-in", "next"));
        let back = world.page_of(&ada, &query[0].1).await;
        assert!(text(&back, 200).contains(slug));
        let page = text(&world.page_of(&ada, &path).await, 200);
        assert!(page.contains(slug) && page.contains(EVE), "{page}");
        let foreign = text(&world.page_of(&eve, &path).await, 403);
        assert!(foreign.contains("another address") && !foreign.contains(slug));
        let fields = [("id", id.as_str()), ("action", action)];
        let stolen = world.form_of(&eve, "/accept-invitation", &fields).await;
        assert!(text(&stolen, 403).contains("another address"));
        let answered = world.form_of(&ada, "/accept-invitation", &fields).await;
        assert_eq!(location(&answered), format!("/account?notice={notice}"));
        assert!(text(&world.page_of(&ada, &path).await, 404).contains("not open"));
        let again = world.form_of(&ada, "/accept-invitation", &fields).await;
        assert!(text(&again, 404).contains("not open"));
    }
    let accepted = world.audit("invitation.accepted").await.len();
    assert_eq!(accepted, 1);
}

#[tokio::test]
async fn a_sign_up_from_the_link_returns_to_the_invitation_with_its_secret() {
    let world = World::new();
    let eve = world.sign_up(EVE).await;
    let organization = world.create_organization(&eve, "looms").await;
    world.invite(&eve, &organization, ADA, "member").await;
    let name = world.mailed_invitation(ADA).await;
    let path = format!("/accept-invitation?id={name}");
    let nobody = world.page(&path, &[]).await;
    let sign_in = text(&world.page(location(&nobody), &[]).await, 200);
    let (_, sign_up) = sign_in.split_once("href=\"/sign-up?next=").unwrap();
    let (next, _) = sign_up.split_once('"').unwrap();
    let page = text(
        &world.page(&format!("/sign-up?next={next}"), &[]).await,
        200,
    );
    let hidden = format!("name=\"next\" value=\"{path}\"");
    assert!(page.contains(&hidden), "{page}");
    let fields = [
        ("name", "Ada"),
        ("email", ADA),
        ("password", PASSWORD),
        ("next", &path),
    ];
    let signed_up = world.form("/sign-up", &fields, &[OWN_ORIGIN]).await;
    assert_eq!(location(&signed_up), path);
    let cookie = cookies(&signed_up)[0].split(';').next().unwrap().to_owned();
    let own = [("cookie", cookie.as_str())];
    let page = text(&world.page(&path, &own).await, 200);
    let hidden = format!("name=\"id\" value=\"{name}\"");
    assert!(page.contains("looms") && page.contains(&hidden), "{page}");
    let fields = [("id", name.as_str()), ("action", "accept")];
    let headers = [OWN_ORIGIN, own[0]];
    let answered = world.form("/accept-invitation", &fields, &headers).await;
    assert_eq!(location(&answered), "/account?notice=joined");
    assert_eq!(world.audit("user.email_verified").await.len(), 1);
}

#[tokio::test]
async fn without_the_secret_the_page_offers_to_confirm_the_address_and_returns() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let organization = world.create_organization(&eve, "looms").await;
    let id = world.invite(&eve, &organization, ADA, "member").await;
    let path = format!("/accept-invitation?id={id}");
    let page = text(&world.page_of(&ada, &path).await, 403);
    assert!(
        page.contains("not confirmed") && !page.contains("looms"),
        "{page}"
    );
    let fields = [("id", id.as_str()), ("action", "accept")];
    let refused = world.form_of(&ada, "/accept-invitation", &fields).await;
    assert!(text(&refused, 403).contains("/accept-invitation/confirm"));
    let fields = [("id", id.as_str())];
    let sent = world
        .form_of(&ada, "/accept-invitation/confirm", &fields)
        .await;
    let sent = location(&sent).to_owned();
    let page = text(&world.page_of(&ada, &sent).await, 200);
    assert!(page.contains("on its way"), "{page}");
    let link = world.mailed_link(ADA).await;
    let headers = [("cookie", ada.cookie.as_str())];
    let confirmed = world.press(&link, "/verify-email", &headers).await;
    assert_eq!(confirmed.header("location"), format!("{ORIGIN}{path}"));
    assert!(text(&world.page_of(&ada, &path).await, 200).contains("looms"));
}
