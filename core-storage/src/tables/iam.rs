//! Tables of identity and access.

use core_domain::iam::{
    Account, AccountQuery, CREDENTIAL, Member, MemberQuery, Organization, OrganizationQuery,
    PlatformSuspension, PlatformSuspensionQuery, Session, SessionQuery, User, UserQuery,
};

use crate::filter::Filter;
use crate::kind::{Bool, Opt, Text, Time};
use crate::query::Select;
use crate::{Only, Tabular, table};

table! {
    User in "users" {
        id: Text,
        name: Text,
        email: Text,
        email_verified: Bool,
        image: Opt<Text>,
        created_at: Time,
        updated_at: Time,
    }
    unique { email: [email] }
    select users
}

fn users(query: &UserQuery) -> Select {
    match query {
        UserQuery::WithEmail(email) => Select::of(User::TABLE).only(Filter::eq("email", email)),
    }
}

table! {
    Account in "accounts" {
        id: Text,
        user_id: Text,
        provider: Text,
        password_hash: Opt<Text>,
        created_at: Time,
        updated_at: Time,
    }
    unique { provider: [user_id, provider] }
    select accounts
}

fn accounts(query: &AccountQuery) -> Select {
    match query {
        AccountQuery::PasswordOf(user) => Select::of(Account::TABLE)
            .only(Filter::eq("user_id", user))
            .only(Filter::eq("provider", CREDENTIAL)),
    }
}

table! {
    Session in "sessions" {
        id: Text,
        user_id: Text,
        token_hash: Text,
        active_organization_id: Opt<Text>,
        remembered: Bool,
        ip_address: Opt<Text>,
        user_agent: Opt<Text>,
        created_at: Time,
        updated_at: Time,
        extended_at: Time,
        expires_at: Time,
    }
    unique { token: [token_hash] }
    index { [user_id, created_at] }
    select sessions
}

fn sessions(query: &SessionQuery) -> Select {
    let of = |user| Select::of(Session::TABLE).only(Filter::eq("user_id", user));
    match query {
        SessionQuery::WithToken(hash) => {
            Select::of(Session::TABLE).only(Filter::eq("token_hash", hash))
        }
        SessionQuery::ActiveOf(user, now) => of(user)
            .only(Filter::gt("expires_at", *now))
            .by_desc("created_at"),
        SessionQuery::OldestOf(user) => of(user).by("created_at"),
        SessionQuery::ExpiredOf(user, now) => of(user)
            .only(Filter::le("expires_at", *now))
            .by("created_at"),
    }
}

table! {
    Organization in "organizations" {
        id: Text,
        name: Text,
        slug: Text,
        kind: Text,
        platform_id: Opt<Text>,
        created_at: Time,
        updated_at: Time,
    }
    unique {
        slug: [slug],
        platform: [platform_id],
        operator: [kind] only [Only::Is("kind", "core-operator")],
    }
    select organizations
}

fn organizations(query: &OrganizationQuery) -> Select {
    let organizations = Select::of(Organization::TABLE);
    match query {
        OrganizationQuery::WithSlug(slug) => organizations.only(Filter::eq("slug", slug)),
        OrganizationQuery::OfPlatform(id) => organizations.only(Filter::eq("platform_id", id)),
        OrganizationQuery::OfType(kind) => organizations
            .only(Filter::eq("kind", kind))
            .by("created_at"),
    }
}

table! {
    Member in "members" {
        id: Text,
        organization_id: Text,
        user_id: Text,
        role: Text,
        created_at: Time,
    }
    unique { user: [organization_id, user_id] }
    index { [user_id, created_at] }
    select members
}

fn members(query: &MemberQuery) -> Select {
    let of = |user| Select::of(Member::TABLE).only(Filter::eq("user_id", user));
    match query {
        MemberQuery::Of(organization, user) => {
            of(user).only(Filter::eq("organization_id", organization))
        }
        MemberQuery::OfUser(user) => of(user).by("created_at"),
    }
}

table! {
    PlatformSuspension in "platform_suspensions" {
        platform_id: Text,
        reason: Opt<Text>,
        created_at: Time,
    }
    select platform_suspensions
}

fn platform_suspensions(query: &PlatformSuspensionQuery) -> Select {
    match query {
        PlatformSuspensionQuery::All => Select::of(PlatformSuspension::TABLE).by("created_at"),
    }
}
