"""Decides which findings of Schemathesis are failures."""

import schemathesis

# The codes of issues that a JSON Schema can express. A request that matches its schema must not have one of these.
SCHEMA_RULES = {
    "required", "invalid_type", "invalid_enum", "too_short", "too_long", "too_small", "too_big", "pattern",
    "invalid_format", "not_unique", "unknown_field",
}

# The title of a finding that says nothing about the suite. The schema of a stream describes the whole stream,
# as OpenAPI 3.1 says, and Schemathesis applies it to each event, as OpenAPI 3.2 says.
STREAM_SCHEMA = "SSE event violates schema"


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Accepts a refusal of a valid request unless its reason is a rule of the schema.

    Many rules are about the records: a cursor belongs to a list, a card is refused, an idempotency key was used before. No
    schema can express them.
    """
    if failure.title == STREAM_SCHEMA:
        return False
    if failure.title != "Schema-valid request rejected":
        return True
    if "x-www-form-urlencoded" in str(case.media_type):
        # Schemathesis sends `null` as the text `null`. A form leaves the field out.
        return False
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return False
    if not isinstance(error, dict) or error.get("code") != "VALIDATION_ERROR":
        return False
    issues = (error.get("details") or {}).get("issues", [])
    # The domain adds rules about several fields, and its messages differ from those of the schema.
    of_schema = [issue for issue in issues if issue["code"] in SCHEMA_RULES and not issue["message"].endswith(".")]
    of_schema = [issue for issue in of_schema if issue["code"] != "required" or issue["message"] == "is required"]
    # `propertyNames` is no keyword of our schemas: the names of secrets are described in words.
    of_schema = [issue for issue in of_schema if issue["path"][:1] != ["secrets"]]
    # Instants before 1970 are refused, which no format says.
    of_schema = [issue for issue in of_schema if not issue["message"].endswith("date-time")]
    return bool(of_schema)
