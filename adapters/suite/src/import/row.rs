//! Parses one row of an import file into a user.

use core_domain::iam::PasswordHash;
use core_domain::kernel::{Email, Line, PersonName, Timestamp, UserId};
use core_domain::port::{HashForm, PasswordHasher};
use core_domain::use_case::iam::user::ImportedUser;
use serde_json::{Map, Value};

/// The fields that a row may have. All but `email` are optional; `updatedAt` is ignored.
const FIELDS: [&str; 8] = [
    "id",
    "name",
    "email",
    "emailVerified",
    "image",
    "createdAt",
    "passwordHash",
    "updatedAt",
];

/// Parses a row.
///
/// # Errors
/// Every error found in the row. The texts never contain the password hash.
pub(super) fn parse(text: &str, hasher: &dyn PasswordHasher) -> Result<ImportedUser, Vec<String>> {
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(vec!["is not a JSON object".to_owned()]),
        Err(error) => return Err(vec![format!("is not valid JSON: {}", without_line(&error))]),
    };
    let mut row = Row {
        fields,
        problems: Vec::new(),
    };
    row.refuse_unknown();
    let id = row.text("id");
    let id = id.and_then(|id| row.check_value("id", UserId::parse(&id), "is not a valid id"));
    let name = row.text("name").unwrap_or_default();
    let name = row.check_value(
        "name",
        PersonName::parse(&name).ok(),
        "must be one line of at most 255 characters and must not contain a web address",
    );
    let email = row.text("email");
    if row.fields.get("email").is_none_or(Value::is_null) {
        row.problem("email", "is missing");
    }
    let email = email.and_then(|email| {
        let parsed = Email::parse(&email).ok();
        row.check_value("email", parsed, "is not an e-mail address")
    });
    let image = row.text("image");
    let image = image.and_then(|image| {
        let parsed = Line::parse(&image).ok();
        row.check_value(
            "image",
            parsed,
            "must be one line of at most 2048 characters",
        )
    });
    let email_verified = row.is_email_verified();
    let created_at = row.instant("createdAt");
    let password_hash = row.text("passwordHash");
    let password_hash = password_hash.and_then(|hash| {
        let known = hasher.form(&hash) != HashForm::Unreadable;
        let hash = known.then(|| PasswordHash::new(hash));
        row.check_value(
            "passwordHash",
            hash,
            "is neither an Argon2 hash (PHC string) nor a scrypt hash of better-auth",
        )
    });
    match (name, email) {
        (Some(name), Some(email)) if row.problems.is_empty() => Ok(ImportedUser {
            id,
            name,
            email,
            email_verified,
            image,
            created_at,
            password_hash,
        }),
        _ => Err(row.problems),
    }
}

/// Removes the position from a JSON error: it counts from the start of the row, not of the file.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.find(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

struct Row {
    fields: Map<String, Value>,
    problems: Vec<String>,
}

impl Row {
    fn problem(&mut self, field: &str, problem: &str) {
        self.problems.push(format!("{field} {problem}"));
    }

    fn check_value<T>(&mut self, field: &str, value: Option<T>, problem: &str) -> Option<T> {
        if value.is_none() {
            self.problem(field, problem);
        }
        value
    }

    fn refuse_unknown(&mut self) {
        let unknown = self.fields.keys();
        let unknown = unknown.filter(|field| !FIELDS.contains(&field.as_str()));
        let unknown: Vec<String> = unknown.cloned().collect();
        for field in unknown {
            // An unknown field name can be any text, so it is escaped and cut.
            let shown: String = field.escape_debug().take(60).collect();
            self.problem(&shown, "is an unknown field");
        }
    }

    /// Returns a text field, or `None` if the field is missing or `null`.
    fn text(&mut self, field: &'static str) -> Option<String> {
        match self.fields.get(field)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => {
                self.problem(field, "is not a string");
                None
            }
        }
    }

    /// Returns `emailVerified`. Accepts 0 and 1 as well, which databases without booleans export.
    fn is_email_verified(&mut self) -> bool {
        match self.fields.get("emailVerified") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(verified)) => *verified,
            Some(Value::Number(number)) if number.as_u64() == Some(0) => false,
            Some(Value::Number(number)) if number.as_u64() == Some(1) => true,
            Some(_) => {
                self.problem("emailVerified", "is neither true nor false");
                false
            }
        }
    }

    /// Returns a point in time: RFC 3339, or milliseconds since 1970.
    fn instant(&mut self, field: &'static str) -> Option<Timestamp> {
        let instant = match self.fields.get(field)? {
            Value::Null => return None,
            Value::String(text) => Timestamp::parse_rfc3339(text),
            Value::Number(number) => {
                let millis = number.as_i64().filter(|millis| *millis >= 0);
                // An instant is limited to the years that can be written, so a value out of range differs here.
                millis
                    .map(Timestamp::from_millis)
                    .filter(|instant| Some(instant.millis()) == millis)
            }
            _ => None,
        };
        self.check_value(
            field,
            instant,
            "is not a point in time (RFC 3339, or milliseconds since 1970)",
        )
    }
}
