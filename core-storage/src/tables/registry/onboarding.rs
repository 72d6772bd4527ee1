//! The table of onboardings.

use core_domain::registry::{Onboarding, OnboardingQuery, OnboardingStatus};

use crate::codec::{Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    Onboarding in "onboardings" {
        id: Text,
        requested_by: Text,
        requested_id: Opt<Text>,
        platform_name: Text,
        slug: Text,
        tier: Text,
        platform_tier: Text,
        stack_template_id: Opt<Text>,
        billing_email: Opt<Text>,
        user_id: Opt<Text>,
        session_id: Opt<Text>,
        platform_id: Text,
        job_id: Text,
        status: Text,
        created_at: Time,
        updated_at: Time,
    }
    unique {
        slug: [slug] where [IndexPredicate::Is("status", "open")],
        requested_id: [requested_by, requested_id],
    }
    index { [requested_id], [user_id, created_at] }
    select onboardings
}

fn onboardings(query: &OnboardingQuery) -> Select {
    match query {
        OnboardingQuery::OpenWithSlug(slug) => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("slug", slug))
            .filter(Filter::eq("status", &OnboardingStatus::Open)),
        OnboardingQuery::OpenOf(user) => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("user_id", user))
            .filter(Filter::eq("status", &OnboardingStatus::Open))
            .order_by("created_at"),
        OnboardingQuery::RequestedAs {
            requested_by,
            requested_id,
        } => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("requested_by", requested_by))
            .filter(Filter::eq("requested_id", requested_id)),
        OnboardingQuery::WithRequestedId(requested_id) => Select::of(Onboarding::TABLE)
            .filter(Filter::eq("requested_id", requested_id))
            .order_by_desc("created_at"),
    }
}
