//! Form fields with their labels, hints and errors.

use maud::{Markup, html};

use super::form_errors::FormErrors;

/// A text field of a form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The `type` attribute of the input.
    pub(super) kind: &'static str,
    /// The `autocomplete` attribute, for browsers and password managers.
    pub(super) autocomplete: &'static str,
    /// The value that the field contains when it is shown.
    pub(super) value: &'a str,
    pub(super) hint: Option<&'static str>,
    pub(super) required: bool,
}

impl Field<'_> {
    /// Creates the field for an email address.
    pub(super) const fn email(value: &str) -> Field<'_> {
        Field {
            name: "email",
            label: "E-mail address",
            kind: "email",
            autocomplete: "username",
            value,
            hint: None,
            required: true,
        }
    }

    /// Creates a password field. An entered password is never shown again.
    pub(super) const fn password(label: &'static str, autocomplete: &'static str) -> Self {
        Self {
            name: "password",
            label,
            kind: "password",
            autocomplete,
            value: "",
            hint: None,
            required: true,
        }
    }

    pub(super) fn show(self, errors: &FormErrors) -> Markup {
        let error = errors.of_field(self.name);
        let id = |part: &str| format!("{}-{part}", self.name);
        let about = [self.hint.map(|_| id("hint")), error.map(|_| id("error"))];
        let about: Vec<String> = about.into_iter().flatten().collect();
        let about = (!about.is_empty()).then(|| about.join(" "));
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                @if let Some(hint) = self.hint {
                    p.hint id=(id("hint")) { (hint) }
                }
                input id=(self.name) name=(self.name) type=(self.kind) value=(self.value)
                    autocomplete=(self.autocomplete) autocapitalize=[(self.name != "name").then_some("none")] spellcheck="false"
                    required[self.required] aria-invalid=[error.map(|_| "true")]
                    aria-describedby=[about] autofocus[error.is_some()];
                @if let Some(error) = error {
                    p.error id=(id("error")) { (error) }
                }
            }
        }
    }
}

/// A selection of one of several options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice<'a> {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The options as pairs of value and label.
    pub(super) options: &'a [(&'a str, &'a str)],
    /// The value of the preselected option.
    pub(super) chosen: Option<&'a str>,
}

impl Choice<'_> {
    pub(super) fn show(self) -> Markup {
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                select id=(self.name) name=(self.name) {
                    @for (value, label) in self.options {
                        option value=(value) selected[self.chosen == Some(value)] { (label) }
                    }
                }
            }
        }
    }
}

/// Renders a hidden field.
pub(super) fn hidden_field(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}
