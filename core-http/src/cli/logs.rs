//! The endpoint that streams the log of a platform's workers and sites, as server-sent events.

use std::sync::Arc;

use core_domain::access::PlatformScope;
use core_domain::cli::LogLine;
use core_domain::kernel::{Code, Effect, PlatformId, Result, permission};
use core_domain::port::{Infrastructure, LogListener, Store};
use core_domain::use_case::cli::{LogFeed, PlatformLogQuery, open_log};
use serde_json::json;
use tokio::sync::watch;

use crate::kernel::{
    Cx, Endpoint, Event, EventBatch, EventStream, Feed, FeedState, FeedSubscription, Input,
    LAST_EVENT_ID, get, with,
};

pub(super) fn rows(infrastructure: Arc<dyn Infrastructure>) -> Vec<Endpoint> {
    let service = Arc::new(LogService { infrastructure });
    let position = json!({ "type": "string", "description": "The id of the last received line." });
    vec![
        get("/api/v1/platforms/{platformId}/logs", "followLogs")
            .summary("Streams the logs of a platform's workers and sites as server-sent events.")
            .description(
                "Each event is one line: a text that a worker wrote to its console, or a request \
                 to a worker or site. Its `id` is the id of the line. The stream begins with the \
                 last `tail` lines or, with `Last-Event-ID`, with the first kept line after that \
                 one. The installation keeps the last 1,000 lines of each worker and site by \
                 default; at Cloudflare there are only new lines. A line `N lines were left out` \
                 stands for lines that were written faster than they were read or stored. \
                 `NOT_FOUND` also means that the infrastructure provider has no logs. With \
                 `follow=false` the stream ends after the existing lines. It ends when the caller \
                 loses access.",
            )
            .header("Last-Event-ID", position)
            .refuses(&[Code::UpstreamError])
            .plain_with_scope(with(&service, follow)),
    ]
}

/// The provider that has the logs.
#[derive(Debug)]
struct LogService {
    infrastructure: Arc<dyn Infrastructure>,
}

async fn follow(
    cx: &Cx,
    service: Arc<LogService>,
    scope: PlatformScope<permission::LogRead>,
    input: Input<(PlatformId,), PlatformLogQuery>,
) -> Result<EventStream<LogLine>> {
    let (signal, news) = watch::channel(());
    let subscription = FeedSubscription::of(cx, Some(news))?;
    let last = cx.header(LAST_EVENT_ID);
    let listener: Arc<dyn LogListener> = Arc::new(NewLines(signal));
    let feed = open_log(
        cx,
        &scope,
        service.infrastructure.as_ref(),
        &input.query,
        last,
        Some(listener),
    )
    .await?;
    Ok(subscription.follow(Lines {
        feed,
        is_live: input.query.follow.unwrap_or(true),
    }))
}

/// Signals to a stream that there may be new lines.
#[derive(Debug)]
struct NewLines(watch::Sender<()>);

impl LogListener for NewLines {
    fn on_lines(&self) {
        self.0.send_replace(());
    }
}

/// The log of a platform, as a caller reads it.
struct Lines {
    feed: LogFeed,
    /// Whether the stream stays open and waits for further lines.
    is_live: bool,
}

impl Feed for Lines {
    type Event = LogLine;

    async fn next(&mut self, store: &dyn Store) -> Result<EventBatch<LogLine>> {
        let batch = self.feed.next(store).await?;
        let then = match (batch.has_more, self.is_live) {
            (true, _) => FeedState::More,
            (false, true) => FeedState::Later,
            (false, false) => FeedState::End,
        };
        Ok(EventBatch {
            events: batch.lines,
            then,
        })
    }

    async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        self.feed.authorize_again(store).await
    }

    fn is_concerned_by(&self, effect: &Effect) -> bool {
        self.feed.must_reauthorize_after(effect)
    }

    fn to_event(line: &LogLine) -> Result<Event> {
        Ok(Event::json(line)?.id(line.id.to_string()))
    }
}
