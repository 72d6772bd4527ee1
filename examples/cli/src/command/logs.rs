//! Prints log lines.

use console::Style;
use core_client::types::log::{LogLine, LogQuery};

use crate::args::LogsArgs;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::print_line;
use crate::text::plain;

/// Prints the log lines of the platform.
pub(crate) async fn print(context: &Context, args: LogsArgs) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let query = LogQuery {
        resource: args.resource,
        follow: args.follow,
        tail: args.tail,
    };
    let mut lines = client
        .follow_logs(&platform, &query)
        .await
        .map_err(|error| match error.status() {
            Some(501) => {
                Failure::from(error).hint("The provider of this installation has no logs.")
            }
            _ => error.into(),
        })?;
    while let Some(line) = lines.next().await? {
        if context.output.is_json() {
            let json =
                serde_json::to_string(&line).map_err(|error| Failure::other(error.to_string()))?;
            print_line(&json)?;
        } else {
            print_line(&format_line(&line))?;
        }
    }
    Ok(())
}

fn format_line(line: &LogLine) -> String {
    let dim = Style::new().dim();
    let prefix = dim.apply_to(format!("{} {}", plain(&line.at), plain(&line.resource)));
    if let (Some(method), Some(path)) = (&line.method, &line.path) {
        let status = line
            .status
            .map_or_else(|| "-".to_owned(), |status| status.to_string());
        let duration = line
            .duration_ms
            .map_or_else(String::new, |ms| format!(" {ms} ms"));
        return format!(
            "{prefix} {} {} {status}{duration}",
            plain(method),
            plain(path)
        );
    }
    let level = line.level.as_deref().unwrap_or("log");
    let style = match level {
        "error" => Style::new().red(),
        "warn" | "warning" => Style::new().yellow(),
        _ => Style::new(),
    };
    // Lines of a stack trace are kept apart.
    let text: Vec<_> = line
        .text
        .as_deref()
        .unwrap_or_default()
        .lines()
        .map(plain)
        .collect();
    format!(
        "{prefix} {} {}",
        style.apply_to(plain(level)),
        text.join("\n    ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format(line: serde_json::Value) -> String {
        console::set_colors_enabled(false);
        format_line(&serde_json::from_value(line).unwrap())
    }

    #[test]
    fn requests_and_console_lines_have_their_own_forms() {
        let at = "2026-01-15T09:30:00.000Z";
        let request = json!({ "id": "1", "at": at, "resource": "site", "kind": "request", "method": "GET", "path": "/a", "status": 200, "durationMs": 3 });
        assert_eq!(
            format(request),
            "2026-01-15T09:30:00.000Z site GET /a 200 3 ms"
        );
        let console = json!({ "id": "2", "at": at, "resource": "api", "kind": "console", "level": "error", "text": "a\nb\u{1b}[0m" });
        assert_eq!(
            format(console),
            "2026-01-15T09:30:00.000Z api error a\n    b\u{fffd}[0m"
        );
    }
}
