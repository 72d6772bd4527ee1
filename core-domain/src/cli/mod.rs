//! The rules of the CLI service: the allowed content and the maximum size of an uploaded site, and the lines of logs.

mod log;
mod site;

pub use log::{
    LogContent, LogId, LogLevel, LogLine, MAX_LOG_PATH_BYTES, MAX_LOG_TAIL, MAX_LOG_TEXT_BYTES,
};
pub use site::{SiteBuilder, SiteError, SiteFile, SiteLimits};
