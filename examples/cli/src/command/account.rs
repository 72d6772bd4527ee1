//! The caller, and the platforms of the caller.

use core_client::types::platform::Platform;
use core_client::{Client, Credential, PageQuery};
use serde_json::json;

use crate::context::Context;
use crate::failure::Result;
use crate::text::{or_dash, short_time};

/// Prints the signed-in person, or the platforms of an API key.
pub(crate) async fn whoami(context: &Context) -> Result<()> {
    let client = context.client()?;
    if let Some(Credential::ApiKey(_)) = context.credential() {
        return describe_api_key(context, &client).await;
    }
    let person = client.whoami().await?;
    context.output.result(&person, |person| {
        format!(
            "{} at {}\nplatform  {}\nrole      {}\nexpires   {}",
            person.email,
            context.api_url,
            or_dash(person.platform_id.as_deref()),
            or_dash(person.role.as_deref()),
            short_time(&person.expires_at),
        )
    })
}

/// Prints the platforms that an API key may read. The server does not describe the key itself.
async fn describe_api_key(context: &Context, client: &Client) -> Result<()> {
    let platforms = match client.list_platforms(&PageQuery::default()).await {
        Ok(page) => page.data,
        // The key is valid and has no permission to read platforms.
        Err(error) if error.status() == Some(403) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let ids: Vec<_> = platforms.iter().map(|platform| &platform.id).collect();
    let value = json!({ "credential": "apiKey", "platformIds": ids });
    context.output.result(&value, |_| {
        let names: Vec<_> = platforms
            .iter()
            .map(|platform| platform.slug.as_str())
            .collect();
        format!(
            "API key of CORE_TOKEN at {}\nplatforms  {}",
            context.api_url,
            or_dash(Some(&names.join(", ")))
        )
    })
}

/// Returns all platforms of the caller.
pub(crate) async fn all_platforms(client: &Client) -> Result<Vec<Platform>> {
    let mut query = PageQuery {
        limit: Some(100),
        cursor: None,
    };
    let mut platforms = Vec::new();
    loop {
        let page = client.list_platforms(&query).await?;
        platforms.extend(page.data);
        if page.cursor.is_none() {
            return Ok(platforms);
        }
        query.cursor = page.cursor;
    }
}

/// Lists the platforms of the caller.
pub(crate) async fn list_platforms(context: &Context) -> Result<()> {
    let platforms = all_platforms(&context.client()?).await?;
    context.output.list(
        &platforms,
        &["SLUG", "NAME", "STATUS", "TIER", "ID"],
        |platform| {
            let Platform {
                slug,
                name,
                status,
                tier,
                id,
                ..
            } = platform;
            vec![
                slug.clone(),
                name.clone(),
                status.to_string(),
                tier.clone(),
                id.clone(),
            ]
        },
    )
}
