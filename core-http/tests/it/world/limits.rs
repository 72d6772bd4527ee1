//! Worlds with limits that differ from the defaults, and assertions about reached limits.

use std::sync::Arc;

use core_domain::kernel::Limits;
use core_http::cli::CliConfig;
use core_http::kernel::App;
use core_http::kernel::testing::Answer;

use super::{Api, World, send_concurrently, services_of};

impl World {
    /// Returns every service over the same store, with these limits.
    pub(crate) fn services_with(&self, limits: Limits) -> [Api; 6] {
        let mut app = App::clone(&self.app);
        app.options.limits = Arc::new(limits);
        let billing = &self.billing_parts;
        services_of(
            &Arc::new(app),
            &self.provider,
            CliConfig::default(),
            billing,
        )
    }

    /// Returns the same world with these limits.
    pub(crate) fn with_limits(mut self, limits: Limits) -> Self {
        let services = self.services_with(limits);
        [
            self.registry,
            self.iam,
            self.provisioning,
            self.cli,
            self.billing,
            self.stacks,
        ] = services;
        self
    }
}

/// Asserts that the answer refuses the request with 409 because this limit is reached.
#[track_caller]
pub(crate) fn assert_limit(answer: &Answer, limit: u64, context: &str) {
    let refusal = (answer.status.as_u16(), answer.code());
    let json = &answer.json;
    assert_eq!(refusal, (409, "LIMIT_REACHED"), "{context}: {json}");
    let details = json.pointer("/details").or(json.pointer("/error/details"));
    assert_eq!(details.unwrap()["limit"], limit, "{context}");
}

/// Sends requests one by one until there is room for two more, and then five at once. Asserts that two of those succeed
/// and three are refused.
pub(crate) async fn assert_room_at_once<F>(
    (room, limit): (usize, u64),
    context: &str,
    request: impl Fn(usize) -> F,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let one_by_one = room.checked_sub(2).unwrap();
    for number in 0..one_by_one {
        let answer = request(number).await;
        assert!(answer.is_success(), "{context} {number}: {}", answer.json);
    }
    let answers = send_concurrently((one_by_one..room + 3).map(request)).await;
    let (created, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Answer::is_success);
    assert_eq!((created.len(), refused.len()), (2, 3), "{context}");
    for answer in refused {
        assert_limit(&answer, limit, context);
    }
}
