//! Log lines of a platform's workers and sites.

use crate::client::Client;
use crate::error::Result;
use crate::net::event_stream::{EventStream, StreamEnd};
use crate::operations::FOLLOW_LOGS;
use crate::types::log::{LogLine, LogQuery};

impl Client {
    /// Opens the stream of log lines, oldest first. With `follow` it ends only with an error.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn follow_logs(
        &self,
        platform: &str,
        query: &LogQuery,
    ) -> Result<EventStream<LogLine>> {
        let call = self.call(FOLLOW_LOGS, &[platform]);
        let call = call.query("resource", query.resource.as_ref());
        let call = call
            .query("follow", Some(query.follow))
            .query("tail", Some(query.tail));
        let end = if query.follow {
            StreamEnd::Never
        } else {
            StreamEnd::ByServer
        };
        call.open(end).await
    }
}
