//! The cell of each row, by its table and its values.

use core_domain::kernel::{PlatformId, StoreError, TextValue};
use core_domain::provisioning::LaneKey;
use core_domain::shared::{AuditChain, StoredResponse};

use super::tables;
use crate::table::{PLATFORM, Table};
use crate::tables::of_records;
use crate::tabular::Tabular;
use crate::value::ReadRow;

/// How the cell of a row is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Every row is in the home cell.
    Home,
    /// Every row is in each cell, because a trigger in each database reads it.
    Everywhere,
    /// The row can be in any cell. A new row is inserted where its unit already writes.
    Any,
    /// The row is in the cell of the platform that the column names, or in the home cell if it names none.
    Named(&'static str, Naming),
    /// The row is in the cell of the job that the column names.
    OfJob(&'static str),
}

/// How a column names a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// By its id.
    Id,
    /// By a lane of jobs, see [`LaneKey`].
    Lane,
    /// By a chain of the audit log, see [`AuditChain`].
    Chain,
    /// By its id, or by an empty text if it names none.
    Owner,
}

impl Naming {
    /// Returns the platform that the text names; `None` if it names something at home.
    pub(super) fn platform(self, text: &str) -> Option<String> {
        let platform = match self {
            Self::Id => return Some(text.to_owned()),
            Self::Owner => return (!text.is_empty()).then(|| text.to_owned()),
            Self::Lane => LaneKey::from_text(text)?.owner(),
            Self::Chain => AuditChain::from_text(text)?.platform_id(),
        };
        platform.map(|id| id.as_ref().to_owned())
    }

    /// Returns all texts that name the platform.
    pub(super) fn names(self, platform: &str) -> Vec<String> {
        let Some(id) = PlatformId::parse(platform) else {
            return vec![platform.to_owned()];
        };
        match self {
            Self::Id | Self::Owner => vec![platform.to_owned()],
            Self::Lane => LaneKey::of_platform(&id)
                .iter()
                .map(|lane| lane.as_str().to_owned())
                .collect(),
            Self::Chain => vec![AuditChain::of(Some(&id)).as_ref().to_owned()],
        }
    }
}

/// Returns the place of a table's rows.
///
/// Everything that belongs to a platform alone is in the cell of the platform, so that most units of work use one
/// database. Accounts, access, money and the catalogue of stacks are at home, because they belong to several platforms or
/// are found without one.
pub(super) fn place_of(table: &Table) -> Place {
    match table.name {
        "platforms" => Place::Named("id", Naming::Id),
        "audit_entries" | "unsealed_audit_entries" | "webhook_deliveries" | "dlq_entries" => {
            Place::Named(PLATFORM, Naming::Id)
        }
        "audit_seals" | "audit_heads" | "audit_checkpoints" => Place::Named("chain", Naming::Chain),
        "webhooks" => Place::Named("owner", Naming::Owner),
        "jobs" | "job_lanes" => Place::Named("lane", Naming::Lane),
        "job_events" | "job_leases" => Place::OfJob("job_id"),
        "audit_archives" => Place::Everywhere,
        "outbox_messages" => Place::Any,
        // Found by their secret, or by their slug or person, before their platform is known.
        "api_keys" | "billing_portal_sessions" | "onboardings" => Place::Home,
        _ if tables::is_internal(table) => Place::Home,
        _ if has_platform(table) => Place::Named(PLATFORM, Naming::Id),
        _ => Place::Home,
    }
}

/// Returns whether the rows of the table are numbered in one order over all cells.
pub(super) fn has_common_order(table: &Table) -> bool {
    table.name == "audit_seals"
}

/// Returns the tables that name platforms, with the column that does so.
pub(super) fn named_tables() -> impl Iterator<Item = (&'static Table, &'static str, Naming)> {
    let named = |table| match place_of(table) {
        Place::Named(column, naming) => Some((table, column, naming)),
        _ => None,
    };
    of_records().into_iter().filter_map(named)
}

/// Returns whether a row tells a caller that a change is complete, although its unit may have changed other cells than that of
/// the row: the response to a request that is repeated.
pub(super) fn confirms_changes(table: &Table, row: &dyn ReadRow) -> Result<bool, StoreError> {
    if table.name != StoredResponse::TABLE.name {
        return Ok(false);
    }
    let Some(at) = table
        .columns
        .iter()
        .position(|column| column.name == "status")
    else {
        return Ok(false);
    };
    Ok(row
        .read(at)?
        .as_int()
        .is_some_and(StoredResponse::is_response))
}

/// Returns whether each row belongs to a platform.
fn has_platform(table: &Table) -> bool {
    let mut columns = table.columns.iter();
    columns.any(|column| column.name == PLATFORM && !column.nullable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(place: impl Fn(Place) -> bool) -> Vec<&'static str> {
        let mut tables = crate::tables::all();
        tables.retain(|table| place(place_of(table)));
        let mut names: Vec<_> = tables.iter().map(|table| table.name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn accounts_access_money_and_the_catalogue_are_in_the_home_cell() {
        let home = names(|place| place == Place::Home);
        assert_eq!(
            home,
            [
                "access_tokens",
                "accounts",
                "api_keys",
                "billing_credit_grants",
                "billing_customers",
                "billing_feed_cursor",
                "billing_invoices",
                "billing_journal_entries",
                "billing_operations",
                "billing_payment_attempts",
                "billing_plan_versions",
                "billing_portal_sessions",
                "billing_received_events",
                "billing_subscriptions",
                "billing_test_clock",
                "cell_changes",
                "cell_decisions",
                "cell_hidden_platforms",
                "cell_moves",
                "cell_platforms",
                "cell_unique_values",
                "device_authorizations",
                "idempotency_keys",
                "invitations",
                "job_holds",
                "ledger_charges",
                "ledger_invoices",
                "ledger_methods",
                "ledger_setup_intents",
                "mail_quotas",
                "maintenance_leases",
                "members",
                "onboardings",
                "organizations",
                "passkey_challenges",
                "passkeys",
                "refresh_tokens",
                "sessions",
                "signing_keys",
                "stack_templates",
                "stack_versions",
                "trusted_devices",
                "two_factor_challenges",
                "two_factors",
                "users",
                "verifications",
            ]
        );
    }

    #[test]
    fn a_place_names_a_column_of_its_table() {
        for table in crate::tables::all() {
            let (Place::Named(column, _) | Place::OfJob(column)) = place_of(table) else {
                continue;
            };
            assert!(
                table.column(column).is_ok(),
                "{} has no {column}",
                table.name
            );
        }
    }

    #[test]
    fn lanes_and_chains_of_platforms_name_them() {
        let of_platform = Some("acme".to_owned());
        assert_eq!(Naming::Lane.platform("platform:acme"), of_platform);
        assert_eq!(Naming::Lane.platform("hostnames:acme"), of_platform);
        assert_eq!(Naming::Lane.platform("billing:acme"), None);
        assert_eq!(Naming::Chain.platform("platform:acme"), of_platform);
        assert_eq!(Naming::Chain.platform("installation"), None);
        assert_eq!(Naming::Chain.platform("feed"), None);
        assert_eq!(Naming::Owner.platform(""), None);
        for naming in [Naming::Id, Naming::Lane, Naming::Chain, Naming::Owner] {
            for name in naming.names("acme") {
                assert_eq!(naming.platform(&name), of_platform, "{name}");
            }
        }
    }
}
