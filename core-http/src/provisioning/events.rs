//! The endpoint for the history of a job: a list, or server-sent events while the job is in progress.

use core_domain::access::JobScope;
use core_domain::kernel::{Effect, JobId, ListQuery, Result, Stored, permission};
use core_domain::port::{Mode, Store};
use core_domain::provisioning::JobEvent;
use core_domain::use_case::provisioning::{self, JobFeed, JobProgressEvent};
use serde_json::json;

use crate::kernel::{
    Cx, Endpoint, Event, EventBatch, Feed, FeedState, FeedSubscription, Input, JsonOrEvents,
    LAST_EVENT_ID, ListP4, Output, get,
};

pub(super) fn rows() -> Vec<Endpoint> {
    let position = json!({
        "type": "string",
        "description": "The id of the last received event. Only with text/event-stream.",
    });
    vec![
        get("/api/v1/provision/jobs/{jobId}/events", "listJobEvents")
            .summary("Lists the history of a job, newest first.")
            .description(
                "With `Accept: text/event-stream` the response is a stream of server-sent events, \
                 oldest first, each with the current progress of the job. The stream begins after \
                 the event in `Last-Event-ID`, by default at the first event. It ends when the \
                 job has ended and, if it was cancelled, has been undone.",
            )
            .header("Last-Event-ID", position)
            .plain_with_scope(show),
    ]
}

type JobEventsResponse = JsonOrEvents<ListP4<JobEvent>, JobProgressEvent>;

async fn show(
    cx: &Cx,
    scope: JobScope<permission::JobRead>,
    input: Input<(JobId,), ListQuery>,
) -> Result<JobEventsResponse> {
    if cx.asks_for_events() {
        let news = cx.app.jobs.subscribe(&scope.job().id);
        let listening = FeedSubscription::of(cx, Some(news))?;
        let feed = provisioning::open_feed(cx, &scope, cx.header(LAST_EVENT_ID))?;
        return Ok(JsonOrEvents::Events(listening.follow(feed)));
    }
    let mut uow = cx.app.store.begin(Mode::Auto).await?;
    let page = provisioning::history(&scope, uow.as_mut(), &input.query).await?;
    let page = page.map(Stored::into_inner);
    Ok(JsonOrEvents::Json(Output::new(page.into())))
}

impl Feed for JobFeed {
    type Event = JobProgressEvent;

    async fn next(&mut self, store: &dyn Store) -> Result<EventBatch<JobProgressEvent>> {
        let news = Self::next(self, store).await?;
        let then = match (news.has_more, news.has_ended) {
            (true, _) => FeedState::More,
            (false, false) => FeedState::Later,
            (false, true) => FeedState::End,
        };
        let events = news.events;
        Ok(EventBatch { events, then })
    }

    async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        Self::authorize_again(self, store).await
    }

    fn is_concerned_by(&self, effect: &Effect) -> bool {
        Self::must_reauthorize_after(self, effect)
    }

    fn to_event(told: &JobProgressEvent) -> Result<Event> {
        let shown = Event::json(told)?;
        let (seq, name) = (told.event.seq, told.event.event_type.clone());
        Ok(shown.id(seq.to_string()).name(name))
    }
}
