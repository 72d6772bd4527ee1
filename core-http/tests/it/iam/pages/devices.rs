//! The page that approves and denies devices.

use super::{ADA, World, location, text};

#[tokio::test]
async fn the_device_page_shows_the_client_and_approves_or_denies_it() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    for (action, done, polled) in [("approve", "approved", 200), ("deny", "denied", 400)] {
        let codes = world.device_codes().await;
        let code = codes.text("user_code");
        let path = format!("/device?user_code={}", code.to_lowercase());
        let nobody = world.page(&path, &[]).await;
        assert!(location(&nobody).starts_with("/sign-in?next=%2Fdevice"));
        let page = text(&world.page_of(&ada, &path).await, 200);
        assert!(page.contains("core-cli") && page.contains(code), "{page}");
        let fields = [("user_code", code), ("action", action)];
        let decided = world.form_of(&ada, "/device", &fields).await;
        assert_eq!(location(&decided), format!("/device/{done}"));
        let told = world.page_of(&ada, location(&decided)).await;
        assert!(text(&told, 200).contains(&format!("Device {done}")));
        let poll = world.poll(codes.text("device_code")).await;
        assert_eq!(poll.status, polled, "{}", poll.json);
        let over = text(&world.page_of(&ada, &path).await, 404);
        assert!(over.contains("user_code-error"), "{over}");
    }
    assert!(text(&world.page_of(&ada, "/device").await, 200).contains("one-time-code"));
}

#[tokio::test]
async fn guessing_user_codes_is_limited() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut statuses = Vec::new();
    for _ in 0..40 {
        let page = world.page_of(&ada, "/device?user_code=BCDF-GHJK").await;
        statuses.push(page.status.as_u16());
    }
    assert_eq!((statuses[0], statuses.last()), (404, Some(&429)));
    let refused = world.page_of(&ada, "/device?user_code=BCDF-GHJK").await;
    let page = text(&refused, 429);
    assert!(page.contains("Too many attempts") && page.contains("Try again in"));
}
