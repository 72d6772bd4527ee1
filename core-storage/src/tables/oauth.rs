//! The tables of OAuth: device authorizations, tokens and signing keys.

use core_domain::iam::{
    AccessToken, AccessTokenQuery, DeviceAuthorization, DeviceAuthorizationQuery, RefreshToken,
    RefreshTokenQuery, SigningKey, SigningKeyQuery,
};

use crate::codec::{Int, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

const APPROVED: IndexPredicate = IndexPredicate::Is("status", "approved");

table! {
    DeviceAuthorization in "device_authorizations" {
        id: Text,
        device_code_hash: Text,
        user_code: Text,
        client_id: Text,
        status: Text,
        user_id: Opt<Text>,
        organization_id: Opt<Text>,
        interval: Int,
        polled_at: Opt<Time>,
        ip_address: Opt<Text>,
        user_agent: Opt<Text>,
        created_at: Time,
        updated_at: Time,
        expires_at: Time,
    }
    unique { device_code: [device_code_hash], user_code: [user_code] }
    index { [user_id] where [APPROVED], [expires_at] }
    select device_authorizations
}

fn device_authorizations(query: &DeviceAuthorizationQuery) -> Select {
    let devices = Select::of(DeviceAuthorization::TABLE);
    match query {
        DeviceAuthorizationQuery::WithDeviceCode(hash) => {
            devices.filter(Filter::eq("device_code_hash", hash))
        }
        DeviceAuthorizationQuery::WithUserCode(code) => {
            devices.filter(Filter::eq("user_code", code))
        }
        DeviceAuthorizationQuery::ApprovedBy(user) => {
            devices.filter(Filter::eq("user_id", user).and(Filter::of_index(APPROVED)))
        }
        DeviceAuthorizationQuery::ExpiredAt(now) => devices
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    AccessToken in "access_tokens" {
        token_hash: Text,
        session_id: Text,
        created_at: Time,
        expires_at: Time,
    }
    index { [session_id, created_at], [expires_at] }
    select access_tokens
}

fn access_tokens(query: &AccessTokenQuery) -> Select {
    let tokens = Select::of(AccessToken::TABLE);
    match query {
        AccessTokenQuery::OfSession(session) => tokens
            .filter(Filter::eq("session_id", session))
            .order_by("created_at"),
        AccessTokenQuery::ExpiredAt(now) => tokens
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    RefreshToken in "refresh_tokens" {
        token_hash: Text,
        session_id: Text,
        predecessor_hash: Opt<Text>,
        rotated_at: Opt<Time>,
        successor_hash: Opt<Text>,
        sealed_successor: Opt<Text>,
        created_at: Time,
        expires_at: Time,
    }
    index { [session_id, created_at], [expires_at] }
    select refresh_tokens
}

fn refresh_tokens(query: &RefreshTokenQuery) -> Select {
    let tokens = Select::of(RefreshToken::TABLE);
    match query {
        RefreshTokenQuery::OfSession(session) => tokens
            .filter(Filter::eq("session_id", session))
            .order_by("created_at"),
        RefreshTokenQuery::ExpiredAt(now) => tokens
            .filter(Filter::le("expires_at", *now))
            .order_by("expires_at"),
    }
}

table! {
    SigningKey in "signing_keys" {
        kid: Text,
        generation: Int,
        public_key: Text,
        sealed_private_key: Text,
        active_from: Time,
        created_at: Time,
    }
    unique { generation: [generation] }
    select signing_keys
}

fn signing_keys(query: &SigningKeyQuery) -> Select {
    match query {
        SigningKeyQuery::All => Select::of(SigningKey::TABLE).order_by("generation"),
    }
}
