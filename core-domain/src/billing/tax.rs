//! Taxes on the lines of an invoice (contract: "Rounding"). Prices are net. The tax is rounded once per line, and a line
//! that corrects an earlier one has the rate of that one, so that both cancel each other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::money::{Money, MoneyError};
use super::party::{Country, Party};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::text_enum;

/// The basis points of 100 percent.
const WHOLE: u32 = 10_000;

/// The sentence on an invoice whose customer owes the tax.
pub const REVERSE_CHARGE_NOTE: &str =
    "Reverse charge: the recipient of the services owes the value-added tax.";

text_enum! {
    /// The party that owes the tax on a line.
    pub enum TaxTreatment {
        /// No tax is due.
        Untaxed = "untaxed",
        /// The issuer owes the tax, and the customer pays it with the invoice.
        Taxed = "taxed",
        /// The customer owes the tax, so the invoice has none.
        ReverseCharge = "reverse_charge",
    }
}

/// The rate at which a line is taxed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct TaxRate {
    /// The party that owes the tax.
    treatment: TaxTreatment,
    /// The rate in basis points: 1900 are 19 percent. 0 unless the line is taxed.
    basis_points: u32,
}

impl TaxRate {
    /// No tax is due.
    pub const UNTAXED: Self = Self {
        treatment: TaxTreatment::Untaxed,
        basis_points: 0,
    };

    /// The customer owes the tax.
    pub const REVERSE_CHARGE: Self = Self {
        treatment: TaxTreatment::ReverseCharge,
        basis_points: 0,
    };

    /// Creates the rate of a taxed line. Returns `None` for more than 100 percent.
    #[must_use]
    pub fn of(basis_points: u32) -> Option<Self> {
        (basis_points <= WHOLE).then_some(Self {
            treatment: TaxTreatment::Taxed,
            basis_points,
        })
    }

    /// Returns the party that owes the tax.
    #[must_use]
    pub const fn treatment(self) -> TaxTreatment {
        self.treatment
    }

    /// Returns the rate in percent, for example `19` or `25.5`.
    #[must_use]
    pub fn percent(self) -> String {
        let (whole, rest) = (self.basis_points / 100, self.basis_points % 100);
        match rest {
            0 => whole.to_string(),
            _ => format!("{whole}.{rest:02}")
                .trim_end_matches('0')
                .to_owned(),
        }
    }

    /// Returns the tax on an amount, rounded once.
    ///
    /// # Errors
    /// [`MoneyError::TooLarge`] if the tax is too large.
    pub fn on(self, amount: Money) -> Result<Money, MoneyError> {
        amount.part(self.basis_points.into(), WHOLE.into())
    }
}

impl Default for TaxRate {
    fn default() -> Self {
        Self::UNTAXED
    }
}

#[cfg(any(test, feature = "proptest"))]
impl proptest::arbitrary::Arbitrary for TaxRate {
    type Parameters = ();
    type Strategy = proptest::strategy::BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        use proptest::strategy::{Just, Strategy};
        let taxed = (0..=WHOLE).prop_filter_map("above 100 percent", Self::of);
        proptest::prop_oneof![Just(Self::UNTAXED), Just(Self::REVERSE_CHARGE), taxed].boxed()
    }
}

/// The tax on a line of an invoice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LineTax {
    /// The rate, which is also that of a line that corrects this one.
    #[serde(flatten)]
    pub rate: TaxRate,
    /// The tax in minor units. Negative for a credit.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub amount: i64,
}

/// The reason why tax rates are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaxError {
    /// There are rates, but the country of the issuer is unknown.
    #[error("tax rates need an issuer with an address")]
    NoIssuer,
    /// A rate is above 100 percent.
    #[error("the tax rate of {0} is above 10000 basis points")]
    TooHigh(Country),
}

/// The tax rates of countries, and the country of the issuer. Without rates nothing is taxed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaxTable {
    home: Option<Country>,
    rates: BTreeMap<Country, TaxRate>,
}

impl TaxTable {
    /// Creates the table for an issuer in a country, from rates in basis points.
    ///
    /// # Errors
    /// - [`TaxError::NoIssuer`] if there are rates, but no country of the issuer.
    /// - [`TaxError::TooHigh`] if a rate is above 100 percent.
    pub fn new(
        home: Option<Country>,
        basis_points: &BTreeMap<Country, u32>,
    ) -> Result<Self, TaxError> {
        if home.is_none() && !basis_points.is_empty() {
            return Err(TaxError::NoIssuer);
        }
        let rates = basis_points.iter().map(|(country, points)| {
            let rate = TaxRate::of(*points);
            let rate = rate.ok_or_else(|| TaxError::TooHigh(country.clone()))?;
            Ok((country.clone(), rate))
        });
        Ok(Self {
            home,
            rates: rates.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the rate for a customer: that of the customer's country, or none if it is not in the table. A customer
    /// with a tax id in another country of the table than the issuer's owes the tax. A customer without an address is
    /// taxed as one in the issuer's country.
    #[must_use]
    pub fn rate(&self, customer: &Party) -> TaxRate {
        let country = customer.country().or(self.home.as_ref());
        let Some(rate) = country.and_then(|country| self.rates.get(country)) else {
            return TaxRate::UNTAXED;
        };
        match customer.tax_id {
            Some(_) if country != self.home.as_ref() => TaxRate::REVERSE_CHARGE,
            _ => *rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::billing::{Address, Anchor, Currency, Period, Proration, TaxId};
    use crate::kernel::Timestamp;

    fn country(code: &str) -> Country {
        Country::parse(code).unwrap()
    }

    fn customer(code: &str, tax_id: Option<&str>) -> Party {
        let json = format!(r#"{{"line1":"Street 1","city":"City","country":"{code}"}}"#);
        let address: Address = serde_json::from_str(&json).unwrap();
        Party {
            address: Some(address),
            tax_id: tax_id.map(|id| TaxId::parse(id).unwrap()),
            ..Party::default()
        }
    }

    fn table() -> TaxTable {
        let rates = [(country("DE"), 1_900), (country("FR"), 2_000)];
        TaxTable::new(Some(country("DE")), &rates.into()).unwrap()
    }

    #[test]
    fn the_country_and_the_tax_id_of_the_customer_decide_about_the_rate() {
        for (code, tax_id, rate) in [
            ("DE", None, TaxRate::of(1_900).unwrap()),
            ("DE", Some("DE123"), TaxRate::of(1_900).unwrap()),
            ("FR", None, TaxRate::of(2_000).unwrap()),
            ("FR", Some("FR123"), TaxRate::REVERSE_CHARGE),
            ("US", None, TaxRate::UNTAXED),
            ("US", Some("12-345"), TaxRate::UNTAXED),
        ] {
            assert_eq!(table().rate(&customer(code, tax_id)), rate, "{code}");
        }
        let unknown = Party::default();
        assert_eq!(table().rate(&unknown), TaxRate::of(1_900).unwrap());
        assert_eq!(
            TaxTable::default().rate(&customer("DE", None)),
            TaxRate::UNTAXED
        );
    }

    #[test]
    fn rates_above_100_percent_or_without_an_issuer_are_refused() {
        let germany = country("DE");
        let rates = [(germany.clone(), 10_001)].into();
        let refused = TaxTable::new(Some(germany.clone()), &rates);
        assert_eq!(refused, Err(TaxError::TooHigh(germany)));
        assert_eq!(TaxTable::new(None, &rates), Err(TaxError::NoIssuer));
        assert!(TaxTable::new(None, &BTreeMap::new()).is_ok());
    }

    #[test]
    fn a_rate_is_written_in_percent() {
        for (points, text) in [(1_900, "19"), (2_550, "25.5"), (705, "7.05"), (0, "0")] {
            assert_eq!(TaxRate::of(points).unwrap().percent(), text);
        }
    }

    #[test]
    fn halves_of_a_minor_unit_are_rounded_away_from_zero() {
        let rate = TaxRate::of(1_900).unwrap();
        let tax = |minor: i128| rate.on(Money::new(minor, Currency::USD).unwrap()).unwrap();
        assert_eq!(tax(2_900).minor(), 551);
        assert_eq!(tax(50).minor(), 10);
        assert_eq!(tax(-50).minor(), -10);
    }

    proptest! {
        #[test]
        fn the_tax_of_a_change_and_of_its_undoing_is_zero(
            a in 0_i128..1_000_000, b in 0_i128..1_000_000, at in 0_i64..2_678_400,
            old: TaxRate, new: TaxRate,
        ) {
            let start = Timestamp::from_seconds(1_767_225_600);
            let anchor = Anchor::new(start);
            let period = Period::new(start, anchor.boundary(1).unwrap()).unwrap();
            let rest = Proration::new(period, Timestamp::from_seconds(1_767_225_600 + at));
            prop_assume!(rest.is_some());
            let rest = rest.unwrap();
            let part = |minor: i128| rest.rest_of(Money::new(minor, Currency::USD).unwrap()).unwrap();
            // The credit of each price has the rate of its charge.
            let lines = [(part(a).negate(), old), (part(b), new), (part(b).negate(), new), (part(a), old)];
            let taxes = lines.into_iter().map(|(amount, rate)| rate.on(amount).unwrap());
            prop_assert_eq!(Money::sum(Currency::USD, taxes).unwrap().minor(), 0);
        }

        #[test]
        fn a_tax_is_within_half_a_unit_of_the_exact_one(amount in -1_000_000_000_i64..1_000_000_000, points in 0_u32..=10_000) {
            let money = Money::new(amount.into(), Currency::USD).unwrap();
            let tax = TaxRate::of(points).unwrap().on(money).unwrap().minor();
            let exact = i128::from(amount) * i128::from(points);
            prop_assert!((i128::from(tax) * 10_000 - exact).abs() * 2 <= 10_000);
        }
    }
}
