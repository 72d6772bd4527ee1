//! Sign-up, sign-in and sign-out with forms.

use core_http::iam::IamOptions;

use super::{ACCEPT_HTML, ADA, EVE, ORIGIN, OWN_ORIGIN, PASSWORD, World, cookies, location, text};

const GOOD: [(&str, &str); 2] = [("email", ADA), ("password", PASSWORD)];

#[tokio::test]
async fn forms_sign_up_and_in_set_the_cookie_and_redirect_with_303() {
    let world = World::new();
    let new = [
        ("name", "Ada"),
        ("email", ADA),
        ("password", PASSWORD),
        ("next", "/device"),
    ];
    let up = world.form("/sign-up", &new, &[OWN_ORIGIN]).await;
    assert_eq!((location(&up), cookies(&up).len()), ("/device", 2));
    let remember = [GOOD[0], GOOD[1], ("remember", "true")];
    for (fields, set, age) in [(&GOOD[..], 3, false), (&remember[..], 2, true)] {
        let signed_in = world.form("/sign-in", fields, &[OWN_ORIGIN]).await;
        assert_eq!(location(&signed_in), "/account");
        let cookies = cookies(&signed_in);
        assert_eq!((cookies.len(), cookies[0].contains("Max-Age")), (set, age));
        assert_eq!(signed_in.header("cache-control"), "no-store");
        let cookie = cookies[0].split(';').next().unwrap();
        let account = world.page("/account", &[("cookie", cookie)]).await;
        assert!(text(&account, 200).contains(ADA));
        let held = [("cookie", cookie)];
        let again = world.page("/sign-in?next=/device", &held).await;
        assert_eq!(location(&again), "/device");
        let out = [OWN_ORIGIN, ("cookie", cookie)];
        let out = world.form("/sign-out", &[], &out).await;
        assert_eq!(location(&out), "/sign-in?notice=signed-out");
        let account = world.page("/account", &[("cookie", cookie)]).await;
        assert_eq!(location(&account), "/sign-in");
    }
    let home = world.page("/", &[]).await;
    assert_eq!(location(&home), "/sign-in");
    let told = world.page("/sign-in?notice=signed-out", &[]).await;
    assert!(text(&told, 200).contains("You are signed out."));
}

#[tokio::test]
async fn errors_appear_beside_their_field_and_all_input_but_passwords_is_kept() {
    let world = World::new();
    world.sign_up(ADA).await;
    let beside = |field: &str, page: &str| {
        let about = format!("aria-describedby=\"{field}-error\"");
        let hinted = format!("aria-describedby=\"{field}-hint {field}-error\"");
        let error = format!("id=\"{field}-error\"");
        assert!(page.contains(&about) || page.contains(&hinted), "{page}");
        assert!(page.contains(&error) && page.contains("aria-invalid=\"true\""));
        assert!(page.contains("<title>Error: "), "{page}");
    };
    let unsafe_text = "\"><script>alert(1)</script>";
    for (path, fields, status, field) in [
        (
            "/sign-in",
            [("email", ADA), ("password", "wrong horse")],
            401,
            "password",
        ),
        (
            "/sign-in",
            [("email", EVE), ("password", PASSWORD)],
            401,
            "password",
        ),
        (
            "/sign-in",
            [("email", unsafe_text), ("password", PASSWORD)],
            400,
            "email",
        ),
        (
            "/sign-up",
            [("email", "nobody"), ("password", PASSWORD)],
            400,
            "email",
        ),
        (
            "/sign-up",
            [("email", ADA), ("password", PASSWORD)],
            422,
            "email",
        ),
        (
            "/sign-up",
            [("email", EVE), ("password", "short")],
            400,
            "password",
        ),
        (
            "/sign-up",
            [("email", EVE), ("password", "password1")],
            400,
            "password",
        ),
        (
            "/magic-link",
            [("email", "nobody"), ("password", "")],
            400,
            "email",
        ),
        (
            "/reset-password",
            [("email", "nobody"), ("password", "")],
            400,
            "email",
        ),
    ] {
        let fields = [fields[0], fields[1], ("name", "Ada"), ("next", "/device")];
        let answer = world.form(path, &fields, &[OWN_ORIGIN]).await;
        let page = text(&answer, status);
        beside(field, &page);
        assert!(cookies(&answer).is_empty());
        let entered = fields[0].1.replace('"', "&quot;").replace('<', "&lt;");
        let entered = entered.replace('>', "&gt;");
        assert!(page.contains(&format!("value=\"{entered}\"")), "{page}");
        assert!(path == "/reset-password" || page.contains("value=\"/device\""));
        assert!(!page.contains("<script>") && !page.contains("wrong horse"));
    }
}

#[tokio::test]
async fn a_name_with_a_web_address_is_refused_beside_its_field() {
    let world = World::new();
    let fields = [
        ("email", EVE),
        ("password", PASSWORD),
        ("name", "Win at evil.example/now"),
    ];
    let answer = world.form("/sign-up", &fields, &[OWN_ORIGIN]).await;
    let page = text(&answer, 400);
    assert!(page.contains("id=\"name-error\""), "{page}");
    assert!(page.contains("A name cannot contain a web address."));
    assert!(cookies(&answer).is_empty());
}

#[tokio::test]
async fn same_origin_in_sec_fetch_site_replaces_the_origin_header() {
    let world = World::new();
    world.sign_up(ADA).await;
    let same = [("sec-fetch-site", "same-origin")];
    let signed_in = world.form("/sign-in", &GOOD, &same).await;
    assert_eq!(location(&signed_in), "/account");
}

#[tokio::test]
async fn redirects_to_untrusted_addresses_are_refused() {
    let world = World::new();
    world.sign_up(ADA).await;
    for next in ["https://evil.test/", "//evil.test", "/\\evil.test"] {
        for path in [
            "/sign-in",
            "/sign-up",
            "/magic-link",
            "/two-factor",
            "/account/confirm",
        ] {
            let query = serde_urlencoded::to_string([("next", next)]).unwrap();
            let page = world.page(&format!("{path}?{query}"), &[ACCEPT_HTML]).await;
            assert!(!text(&page, 403).contains("evil"));
            let others = [("name", "A"), ("code", "123456"), ("next", next)];
            let fields = [&GOOD[..], &others].concat();
            let posted = world.form(path, &fields, &[OWN_ORIGIN]).await;
            assert!(!text(&posted, 403).contains("evil"));
            assert!(cookies(&posted).is_empty());
        }
    }
    assert!(world.mails().await.is_empty());
}

#[tokio::test]
async fn if_addresses_must_be_confirmed_the_pages_say_what_to_do() {
    let world = World::new().with_iam(IamOptions {
        require_email_verification: true,
        ..IamOptions::default()
    });
    let new = [("name", "Ada"), GOOD[0], GOOD[1]];
    // The second sign-up sends a mail that reports the existing account.
    for _ in 0..2 {
        let up = world.form("/sign-up", &new, &[OWN_ORIGIN]).await;
        assert_eq!(location(&up), "/sign-up/sent");
        assert!(cookies(&up).is_empty());
    }
    let page = text(&world.page("/sign-up/sent", &[]).await, 200);
    assert!(page.contains("<h1>Look into your mail</h1>"));
    world.tick(1);
    let refused = world.form("/sign-in", &GOOD, &[OWN_ORIGIN]).await;
    assert!(text(&refused, 403).contains("Your address is not confirmed yet."));
    let link = world.mailed_link(ADA).await;
    let link = link.strip_prefix(ORIGIN).unwrap();
    let page = text(&world.page(link, &[]).await, 200);
    assert!(page.contains("Enter the password of your account"));
    let (_, query) = link.split_once('?').unwrap();
    let fields: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap();
    let fields = fields.iter().map(|(name, value)| (&**name, &**value));
    let fields: Vec<_> = fields.chain([GOOD[1]]).collect();
    let confirmed = world.form("/verify-email", &fields, &[OWN_ORIGIN]).await;
    for (led_on, target, words) in [
        (
            confirmed,
            "/sign-in?notice=email-confirmed",
            "Your address is confirmed.",
        ),
        (
            world.page(link, &[]).await,
            "/sign-in?notice=email-confirmed&error=INVALID_TOKEN",
            "This link is not valid any more.",
        ),
    ] {
        assert_eq!(location(&led_on), format!("{ORIGIN}{target}"));
        assert!(text(&world.page(target, &[]).await, 200).contains(words));
    }
    let signed_in = world.form("/sign-in", &GOOD, &[OWN_ORIGIN]).await;
    assert_eq!(location(&signed_in), "/account");
}
