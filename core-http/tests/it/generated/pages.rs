//! What holds for every page and every form.

use core_domain::kernel::Caller;
use http::Method;

use super::fixture::{Ask, Case, every_row};
use super::samples::Least;
use crate::world::Answer;

/// What browsers want most.
const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// Whether browsers get pages of the row.
fn is_page(case: &Case) -> bool {
    let operation = case.operation();
    let sent_on = &operation["responses"]["303"]["content"];
    sent_on.get("text/html; charset=utf-8").is_some()
}

fn text(answer: &Answer) -> String {
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn every_page_has_one_heading_a_language_labels_and_no_script_of_its_own() {
    let checked = every_row(async |case: &Case| {
        let ask = case.ask().with("accept", HTML);
        let answer = case.send(&case.least(), &ask).await;
        if !is_page(case) || answer.status != 200 {
            return false;
        }
        check_text(&text(&answer));
        check_headers(&answer);
        true
    })
    .await;
    assert!(checked >= 15, "{checked}");
}

fn check_text(page: &str) {
    assert_eq!(page.matches("<h1>").count(), 1, "{page}");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    // The one script is a file of ours.
    let ours = page.matches("<script defer src=\"/assets/passkeys.js?v=");
    let ours = ours.count();
    assert_eq!(page.matches("<script").count(), ours);
    assert_eq!(page.matches("\"></script>").count(), ours);
    for never in ["<script>", "style=", " onclick", "http://", "https://"] {
        assert!(!page.contains(never), "{never}: {page}");
    }
    for field in ["<input ", "<select "] {
        for tag in page.split(field).skip(1) {
            check_field(page, tag.split('>').next().unwrap());
        }
    }
}

fn check_field(page: &str, tag: &str) {
    if tag.contains("type=\"hidden\"") {
        return;
    }
    let id = tag.split("id=\"").nth(1).unwrap().split('"').next();
    assert!(page.contains(&format!("<label for=\"{}\">", id.unwrap())));
    let is_typed = tag.contains("type=") && !tag.contains("checkbox");
    assert!(!is_typed || tag.contains("autocomplete="), "{tag}");
}

/// Browsers keep no page and show it in no frame.
fn check_headers(page: &Answer) {
    assert_eq!(page.header("cache-control"), "no-store");
    // With `no-referrer` browsers would send forms with `Origin: null`.
    assert_eq!(page.header("referrer-policy"), "same-origin");
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
}

/// What browsers say of a form that no page of ours has sent.
const FROM_ELSEWHERE: [&[(&str, &str)]; 8] = [
    &[("origin", "http://evil.test")],
    &[("origin", "null")],
    &[("origin", "é")],
    &[("origin", "null"), ("sec-fetch-site", "same-origin")],
    &[("sec-fetch-site", "cross-site")],
    &[("sec-fetch-site", "same-site")],
    &[("sec-fetch-site", "none")],
    &[],
];

#[tokio::test]
async fn a_form_must_say_that_one_of_our_pages_sent_it_with_cookies_or_without() {
    let checked = every_row(async |case: &Case| {
        if !is_page(case) || case.row().method() != Method::POST {
            return false;
        }
        for said in FROM_ELSEWHERE {
            for ask in [case.ask(), case.ask().without_credentials()] {
                refused_from(case, ask, said).await;
            }
        }
        // None of them has changed anything.
        let _ = case.succeed().await;
        true
    })
    .await;
    assert!(checked >= 16, "{checked}");
}

async fn refused_from(case: &Case, mut ask: Ask, said: &[(&str, &str)]) {
    ask.headers.retain(|(name, _)| name != "origin");
    let ask = said
        .iter()
        .fold(ask, |ask, (name, value)| ask.with(name, value));
    let ask = ask.with("accept", HTML);
    let refused = case.send(&Caller::Anonymous, &ask).await;
    assert_eq!(refused.status, 403, "{} {said:?}", case.name());
    let page = text(&refused);
    assert!(page.contains("<h1>Not allowed</h1>"), "{}", case.name());
    assert!(refused.headers.get("set-cookie").is_none());
}

#[tokio::test]
async fn whatever_is_no_page_answers_browsers_as_it_answers_programs() {
    let checked = every_row(async |case: &Case| {
        if is_page(case) {
            return false;
        }
        let ask = case.ask().with("accept", HTML);
        if case.sample.least != Least::Public {
            let nobody = ask.clone().without_credentials();
            let refused = case.send(&Caller::Anonymous, &nobody).await;
            assert!(!is_html(&refused), "{}", case.name());
        }
        let good = case.send(&case.least(), &ask).await;
        assert!(good.is_good(), "{}: {}", case.name(), good.json);
        assert!(!is_html(&good), "{}", case.name());
        true
    })
    .await;
    assert!(checked >= 100, "{checked}");
}

fn is_html(answer: &Answer) -> bool {
    let kind = answer.headers.get("content-type");
    kind.is_some_and(|kind| kind.to_str().unwrap().starts_with("text/html"))
}
