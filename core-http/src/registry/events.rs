//! The endpoint of the change feed, as server-sent events.

use core_domain::access::SignedInScope;
use core_domain::kernel::{Code, Effect, Result};
use core_domain::port::Store;
use core_domain::shared::ChangeEvent;
use core_domain::use_case::registry::audit::{ChangeFeed, FeedQuery, open_feed};
use serde_json::json;

use crate::kernel::{
    Cx, Endpoint, Event, EventBatch, EventStream, Feed, FeedState, FeedSubscription, Input,
    LAST_EVENT_ID, get,
};

pub(super) fn rows() -> Vec<Endpoint> {
    let position = json!({ "type": "string", "description": "The id of the last received event." });
    vec![
        get("/api/v1/events", "followEvents")
            .summary("Streams changes as server-sent events.")
            .description(
                "The data of each event is a `ChangeEvent`, its `id` is the position in the feed. \
                 The stream begins after the event in `Last-Event-ID` or `lastEventId`, or with \
                 the next change if neither is given. `types` selects the types of events. With \
                 `follow=false` the stream ends after the existing events. An id before archived \
                 events is refused, because events would be missing; 0 begins with the first \
                 event that is not archived. Operators receive all \
                 changes, or those of one platform; other callers those of one platform. The \
                 stream ends when the caller loses access.",
            )
            .header("Last-Event-ID", position)
            .refuses(&[Code::Forbidden, Code::NotFound])
            .plain_with_scope(follow),
    ]
}

async fn follow(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(), FeedQuery>,
) -> Result<EventStream<ChangeEvent>> {
    let listening = FeedSubscription::of(cx, Some(cx.app.sealed.subscribe()))?;
    let (store, last) = (cx.app.store.as_ref(), cx.header(LAST_EVENT_ID));
    let feed = open_feed(cx, &scope, store, &input.query, last).await?;
    Ok(listening.follow(Changes {
        feed,
        is_live: input.query.follow.unwrap_or(true),
    }))
}

/// The change feed of a caller.
struct Changes {
    feed: ChangeFeed,
    /// Whether the stream stays open and waits for further events.
    is_live: bool,
}

impl Feed for Changes {
    type Event = ChangeEvent;

    async fn next(&mut self, store: &dyn Store) -> Result<EventBatch<ChangeEvent>> {
        let (events, more) = self.feed.next(store).await?;
        let then = match (more, self.is_live) {
            (true, _) => FeedState::More,
            (false, true) => FeedState::Later,
            (false, false) => FeedState::End,
        };
        Ok(EventBatch { events, then })
    }

    async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        self.feed.authorize_again(store).await
    }

    fn is_concerned_by(&self, effect: &Effect) -> bool {
        self.feed.may_lose_access_by(effect)
    }

    fn to_event(event: &ChangeEvent) -> Result<Event> {
        let shown = Event::json(event)?;
        Ok(shown.id(event.id.clone()).name(event.event_type.clone()))
    }
}
