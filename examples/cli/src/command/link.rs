//! Chooses the platform of a folder.

use std::path::PathBuf;

use core_client::types::platform::Platform;
use serde_json::json;

use super::account::all_platforms;
use crate::config::files::read_optional;
use crate::config::project::{FILE_NAME, with_platform};
use crate::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::output::ask;
use crate::text::plain;

/// Writes the platform to `core.toml`: in the folder of the existing file, or in the present folder.
pub(crate) async fn link(context: &Context, wanted: Option<&str>) -> Result<()> {
    let platforms = all_platforms(&context.client()?).await?;
    let platform = match wanted {
        Some(wanted) => find(&platforms, wanted)?,
        None => choose(context, &platforms)?,
    };
    let path = match &context.project {
        Some(project) => project.folder.join(FILE_NAME),
        None => PathBuf::from(FILE_NAME),
    };
    let failure = |error: std::io::Error| Failure::io(&format!("write {}", path.display()), &error);
    let text = read_optional(&path).map_err(failure)?.unwrap_or_default();
    std::fs::write(&path, with_platform(&text, &platform.id)).map_err(failure)?;
    let value = json!({ "platformId": platform.id, "slug": platform.slug, "file": path });
    context.output.result(&value, |_| {
        format!(
            "{} uses the platform {}.",
            path.display(),
            plain(&platform.slug)
        )
    })
}

fn find<'p>(platforms: &'p [Platform], wanted: &str) -> Result<&'p Platform> {
    let found = platforms
        .iter()
        .find(|platform| platform.slug == wanted || platform.id == wanted);
    found.ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            format!("There is no platform {wanted:?}."),
        )
        .hint("`core-cli platforms` lists your platforms.")
    })
}

fn choose<'p>(context: &Context, platforms: &'p [Platform]) -> Result<&'p Platform> {
    match platforms {
        [] => return Err(Failure::new(FailureKind::NotFound, "You have no platform.")),
        [only] => return Ok(only),
        _ => {}
    }
    for (number, platform) in platforms.iter().enumerate() {
        context.output.note(&format!(
            "{:>3}  {}  {}",
            number + 1,
            plain(&platform.slug),
            plain(&platform.name)
        ));
    }
    let answer = ask("Number of the platform: ")
        .map_err(|failure| failure.hint("Name it: core-cli link PLATFORM"))?;
    let number = answer.trim().parse::<usize>().ok();
    let chosen = number.and_then(|number| platforms.get(number.checked_sub(1)?));
    chosen
        .ok_or_else(|| Failure::usage(format!("{:?} is not a number of the list.", answer.trim())))
}
