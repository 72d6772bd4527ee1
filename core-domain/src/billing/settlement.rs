//! What a customer pays for an invoice: the sum of its lines, less credits and balance (contract: "Invoice sum").

use super::money::{Money, MoneyError};

/// The amounts that an invoice is settled with. All have the same currency.
#[derive(Clone, Copy, Debug)]
pub struct Bill<'a> {
    /// The amounts of the lines. Credit lines are negative.
    pub lines: &'a [Money],
    /// The amount that is deducted from the sum of the lines. Never negative.
    pub discount: Money,
    /// The tax. Negative if the lines give money back.
    pub tax: Money,
    /// The rest of each of the customer's credits, in the order in which they are used. Never negative.
    pub credits: &'a [Money],
    /// The balance of the customer: what they owe (positive) or have paid in advance (negative).
    pub balance: Money,
    /// The smallest amount that is collected. A smaller one is added to the balance.
    pub minimum: Money,
}

/// The amounts of a finalized invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The sum of the lines.
    pub subtotal: Money,
    /// The sum of the lines, less the discount, plus the tax.
    pub total: Money,
    /// The amount that is used of each credit, in the given order.
    pub credits: Vec<Money>,
    /// The sum of the used credits.
    pub credits_applied: Money,
    /// The change of the balance: positive if the invoice uses an advance or is added to the balance, negative if it
    /// collects a debt.
    pub balance_applied: Money,
    /// What the customer pays. Never negative.
    pub amount_due: Money,
}

impl Bill<'_> {
    /// Settles the invoice.
    ///
    /// Credits are used before the balance, and only if the total is positive. A negative total is added to the balance;
    /// cash is never paid out.
    ///
    /// # Errors
    /// [`MoneyError`] if currencies differ or an amount is too large.
    pub fn settle(&self) -> Result<Settlement, MoneyError> {
        let currency = self.balance.currency();
        let nothing = Money::zero(currency);
        let subtotal = Money::sum(currency, self.lines.iter().copied())?;
        let total = subtotal.minus(self.discount)?.plus(self.tax)?;
        let mut left = total;
        let mut credits = Vec::with_capacity(self.credits.len());
        for credit in self.credits {
            let used = if left.minor() > 0 {
                left.min(*credit)
            } else {
                nothing
            };
            left = left.minus(used)?;
            credits.push(used);
        }
        let mut balance_applied = self.balance_applied(left);
        let mut amount_due = left.minus(balance_applied)?;
        if amount_due.minor() < self.minimum.minor() {
            balance_applied = balance_applied.plus(amount_due)?;
            amount_due = nothing;
        }
        Ok(Settlement {
            subtotal,
            total,
            credits_applied: total.minus(left)?,
            credits,
            balance_applied,
            amount_due,
        })
    }

    /// Returns what the balance changes by, if `left` of the invoice is left after its credits.
    fn balance_applied(&self, left: Money) -> Money {
        if left.minor() < 0 {
            return left;
        }
        if self.balance.minor() < 0 {
            return left.min(self.balance.negate());
        }
        self.balance.negate()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::billing::Currency;

    fn usd(minor: i64) -> Money {
        Money::new(minor.into(), Currency::USD).unwrap()
    }

    /// Settles an invoice. Returns the used credits, the change of the balance, and what is due.
    fn settle(lines: &[i64], credits: &[i64], balance: i64) -> (Vec<i64>, i64, i64) {
        let lines: Vec<_> = lines.iter().copied().map(usd).collect();
        let credits: Vec<_> = credits.iter().copied().map(usd).collect();
        let bill = Bill {
            lines: &lines,
            discount: usd(0),
            tax: usd(0),
            credits: &credits,
            balance: usd(balance),
            minimum: usd(50),
        };
        let settled = bill.settle().unwrap();
        (
            settled.credits.into_iter().map(Money::minor).collect(),
            settled.balance_applied.minor(),
            settled.amount_due.minor(),
        )
    }

    #[test]
    fn credits_are_used_in_their_order_and_before_the_balance() {
        assert_eq!(settle(&[2_900], &[5_000], 0), (vec![2_900], 0, 0));
        assert_eq!(settle(&[2_900], &[2_100], 0), (vec![2_100], 0, 800));
        let (credits, balance, due) = settle(&[2_900], &[500, 0, 300], -1_000);
        assert_eq!((credits, balance, due), (vec![500, 0, 300], 1_000, 1_100));
    }

    #[test]
    fn a_small_amount_is_added_to_the_balance_and_collected_later() {
        assert_eq!(settle(&[-4, 14], &[], 0), (vec![], 10, 0));
        assert_eq!(settle(&[9_900], &[], 10), (vec![], -10, 9_910));
        assert_eq!(settle(&[30], &[], 10), (vec![], 30, 0));
        assert_eq!(settle(&[50], &[], 0), (vec![], 0, 50));
    }

    #[test]
    fn a_negative_total_becomes_an_advance() {
        assert_eq!(settle(&[-3_500], &[500], 0), (vec![0], -3_500, 0));
        assert_eq!(settle(&[-3_500], &[], 1_000), (vec![], -3_500, 0));
        assert_eq!(settle(&[], &[500], 0), (vec![0], 0, 0));
    }

    proptest! {
        #[test]
        fn the_amounts_of_an_invoice_agree(
            lines in proptest::collection::vec(-1_000_000..1_000_000_i64, 0..6),
            credits in proptest::collection::vec(0..500_000_i64, 0..4),
            balance in -1_000_000..1_000_000_i64, discount in 0..1_000_i64, tax in -1_000..1_000_i64,
            minimum in 0..100_i64,
        ) {
            let lines: Vec<_> = lines.into_iter().map(usd).collect();
            let credits: Vec<_> = credits.into_iter().map(usd).collect();
            let bill = Bill {
                lines: &lines, discount: usd(discount), tax: usd(tax), credits: &credits, balance: usd(balance),
                minimum: usd(minimum),
            };
            let settled = bill.settle().unwrap();
            let minor = Money::minor;
            prop_assert_eq!(minor(settled.subtotal), lines.iter().map(|line| line.minor()).sum::<i64>());
            prop_assert_eq!(minor(settled.total), minor(settled.subtotal) - discount + tax);
            let used: i64 = settled.credits.iter().map(|credit| credit.minor()).sum();
            prop_assert_eq!(minor(settled.credits_applied), used);
            for (used, credit) in settled.credits.iter().zip(&credits) {
                prop_assert!(0 <= used.minor() && used.minor() <= credit.minor());
            }
            let due = minor(settled.amount_due);
            prop_assert_eq!(due, minor(settled.total) - used - minor(settled.balance_applied));
            prop_assert!(due == 0 || due >= minimum.max(1));
            // An advance never becomes a debt, except by an amount below the minimum.
            let after = balance + minor(settled.balance_applied);
            prop_assert!(balance > 0 || after <= minimum.max(0));
        }
    }
}
