//! Rules for every HTML page and every form.

use core_domain::kernel::Caller;
use http::Method;

use super::fixture::{Case, TestRequest, for_each_endpoint};
use super::samples::LowestRole;
use crate::world::Answer;

/// The `Accept` header of a browser.
const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// Returns whether browsers get HTML from the endpoint.
fn is_page(case: &Case) -> bool {
    let responses = &case.operation()["responses"];
    let refusal = &responses["400"]["content"];
    !responses["303"].is_null() && refusal.get("text/html; charset=utf-8").is_some()
}

fn text(answer: &Answer) -> String {
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn every_page_has_one_heading_a_language_labels_and_no_inline_script() {
    let checked = for_each_endpoint(async |case: &Case| {
        let ask = case.valid_request().with("accept", HTML);
        let answer = case.send(&case.lowest_caller(), &ask).await;
        if !is_page(case) || answer.status != 200 {
            return false;
        }
        check_text(&text(&answer));
        check_headers(&answer);
        true
    })
    .await;
    assert_eq!(checked, 20);
}

fn check_text(page: &str) {
    // The portal leads back to the application.
    let page = &page.replace("<a href=\"https://app.example.org/\"", "<a");
    assert_eq!(page.matches("<h1>").count(), 1, "{page}");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    // The only script is a file that IAM serves.
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

/// Asserts that browsers do not store the page and do not show it in a frame.
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

/// The origin headers of form submissions that no page of IAM has sent.
const CROSS_ORIGIN_HEADERS: [&[(&str, &str)]; 8] = [
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
async fn forms_without_a_same_origin_header_are_refused_with_or_without_cookies() {
    let checked = for_each_endpoint(async |case: &Case| {
        if !is_page(case) || case.row().method() != Method::POST {
            return false;
        }
        for said in CROSS_ORIGIN_HEADERS {
            for ask in [
                case.valid_request(),
                case.valid_request().without_credentials(),
            ] {
                refused_from(case, ask, said).await;
            }
        }
        // None of the refused requests has changed anything.
        let _ = case.succeed().await;
        true
    })
    .await;
    assert_eq!(checked, 25);
}

async fn refused_from(case: &Case, mut ask: TestRequest, said: &[(&str, &str)]) {
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
async fn endpoints_that_are_not_pages_never_return_html() {
    let checked = for_each_endpoint(async |case: &Case| {
        // An invoice is a page for browsers.
        if is_page(case) || case.name() == "getInvoice" {
            return false;
        }
        let ask = case.valid_request().with("accept", HTML);
        if case.sample.least != LowestRole::Public {
            let nobody = ask.clone().without_credentials();
            let refused = case.send(&Caller::Anonymous, &nobody).await;
            assert!(!is_html(&refused), "{}", case.name());
        }
        let good = case.send(&case.lowest_caller(), &ask).await;
        assert!(good.is_success(), "{}: {}", case.name(), good.json);
        assert!(!is_html(&good), "{}", case.name());
        true
    })
    .await;
    assert_eq!(checked, 288);
}

fn is_html(answer: &Answer) -> bool {
    let kind = answer.headers.get("content-type");
    kind.is_some_and(|kind| kind.to_str().unwrap().starts_with("text/html"))
}
