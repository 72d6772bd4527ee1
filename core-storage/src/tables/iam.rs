//! The tables of identity and access management.

use core_domain::iam::{
    Account, AccountQuery, Invitation, InvitationQuery, InvitationStatus, Member, MemberQuery,
    Organization, OrganizationQuery, PASSWORD_PROVIDER, Passkey, PasskeyChallenge,
    PasskeyChallengeQuery, PasskeyQuery, PlatformSuspension, PlatformSuspensionQuery, Session,
    SessionQuery, TrustedDevice, TrustedDeviceQuery, TwoFactor, TwoFactorChallenge,
    TwoFactorChallengeQuery, TwoFactorQuery, User, UserQuery, Verification, VerificationQuery,
};

use crate::codec::{Bool, Int, Json, Opt, OrDefault, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    User in "users" {
        id: Text,
        name: Text,
        email: Text,
        email_verified: Bool,
        image: Opt<Text>,
        created_at: Time,
        updated_at: Time,
        banned_at: Opt<Time>,
        ban_reason: Opt<Text>,
    }
    unique { email: [email] }
    select users
}

fn users(query: &UserQuery) -> Select {
    match query {
        UserQuery::WithEmail(email) => Select::of(User::TABLE).filter(Filter::eq("email", email)),
        UserQuery::WithEmails(emails) => {
            Select::of(User::TABLE).filter(Filter::one_of("email", emails))
        }
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
        set_by_link_at: Opt<Time>,
    }
    unique { provider: [user_id, provider] }
    select accounts
}

fn accounts(query: &AccountQuery) -> Select {
    match query {
        AccountQuery::PasswordOf(user) => Select::of(Account::TABLE)
            .filter(Filter::eq("user_id", user))
            .filter(Filter::eq("provider", PASSWORD_PROVIDER)),
    }
}

table! {
    Session in "sessions" {
        id: Text,
        user_id: Text,
        token_hash: Text,
        client_id: Opt<Text>,
        active_organization_id: Opt<Text>,
        remembered: Bool,
        ip_address: Opt<Text>,
        user_agent: Opt<Text>,
        created_at: Time,
        updated_at: Time,
        extended_at: Time,
        expires_at: Time,
        authenticated_at: Opt<Time>,
        second_factor_at: Opt<Time>,
    }
    unique { token: [token_hash] }
    index { [user_id, created_at], [expires_at] }
    select sessions
}

fn sessions(query: &SessionQuery) -> Select {
    let of = |user| Select::of(Session::TABLE).filter(Filter::eq("user_id", user));
    match query {
        SessionQuery::WithToken(hash) => {
            Select::of(Session::TABLE).filter(Filter::eq("token_hash", hash))
        }
        SessionQuery::ActiveOf(user, now) => of(user)
            .filter(Filter::gt("expires_at", *now))
            .order_by_desc("created_at"),
        SessionQuery::OldestOf(user) => of(user).order_by("created_at"),
        SessionQuery::ExpiredOf(user, now) => of(user)
            .filter(Filter::le("expires_at", *now))
            .order_by("created_at"),
        SessionQuery::ExpiredAt(now) => Select::of(Session::TABLE)
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    Verification in "verifications" {
        id: Text,
        purpose: Text,
        token_hash: Text,
        email: Text,
        name: Opt<Text>,
        created_at: Time,
        expires_at: Time,
    }
    unique { token: [token_hash] }
    index { [expires_at] }
    select verifications
}

fn verifications(query: &VerificationQuery) -> Select {
    let verifications = Select::of(Verification::TABLE);
    match query {
        VerificationQuery::WithToken(hash) => verifications.filter(Filter::eq("token_hash", hash)),
        VerificationQuery::ExpiredAt(now) => verifications
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
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
        logo: Opt<Text>,
        metadata: Opt<Json>,
        roles: OrDefault<Json>,
    }
    unique {
        slug: [slug],
        platform: [platform_id],
        operator: [kind] where [IndexPredicate::Is("kind", "core-operator")],
    }
    select organizations
}

fn organizations(query: &OrganizationQuery) -> Select {
    let organizations = Select::of(Organization::TABLE);
    match query {
        OrganizationQuery::WithSlug(slug) => organizations.filter(Filter::eq("slug", slug)),
        OrganizationQuery::OfPlatform(id) => organizations.filter(Filter::eq("platform_id", id)),
        OrganizationQuery::OfType(kind) => organizations
            .filter(Filter::eq("kind", kind))
            .order_by("created_at"),
    }
}

table! {
    Member in "members" {
        id: Text,
        organization_id: Text,
        user_id: Text,
        role: Text,
        created_at: Time,
        grants: OrDefault<Json>,
    }
    unique { user: [organization_id, user_id] }
    index { [user_id, created_at], [organization_id, created_at] }
    select members
}

fn members(query: &MemberQuery) -> Select {
    let of = |user| Select::of(Member::TABLE).filter(Filter::eq("user_id", user));
    let is_owner = || {
        let several = Filter::Prefix("role", "owner,".to_owned());
        Filter::Or(vec![Filter::eq("role", "owner"), several])
    };
    match query {
        MemberQuery::Of(organization, user) => {
            of(user).filter(Filter::eq("organization_id", organization))
        }
        MemberQuery::OfUser(user) => of(user).order_by("created_at"),
        MemberQuery::OfOrganization(organization) => Select::of(Member::TABLE)
            .filter(Filter::eq("organization_id", organization))
            .order_by("created_at"),
        MemberQuery::OwnedBy(user) => of(user).filter(is_owner()).order_by("created_at"),
        MemberQuery::OwnersOf(organization) => Select::of(Member::TABLE)
            .filter(Filter::eq("organization_id", organization))
            .filter(is_owner())
            .order_by("created_at"),
        MemberQuery::WithGrants(organization) => Select::of(Member::TABLE)
            .filter(Filter::eq("organization_id", organization))
            .filter(Filter::NotNull("grants"))
            .order_by_desc("created_at"),
    }
}

table! {
    Invitation in "invitations" {
        id: Text,
        organization_id: Text,
        email: Text,
        role: Text,
        status: Text,
        secret_hash: Opt<Text>,
        expires_at: Time,
        inviter_id: Text,
        created_at: Time,
    }
    unique { pending: [organization_id, email] where [IndexPredicate::Is("status", "pending")] }
    index { [organization_id, created_at], [email, created_at] }
    select invitations
}

fn invitations(query: &InvitationQuery) -> Select {
    let invitations = Select::of(Invitation::TABLE);
    let pending = || Filter::eq("status", &InvitationStatus::Pending);
    match query {
        InvitationQuery::OfOrganization(organization) => invitations
            .filter(Filter::eq("organization_id", organization))
            .order_by_desc("created_at"),
        InvitationQuery::PendingOf(organization) => invitations
            .filter(Filter::eq("organization_id", organization))
            .filter(pending())
            .order_by_desc("created_at"),
        InvitationQuery::PendingTo(organization, email) => invitations
            .filter(Filter::eq("organization_id", organization))
            .filter(Filter::eq("email", email))
            .filter(pending()),
        InvitationQuery::OpenTo(email, now) => invitations
            .filter(Filter::eq("email", email))
            .filter(pending())
            .filter(Filter::gt("expires_at", *now))
            .order_by_desc("created_at"),
    }
}

table! {
    TwoFactor in "two_factors" {
        user_id: Text,
        sealed_secret: Text,
        confirmed_at: Opt<Time>,
        last_step: Opt<Int>,
        recovery_codes: Json,
        failures: Json,
        created_at: Time,
        updated_at: Time,
    }
    select two_factors
}

fn two_factors(query: &TwoFactorQuery) -> Select {
    match query {
        TwoFactorQuery::All => Select::of(TwoFactor::TABLE).order_by("created_at"),
    }
}

table! {
    TwoFactorChallenge in "two_factor_challenges" {
        token_hash: Text,
        user_id: Text,
        remembered: Bool,
        created_at: Time,
        expires_at: Time,
    }
    index { [user_id, created_at], [expires_at] }
    select two_factor_challenges
}

fn two_factor_challenges(query: &TwoFactorChallengeQuery) -> Select {
    let challenges = Select::of(TwoFactorChallenge::TABLE);
    match query {
        TwoFactorChallengeQuery::OfUser(user) => challenges
            .filter(Filter::eq("user_id", user))
            .order_by("created_at"),
        TwoFactorChallengeQuery::ExpiredAt(now) => challenges
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    TrustedDevice in "trusted_devices" {
        token_hash: Text,
        user_id: Text,
        created_at: Time,
        expires_at: Time,
        ip_address: Opt<Text>,
        user_agent: Opt<Text>,
    }
    index { [user_id, created_at], [expires_at] }
    select trusted_devices
}

fn trusted_devices(query: &TrustedDeviceQuery) -> Select {
    let devices = Select::of(TrustedDevice::TABLE);
    match query {
        TrustedDeviceQuery::OfUser(user) => devices
            .filter(Filter::eq("user_id", user))
            .order_by("created_at"),
        TrustedDeviceQuery::ExpiredAt(now) => devices
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    Passkey in "passkeys" {
        id: Text,
        user_id: Text,
        name: Opt<Text>,
        credential_id: Text,
        credential: Json,
        counter: Int,
        device_type: Text,
        backed_up: Bool,
        transports: Text,
        created_at: Time,
        updated_at: Time,
        last_used_at: Opt<Time>,
    }
    unique { credential: [credential_id] }
    index { [user_id, created_at] }
    select passkeys
}

fn passkeys(query: &PasskeyQuery) -> Select {
    let passkeys = Select::of(Passkey::TABLE);
    match query {
        PasskeyQuery::WithCredential(id) => passkeys.filter(Filter::eq("credential_id", id)),
        PasskeyQuery::OfUser(user) => passkeys
            .filter(Filter::eq("user_id", user))
            .order_by("created_at"),
    }
}

table! {
    PasskeyChallenge in "passkey_challenges" {
        token_hash: Text,
        user_id: Opt<Text>,
        state: Json,
        created_at: Time,
        expires_at: Time,
    }
    index { [user_id, created_at], [expires_at] }
    select passkey_challenges
}

fn passkey_challenges(query: &PasskeyChallengeQuery) -> Select {
    let challenges = Select::of(PasskeyChallenge::TABLE);
    match query {
        PasskeyChallengeQuery::OfUser(user) => challenges
            .filter(Filter::eq("user_id", user))
            .order_by("created_at"),
        PasskeyChallengeQuery::ExpiredAt(now) => challenges
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    PlatformSuspension in "platform_suspensions" {
        platform_id: Text,
        reason: Opt<Text>,
        by_owner: OrDefault<Bool>,
        by_operator: Bool,
        by_billing: OrDefault<Bool>,
        created_at: Time,
    }
    select platform_suspensions
}

fn platform_suspensions(query: &PlatformSuspensionQuery) -> Select {
    match query {
        PlatformSuspensionQuery::All => {
            Select::of(PlatformSuspension::TABLE).order_by("created_at")
        }
    }
}
