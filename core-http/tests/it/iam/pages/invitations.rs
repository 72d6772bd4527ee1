//! Answering invitations.

use super::{ADA, EVE, World, location, text};

#[tokio::test]
async fn an_invitation_is_shown_to_its_recipient_and_accepted_or_declined() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    for (slug, action, notice) in [
        ("looms", "accept", "joined"),
        ("mills", "decline", "declined"),
    ] {
        let organization = world.found(&eve, slug).await;
        let id = world.invite(&eve, &organization, ADA, "member").await;
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
