//! The parties of an invoice, issuer and customer: names, addresses and tax ids. A final invoice keeps a copy of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Email, Line, Name, TextError, text};

fn country(text: &str) -> Result<String, TextError> {
    let known = text.parse::<iso_country::Country>();
    match known {
        // The crate has an empty code for "unspecified".
        Ok(_) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

/// Returns the codes of all countries.
fn country_codes() -> Vec<&'static str> {
    let known = iso_country::data::all().into_iter();
    known
        .map(|country| country.alpha2)
        .filter(|code| country(code).is_ok())
        .collect()
}

fn tax_id(text: &str) -> Result<String, TextError> {
    match text.len() {
        0..3 => return Err(TextError::TooShort),
        3..=32 => {}
        _ => return Err(TextError::TooLong),
    }
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b" ./-".contains(&byte);
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let has_good_ends = ends
        .into_iter()
        .flatten()
        .all(|byte| byte.is_ascii_alphanumeric());
    if has_good_ends && bytes.iter().copied().all(is_inner) {
        Ok(text.to_ascii_uppercase())
    } else {
        Err(TextError::Malformed)
    }
}

text! {
    /// A country: two capital letters of ISO 3166-1.
    Country, country, { "type": "string", "enum": country_codes(), "examples": ["DE"] }
}
text! {
    /// A number under which a company is registered for tax, for example `DE123456789`: 3 to 32 letters, digits, spaces,
    /// dots, slashes and hyphens. Letters are converted to upper case. The number itself is not verified.
    TaxId, tax_id, {
        "type": "string", "minLength": 3, "maxLength": 32,
        "pattern": "^[A-Za-z0-9][A-Za-z0-9 ./-]{1,30}[A-Za-z0-9]$", "examples": ["DE123456789"]
    }
}

/// A postal address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Address {
    /// Street and number, or a post office box.
    pub line1: Line<1, 200>,
    /// Floor, building or care of. `null` if not needed.
    pub line2: Option<Line<1, 200>>,
    /// The postal code. `null` where there is none.
    pub postal_code: Option<Line<1, 20>>,
    /// The city or town.
    pub city: Line<1, 100>,
    /// The state, province or region. `null` if not needed.
    pub state: Option<Line<1, 100>>,
    /// The country, which decides about taxes.
    pub country: Country,
}

// A type of its own: optional fields can be left out in a request, and a response always has them.
/// A postal address in a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewAddress {
    /// Street and number, or a post office box.
    pub line1: Line<1, 200>,
    /// Floor, building or care of. Default: none.
    pub line2: Option<Line<1, 200>>,
    /// The postal code. Default: none.
    pub postal_code: Option<Line<1, 20>>,
    /// The city or town.
    pub city: Line<1, 100>,
    /// The state, province or region. Default: none.
    pub state: Option<Line<1, 100>>,
    /// The country, which decides about taxes.
    pub country: Country,
}

impl From<NewAddress> for Address {
    fn from(new: NewAddress) -> Self {
        Self {
            line1: new.line1,
            line2: new.line2,
            postal_code: new.postal_code,
            city: new.city,
            state: new.state,
            country: new.country,
        }
    }
}

impl Address {
    /// Returns the lines of the address for a letter, without the country.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let place = [
            self.postal_code.as_ref().map(Line::as_str),
            Some(self.city.as_str()),
        ];
        let place: Vec<_> = place.into_iter().flatten().collect();
        let mut lines = vec![self.line1.as_str().to_owned()];
        lines.extend(self.line2.as_ref().map(|line| line.as_str().to_owned()));
        lines.push(place.join(" "));
        lines.extend(self.state.as_ref().map(|line| line.as_str().to_owned()));
        lines
    }
}

impl Country {
    /// Returns the name in English.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let known = self.as_str().parse::<iso_country::Country>();
        known.map_or("", |country| country.name())
    }
}

/// The issuer or the customer of an invoice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Party {
    /// The name of the person or company. `null` if unknown.
    pub name: Option<Name>,
    /// The email address. `null` if there is none.
    pub email: Option<Email>,
    /// The postal address. `null` if unknown.
    pub address: Option<Address>,
    /// The number under which the company is registered for tax. `null` if there is none.
    pub tax_id: Option<TaxId>,
}

impl Party {
    /// Returns the country of the address.
    #[must_use]
    pub fn country(&self) -> Option<&Country> {
        self.address.as_ref().map(|address| &address.country)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_a_code_of_iso_3166() {
        assert_eq!(Country::parse("DE").unwrap().name(), "Germany");
        for unknown in ["", "de", "D", "XX", "DEU", "D\u{c9}"] {
            assert!(Country::parse(unknown).is_err(), "{unknown}");
        }
        let codes = country_codes();
        assert!(codes.len() >= 249, "{}", codes.len());
        assert!(codes.iter().all(|code| code.len() == 2));
    }

    #[test]
    fn a_tax_id_is_written_in_capital_letters() {
        assert_eq!(
            TaxId::parse("de 123-456/7").unwrap().as_str(),
            "DE 123-456/7"
        );
        for bad in ["", "DE", " DE123", "DE123 ", "DE_123", &"1".repeat(33)] {
            assert!(TaxId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_has_the_lines_of_a_letter() {
        let json = r#"{"line1":"Am Markt 1","postalCode":"10115","city":"Berlin","country":"DE"}"#;
        let address: Address = serde_json::from_str(json).unwrap();
        assert_eq!(address.lines(), ["Am Markt 1", "10115 Berlin"]);
        let unknown = json.replace("city", "town");
        assert!(serde_json::from_str::<Address>(&unknown).is_err());
    }
}
