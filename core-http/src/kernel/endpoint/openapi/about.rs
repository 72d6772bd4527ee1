//! The texts of an OpenAPI document that concern the service as a whole.

/// The properties of a service that its OpenAPI document describes.
#[derive(Clone, Debug)]
pub(crate) struct OpenApi {
    /// The name of the service.
    pub(crate) service: &'static str,
    /// The purpose of the service in one or two sentences of Markdown. Empty if none was set.
    pub(crate) purpose: &'static str,
    /// The tags that have a description.
    pub(crate) tags: Vec<Tag>,
    /// The name of the cookie that identifies sessions; `None` if the service accepts no cookies.
    pub(crate) session_cookie: Option<&'static str>,
}

/// A tag, which is a section of the document, with its description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    pub(crate) name: &'static str,
    /// One sentence about the operations of the tag.
    pub(crate) description: &'static str,
}

impl OpenApi {
    /// Returns the description of the document in Markdown: purpose, authentication, pagination and errors.
    ///
    /// `has_pages` is `true` if an operation takes a cursor.
    pub(super) fn description(&self, has_pages: bool) -> String {
        let mut authentication = "Authenticate with a session token or the service key in \
             `Authorization: Bearer`, or with an API key in `x-api-key`."
            .to_owned();
        if let Some(cookie) = self.session_cookie {
            authentication.push_str(&format!(
                " Browsers can send the session cookie `{cookie}` instead."
            ));
        }
        let mut paragraphs = vec![self.purpose.to_owned(), authentication];
        if has_pages {
            paragraphs.push(
                "Lists have pages: `limit` sets the number of records per page, and `cursor` takes \
                 the cursor of the next page from the previous response."
                    .to_owned(),
            );
        }
        paragraphs.push(
            "Errors have the form `{\"error\": {\"code\", \"message\", \"requestId\", \"details\"}}` \
             unless an operation documents another one; programs should only depend on `code`."
                .to_owned(),
        );
        paragraphs.retain(|paragraph| !paragraph.is_empty());
        paragraphs.join("\n\n")
    }

    /// Returns the description of a tag, if it has one.
    pub(super) fn tag_description(&self, name: &str) -> Option<&'static str> {
        let tag = self.tags.iter().find(|tag| tag.name == name);
        tag.map(|tag| tag.description)
    }
}
