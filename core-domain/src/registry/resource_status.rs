//! The life of a resource.

use super::{Resource, StatusMove, allowed};
use crate::kernel::{Result, Timestamp, text_enum};

text_enum! {
    /// Where a resource stands.
    pub enum ResourceStatus {
        /// Entered, not begun.
        Pending = "pending",
        /// Being made.
        Provisioning = "provisioning",
        /// There.
        Active = "active",
        /// Could not be made.
        Failed = "failed",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

use ResourceStatus::{Active, Deleted, Failed, Pending, Provisioning};

/// All moves of a resource. It is made `pending`.
pub const RESOURCE_MOVES: &[StatusMove<ResourceStatus>] = &[
    StatusMove {
        from: &[Pending, Failed],
        to: Provisioning,
    },
    StatusMove {
        from: &[Provisioning],
        to: Active,
    },
    StatusMove {
        from: &[Provisioning],
        to: Failed,
    },
    StatusMove {
        from: &[Pending, Provisioning, Active, Failed],
        to: Deleted,
    },
];

impl Resource {
    /// The resource with another status.
    ///
    /// # Errors
    /// `INVALID_STATE` when that status cannot be reached from its own.
    pub fn with_status(&self, status: ResourceStatus, now: Timestamp) -> Result<Self> {
        allowed(RESOURCE_MOVES, self.status, status, ResourceStatus::as_str)?;
        let mut next = self.clone();
        if status != self.status {
            next.status = status;
            next.updated_at = now;
        }
        if status == Deleted {
            next.deleted_at = next.deleted_at.or(Some(now));
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::kernel::{EntityId, Environment, PlatformId, ResourceId};
    use crate::registry::ResourceType;

    fn entered() -> Resource {
        Resource {
            id: ResourceId::parse("r1").unwrap(),
            platform_id: PlatformId::parse("p1").unwrap(),
            entity_id: EntityId::parse("e1").unwrap(),
            stack_id: None,
            service_name: "db".into(),
            resource_type: ResourceType::D1,
            environment: Environment::Prod,
            cf_name: "engines-db".into(),
            cf_id: None,
            cf_url: None,
            status: Pending,
            provision_job_id: None,
            config: Value::Null,
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
            deleted_at: None,
        }
    }

    proptest! {
        #[test]
        fn any_order_of_wishes_makes_only_the_moves_of_the_table(
            wishes in prop::collection::vec(prop::sample::select(ResourceStatus::ALL), 1..30),
        ) {
            let mut resource = entered();
            for (second, to) in wishes.into_iter().enumerate() {
                let now = Timestamp::from_seconds(i64::try_from(second).unwrap() + 1);
                let in_table = RESOURCE_MOVES.iter().any(|m| m.to == to && m.from.contains(&resource.status));
                let outcome = resource.with_status(to, now);
                prop_assert_eq!(outcome.is_ok(), in_table || to == resource.status);
                let Ok(next) = outcome else { continue };
                prop_assert_eq!(next.status, to);
                prop_assert_eq!(next.deleted_at.is_some(), to == Deleted);
                if to == resource.status {
                    prop_assert_eq!(&next, &resource);
                }
                resource = next;
            }
        }
    }
}
