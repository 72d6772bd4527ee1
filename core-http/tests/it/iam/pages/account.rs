//! The account page with the sessions and devices of a person.

use super::{ADA, EVE, PASSWORD, World, location, text};

#[tokio::test]
async fn the_account_page_lists_and_ends_sessions_and_devices() {
    let world = World::new();
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let other = world.session_of(other.text("token")).await;
    let _ = world.device_login(&ada).await;
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert_eq!(page.matches("<h3>").count(), 3, "{page}");
    assert_eq!(page.matches("This session").count(), 1);
    assert_eq!(page.matches("<h3>Device: core-cli").count(), 1);
    let own = format!("value=\"{}\"", ada.session_id);
    assert!(page.contains(&other) && !page.contains(&own));
    assert!(!page.contains(&eve.session_id) && !page.contains(&ada.token));
    let end = async |person, session: &str| {
        let path = "/account/revoke-session";
        let ended = world.form_of(person, path, &[("session", session)]).await;
        location(&ended).to_owned()
    };
    // The session of another person stays.
    assert_eq!(
        end(&ada, &eve.session_id).await,
        "/account?notice=session-ended"
    );
    assert!(text(&world.page_of(&eve, "/account").await, 200).contains(EVE));
    end(&ada, &other).await;
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert!(!page.contains(&other) && page.contains("core-cli"));
    let ended = world.form_of(&ada, "/account/revoke-other-sessions", &[]);
    assert_eq!(location(&ended.await), "/account?notice=others-ended");
    let page = text(&world.page_of(&ada, "/account").await, 200);
    assert_eq!(page.matches("<h3>").count(), 1, "{page}");
    assert_eq!(
        end(&ada, &ada.session_id).await,
        "/account?notice=session-ended"
    );
    assert_eq!(end(&ada, &ada.session_id).await, "/sign-in");
}
