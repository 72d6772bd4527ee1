//! Every endpoint that creates records refuses to create them above a limit.

use std::collections::BTreeSet;

use core_domain::kernel::{Code, Limits};
use http::Method;

use super::fixture::{Case, for_each_endpoint};
use super::samples::LowestRole;

/// Endpoints without a limit, and the reason that they cannot create an unlimited number of records.
const WITHOUT_LIMIT: &[(&str, &[&str])] = &[
    (
        "reads or checks",
        &[
            "checkOrganizationSlug",
            "getActiveMemberByPost",
            "getActiveMemberRoleByPost",
            "getFullOrganizationByPost",
            "getInvitationByPost",
            "getOwnOrganizationByPost",
            "getTotpUri",
            "hasOrganizationPermission",
            "listMembersByPost",
            "listOrganizationInvitationsByPost",
            "listOwnOrganizationsByPost",
            "listUserInvitationsByPost",
            "verifyPassword",
            "confirmByForm",
            "whoami",
        ],
    ),
    (
        "changes or ends something that exists",
        &[
            "suspendPlatform",
            "restorePlatform",
            "cancelPlatform",
            "rollBackConfig",
            "pinDeployment",
            "rotateWebhookSecret",
            "recoverWebhook",
            "signOut",
            "resetPassword",
            "changePassword",
            "disableTwoFactor",
            "generateBackupCodes",
            "verifyTotp",
            "updatePasskey",
            "deletePasskey",
            "updateUser",
            "revokeAuthSession",
            "revokeAuthSessions",
            "revokeOtherAuthSessions",
            "setActiveOrganization",
            "updateOwnOrganization",
            "deleteOwnOrganization",
            "removeMember",
            "leaveOrganization",
            "rejectInvitation",
            "cancelOwnInvitation",
            "updateApiKey",
            "deleteApiKey",
            "rotateApiKey",
            "decideAboutDevice",
            "decideAboutDeviceByForm",
            "signOutByForm",
            "resetPasswordByForm",
            "confirmAddressForInvitationByForm",
            "deleteUnconfirmedAccountByForm",
            "revokeSessionByForm",
            "revokeOtherSessionsByForm",
            "endAccessByForm",
            "deleteApiKeyByForm",
            "renamePasskeyByForm",
            "removePasskeyByForm",
        ],
    ),
    (
        "the removal of a platform is never refused",
        &["hardDeletePlatform", "deprovisionPlatform"],
    ),
    ("there are few configuration keys", &["setConfig"]),
    ("a person has one authenticator", &["enableTwoFactor"]),
    (
        "a webhook delivery is deleted some time after it was sent or has failed",
        &["testWebhook", "replayWebhookDelivery"],
    ),
    (
        "a new session ends the oldest one of the person",
        &[
            "signInEmail",
            "signInByForm",
            "signInByLinkForm",
            "showSecondFactorByForm",
            "verifyBackupCode",
            "verifyPasskeyAuthentication",
            "verifyEmailByPost",
            "verifyEmailByForm",
            "takeOverAccountByForm",
            "exchangeDeviceCode",
            "exchangeToken",
        ],
    ),
    (
        "the mail quota and the rate limit of the client bound it",
        &[
            "signUpEmail",
            "signUpByForm",
            "signInMagicLink",
            "sendMagicLinkByForm",
            "sendVerificationEmail",
            "sendVerificationEmailByForm",
            "requestPasswordReset",
            "requestPasswordResetByForm",
        ],
    ),
    (
        "the codes expire, and the rate limit of the client bounds them",
        &["requestDeviceCode"],
    ),
    (
        "a platform and a user have one customer, and a platform has one subscription",
        &["createCustomer", "createSubscription", "cancelSubscription"],
    ),
    (
        "every change is paid for, or waits for the end of the period",
        &["changeTier", "upgradePlan"],
    ),
    (
        "an invoice is paid once, and the rate limit of the client bounds the attempts",
        &["payInvoiceByForm"],
    ),
    (
        "sessions of the portal end after half an hour",
        &["openPortal", "enterPortal"],
    ),
    (
        "only the state of a subscription or of a payment method changes",
        &["changeInPortalByForm"],
    ),
    (
        "only the payment provider can sign events, which are deleted after 35 days",
        &["receiveStripeWebhook"],
    ),
    (
        "a setup intent is deleted some time after it was created",
        &["createSetupIntent"],
    ),
    (
        "only the state of a payment method changes",
        &["detachPaymentMethod", "setDefaultPaymentMethod"],
    ),
];

/// Endpoints whose sample creates nothing, and the tests in which a different request reaches the limit.
const BY_HAND: &[(&str, &str)] = &[
    ("setResourceSecret", "registry::limits"),
    ("deploy", "registry::limits"),
    ("setPlatformSecrets", "cli::secrets"),
    ("updateMemberRole", "iam::organization_limits"),
    ("mapRole", "iam::organization_limits"),
    ("attachPaymentMethod", "billing::payment_methods"),
];

/// Returns whether the valid request is refused when every limit is zero.
async fn is_refused(case: &Case) -> bool {
    let services = case.fixture.world.services_with(Limits::uniform(0));
    let name = case.service.0.name();
    let limited = services.iter().find(|api| api.0.name() == name).unwrap();
    let answer = Case::send_to(limited, &case.lowest_caller(), &case.valid_request()).await;
    answer.status == 409 && (answer.json.is_null() || answer.code() == Code::LimitReached.as_str())
}

#[tokio::test]
async fn every_endpoint_that_creates_records_has_a_limit_or_a_reason_for_none() {
    let without: BTreeSet<&str> = WITHOUT_LIMIT
        .iter()
        .flat_map(|(_, rows)| *rows)
        .copied()
        .collect();
    let checked = for_each_endpoint(async |case| {
        let creates = [Method::POST, Method::PUT].contains(case.row().method());
        let operates = [LowestRole::Operator, LowestRole::Service].contains(&case.sample.least);
        if !creates || operates || BY_HAND.iter().any(|(row, _)| *row == case.name()) {
            return false;
        }
        let refused = is_refused(case).await;
        let expected = !without.contains(case.name());
        assert_eq!(refused, expected, "{}", case.name());
        true
    })
    .await;
    assert_eq!(checked, 128);
}
