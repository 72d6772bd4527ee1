//! One sample per endpoint: the parts of the valid request that do not follow from the OpenAPI document, and the lowest
//! role that may send it. The roles deliberately repeat what the interface promises.

/// The lowest role that may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LowestRole {
    Public,
    SignedIn,
    Person,
    Member,
    Admin,
    Owner,
    Service,
    Operator,
}

/// The valid request of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) operation: &'static str,
    pub(super) least: LowestRole,
    /// The query string, without `?`.
    pub(super) query: &'static str,
    /// A JSON object with the fields that replace those of the example; `null` removes a field.
    pub(super) body: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Path parameters, each with the name of the fixture's id to use in place of the id of the same name.
    pub(super) id_overrides: &'static [(&'static str, &'static str)],
    /// The method and path of requests that an operator sends first.
    pub(super) preparation: &'static [(&'static str, &'static str)],
}

const fn sample(operation: &'static str, least: LowestRole) -> Sample {
    Sample {
        operation,
        least,
        query: "",
        body: "{}",
        headers: &[],
        id_overrides: &[],
        preparation: &[],
    }
}

impl Sample {
    const fn query(mut self, query: &'static str) -> Self {
        self.query = query;
        self
    }

    const fn body(mut self, body: &'static str) -> Self {
        self.body = body;
        self
    }

    const fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    const fn using(mut self, using: &'static [(&'static str, &'static str)]) -> Self {
        self.id_overrides = using;
        self
    }

    const fn before(mut self, before: &'static [(&'static str, &'static str)]) -> Self {
        self.preparation = before;
        self
    }
}

use LowestRole::{Admin, Member, Operator, Owner, Person, Public, Service, SignedIn};

const BEARER: &[(&str, &str)] = &[("authorization", "{bearer}")];
const COOKIE: &[(&str, &str)] = &[("cookie", "{cookie}"), ("origin", "http://iam.test")];

const FROM_PAGE: &[(&str, &str)] = &[("origin", "http://iam.test")];
/// The headers of a sign-in that waits for its second factor.
const HALF_SIGNED_IN: &[(&str, &str)] = &[
    ("cookie", "{twoFactorCookie}"),
    ("origin", "http://iam.test"),
];

/// The headers of a pending registration of a passkey.
const REGISTERING: &[(&str, &str)] = &[
    ("cookie", "{registeringCookie}"),
    ("origin", "http://iam.test"),
];
/// The headers of a pending sign-in with a passkey.
const SHOWING: &[(&str, &str)] = &[("cookie", "{showingCookie}"), ("origin", "http://iam.test")];

/// The webhook of the installation, and a delivery of it.
const OF_INSTALLATION: &[(&str, &str)] = &[
    ("webhookId", "installationWebhookId"),
    ("deliveryId", "installationDeliveryId"),
];

const FROM_LINKS: &str =
    r#"{"callbackURL": "/", "newUserCallbackURL": null, "errorCallbackURL": null}"#;

/// A preview that a later one has replaced.
const REPLACED: &[(&str, &str)] = &[("deploymentId", "replacedId")];

/// A plan whose digest is that of an empty file.
const PLAN: &str = r#"{"files": [{"path": "index.html", "size": 0,
    "digest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}"#;

/// The records of billing whose path parameter is `id`.
const CUSTOMER: &[(&str, &str)] = &[("id", "customerId")];
const SUBSCRIPTION: &[(&str, &str)] = &[("id", "subscriptionId")];
const METHOD: &[(&str, &str)] = &[("id", "paymentMethodId")];

/// The signature of an event that the payment provider of the tests accepts.
const SIGNED: &[(&str, &str)] = &[("stripe-signature", "valid")];

/// The token of the page of an invoice that is paid, and of one that is not.
const PAID: &[(&str, &str)] = &[("token", "paidToken")];
const OWED: &[(&str, &str)] = &[("token", "owedToken")];

/// The secret of a link to the portal.
const PORTAL_LINK: &[(&str, &str)] = &[("token", "portalLink")];

const FROM_BILLING: &[(&str, &str)] = &[("origin", "http://billing.test")];
const IN_PORTAL: &[(&str, &str)] = &[
    ("cookie", "billing_portal={portalSecret}"),
    ("origin", "http://billing.test"),
];

const CONFIG_VERSION: &[(&str, &str)] = &[("version", "configVersion")];

/// Returns the samples of all endpoints of all services. Add a line here for each new endpoint.
pub(super) fn samples() -> Vec<Sample> {
    vec![
        // registry
        sample("listPlatforms", Member),
        sample("createPlatform", Admin).body(r#"{"tier": "starter"}"#),
        sample("getPlatform", Member),
        sample("updatePlatform", Admin).body(r#"{"name": "Looms", "tier": null, "status": null}"#),
        sample("deletePlatform", Owner),
        sample("suspendPlatform", Owner),
        sample("restorePlatform", Owner)
            .before(&[("POST", "/api/v1/platforms/{platformId}/cancel")]),
        sample("cancelPlatform", Owner),
        sample("hardDeletePlatform", Owner),
        sample("listLifecycle", Member),
        sample("listEntities", Member),
        sample("createEntity", Admin).body(r#"{"type": "subtenant"}"#),
        sample("getEntity", Member),
        sample("updateEntity", Admin).body(r#"{"name": "Kid", "status": null}"#),
        sample("deleteEntity", Admin).using(&[("entityId", "leafId")]),
        sample("listAncestors", Member),
        sample("listDescendants", Member).using(&[("entityId", "parentId")]),
        sample("lookUpResource", Member).query("cfName=engines-db"),
        sample("listResources", Member),
        sample("listEntityResources", Member),
        sample("createResource", Admin),
        sample("getResource", Member),
        sample("updateResource", Admin).body(r#"{"status": null}"#),
        sample("deleteResource", Admin),
        sample("listWorkspaceStacks", Member),
        sample("createWorkspaceStack", Admin).body(r#"{"tenantId": "{entityId}"}"#),
        sample("getWorkspaceStack", Member),
        sample("listConfig", Admin),
        sample("getConfig", Admin),
        sample("setConfig", Admin).body(r#"{"configValue": {"beta": true}}"#),
        sample("listConfigVersions", Admin),
        sample("getConfigVersion", Admin).using(CONFIG_VERSION),
        sample("diffConfigVersions", Admin).query("from=1&to=2"),
        sample("rollBackConfig", Admin),
        sample("listDeploymentRecords", Member),
        sample("createDeploymentRecord", Admin),
        sample("getDeploymentRecord", Member),
        sample("updateDeploymentRecord", Admin),
        sample("listFeatures", Member),
        sample("activateFeature", Admin).body(r#"{"featureId": "billing"}"#),
        sample("deactivateFeature", Admin).body(r#"{"environment": "prod"}"#),
        sample("getFeature", Member),
        sample("getManifest", Member),
        sample("listResourceSecrets", Member),
        sample("setResourceSecret", Admin),
        sample("listBuilds", Member),
        sample("getLatestBuild", Member),
        sample("updateBuild", Admin),
        sample("listDnsRecords", Member),
        sample("createDnsRecord", Admin).body(r#"{"hostname": "new.example.org"}"#),
        sample("getStackDnsRecord", Member),
        sample("deleteDnsRecord", Admin).using(&[("dnsId", "unusedDnsId")]),
        sample("getDnsRecord", Member),
        sample("listPendingDomains", Operator),
        sample("listDomains", Member),
        sample("createDomain", Admin)
            .body(r#"{"hostname": "new.example.org", "targetDns": "platform.example.net"}"#),
        sample("getDomain", Member),
        sample("updateDomain", Admin).body(r#"{"status": null, "verifiedAt": null}"#),
        sample("deleteDomain", Admin),
        sample("listPlatformAudit", Member),
        sample("listAudit", Member),
        sample("exportAudit", Member),
        sample("verifyAudit", Member),
        sample("listAuditCheckpoints", Member),
        sample("followEvents", Member).query("follow=false"),
        sample("startOnboarding", Person),
        sample("getOnboarding", SignedIn),
        sample("checkSlug", SignedIn),
        sample("listWebhooks", Admin),
        sample("createWebhook", Admin),
        sample("getWebhook", Admin),
        sample("updateWebhook", Admin).body(r#"{"status": null}"#),
        sample("deleteWebhook", Admin),
        sample("rotateWebhookSecret", Admin),
        sample("testWebhook", Admin),
        sample("recoverWebhook", Admin),
        sample("listWebhookDeliveries", Admin),
        sample("getWebhookDelivery", Admin),
        sample("replayWebhookDelivery", Admin),
        sample("listInstallationWebhooks", Operator),
        sample("createInstallationWebhook", Operator),
        sample("getInstallationWebhook", Operator).using(OF_INSTALLATION),
        sample("updateInstallationWebhook", Operator)
            .using(OF_INSTALLATION)
            .body(r#"{"status": null}"#),
        sample("deleteInstallationWebhook", Operator).using(OF_INSTALLATION),
        sample("rotateInstallationWebhookSecret", Operator).using(OF_INSTALLATION),
        sample("testInstallationWebhook", Operator).using(OF_INSTALLATION),
        sample("recoverInstallationWebhook", Operator).using(OF_INSTALLATION),
        sample("listInstallationWebhookDeliveries", Operator).using(OF_INSTALLATION),
        sample("getInstallationWebhookDelivery", Operator).using(OF_INSTALLATION),
        sample("replayInstallationWebhookDelivery", Operator).using(OF_INSTALLATION),
        // provisioning
        sample("provisionPlatform", Admin),
        sample("provisionOnboarding", Operator),
        sample("deprovisionPlatform", Owner),
        sample("reconcilePlatform", Owner),
        sample("addDomain", Admin).body(
            r#"{"customHostname": "new.example.com", "targetDnsRecordId": "{dnsRecordId}"}"#,
        ),
        sample("upgradeAuth", Operator),
        sample("provisionFeature", Admin).body(r#"{"featureId": "brand-new"}"#),
        sample("deprovisionFeature", Admin).body(r#"{"environment": "prod"}"#),
        sample("activateStack", Admin).body(r#"{"stackId": "web", "stackVersion": "1.0.0"}"#),
        sample("deactivateStack", Admin).body(r#"{"environment": "prod"}"#),
        sample("createApp", Admin),
        sample("listJobs", Member),
        sample("getJob", Member),
        sample("listJobEvents", Member),
        sample("retryJob", Operator),
        sample("cancelJob", Operator),
        sample("forceCompleteJob", Operator),
        sample("listDlqEntries", Operator),
        sample("getDlqEntry", Operator),
        sample("replayDlqEntry", Operator),
        sample("listHolds", Operator),
        sample("createHold", Operator).body(r#"{"scope": "platform", "kind": null}"#),
        sample("getHold", Operator),
        sample("deleteHold", Operator),
        sample("setProvisioningPlatformStatus", Service).body(r#"{"status": "suspended"}"#),
        // cli
        sample("deploy", Member),
        sample("planDeployment", Member).body(PLAN),
        sample("listDeployments", Member),
        sample("getDeployment", Member),
        sample("followDeployment", Member).using(&[("deploymentId", "liveId")]),
        sample("rollBackDeployment", Member).using(REPLACED),
        sample("promoteDeployment", Member).using(REPLACED),
        sample("pinDeployment", Member).using(&[("deploymentId", "liveId")]),
        sample("unpinDeployment", Member).using(&[("deploymentId", "liveId")]),
        sample("listPlatformFeatures", Member),
        sample("activatePlatformFeature", Admin).body(r#"{"featureId": "chat"}"#),
        sample("deactivatePlatformFeature", Admin)
            .body(r#"{"featureId": "{platformFeatureId}"}"#),
        sample("listPlatformSecrets", Member).query("resourceId={workerId}"),
        sample("setPlatformSecrets", Admin).body(
            r#"{"secrets": {"API_KEY": "value"}, "resourceId": "{workerId}"}"#,
        ),
        sample("deletePlatformSecret", Admin).query("resourceId={workerId}"),
        sample("followLogs", Member).query("follow=false"),
        // billing
        sample("listPlans", SignedIn),
        sample("createCustomer", Person).body(r#"{"userId": "{userId}", "platformId": null}"#),
        sample("getCustomer", Member).using(CUSTOMER),
        sample("updateCustomer", Admin).using(CUSTOMER),
        sample("listCustomerSubscriptions", Member).using(CUSTOMER),
        sample("listCustomerPaymentMethods", Member).using(CUSTOMER),
        sample("getDefaultPaymentMethod", Member).using(CUSTOMER),
        sample("listPaymentMethods", Member).query("platformId={platformId}"),
        sample("createSetupIntent", Admin),
        sample("attachPaymentMethod", Admin).using(METHOD),
        sample("detachPaymentMethod", Admin)
            .using(METHOD)
            .before(&[("DELETE", "/subscriptions/{subscriptionId}")]),
        sample("getPaymentMethod", Member).using(METHOD),
        sample("setDefaultPaymentMethod", Admin).using(METHOD),
        sample("getSubscription", Member).query("platformId={platformId}"),
        sample("createSubscription", Admin)
            .body(r#"{"trialDays": null, "paymentMethodId": null}"#)
            .before(&[("DELETE", "/subscriptions/{subscriptionId}")]),
        sample("cancelSubscription", Admin),
        sample("changeTier", Admin).body(r#"{"tier": "growth", "prorationDate": null, "effective": "auto"}"#),
        sample("previewTierChange", Member).query("platformId={platformId}&tier=growth"),
        sample("upgradePlan", Admin).body(r#"{"planId": "growth", "paymentMethodId": "pm_card_visa"}"#),
        sample("createUserSubscription", Operator)
            .body(r#"{"priceId": "price_starter_month", "paymentMethodId": "pm_card_visa"}"#),
        sample("getSubscriptionById", Member).using(SUBSCRIPTION),
        sample("updateSubscription", Admin)
            .using(SUBSCRIPTION)
            .body(r#"{"priceId": null, "quantity": 2, "paymentMethodId": null}"#),
        sample("cancelSubscriptionById", Admin).using(SUBSCRIPTION),
        sample("listInvoices", Member).query("platformId={platformId}"),
        sample("getInvoice", Member),
        sample("getCurrentUsage", Member).query("platformId={platformId}"),
        sample("listUsageHistory", Member).query("platformId={platformId}"),
        sample("listUsageEntities", Member).query("platformId={platformId}"),
        sample("getDailyUsage", Member)
            .query("platformId={platformId}&from=2026-11-01&to=2026-11-30"),
        sample("listUsageAlerts", Member).query("platformId={platformId}"),
        sample("getUsageSummary", Member).query("platformId={platformId}"),
        sample("getStackUsage", Member),
        sample("ingestUsage", Operator),
        sample("grantCredit", Operator).body(r#"{"expiresAt": null}"#),
        sample("overrideSubscription", Operator)
            .using(SUBSCRIPTION)
            .body(r#"{"tier": "scale", "trialEndsAt": null}"#),
        sample("startTrial", Operator).using(SUBSCRIPTION),
        sample("generateInvoice", Operator).body(r#"{"customerId": "{lateCustomerId}"}"#),
        sample("getBillingOverview", Operator),
        sample("receiveStripeWebhook", Public).headers(SIGNED),
        sample("openPortal", Admin),
        sample("getBillingStylesheet", Public),
        sample("payPage", Public).using(PAID),
        sample("payInvoiceByForm", Public)
            .using(OWED)
            .headers(FROM_BILLING)
            .body(r#"{"action": "pay", "card": "pm_card_visa"}"#),
        sample("enterPortal", Public).using(PORTAL_LINK),
        sample("portalPage", Public).headers(IN_PORTAL),
        sample("changeInPortalByForm", Public)
            .headers(IN_PORTAL)
            .body(r#"{"action": "cancel", "tier": null, "interval": null, "prorationDate": null, "method": null}"#),
        sample("tickBilling", Operator).body(r#"{"now": null}"#),
        // stack registry
        sample("listStackTemplates", SignedIn),
        sample("createStackTemplate", Operator).body(r#"{"name": "brand-new"}"#),
        sample("getStackTemplate", SignedIn),
        sample("updateStackTemplate", Operator),
        sample("listStackVersions", SignedIn),
        sample("publishStackVersion", Operator).body(r#"{"version": "1.1.0"}"#),
        sample("getStackVersion", SignedIn),
        sample("deprecateStackVersion", Operator),
        // IAM
        sample("signUpEmail", Public).body(r#"{"email": "eve@example.org", "callbackURL": "/"}"#),
        sample("signInEmail", Public).body(r#"{"callbackURL": "/"}"#),
        sample("signOut", Public).headers(BEARER),
        sample("getSession", Public).headers(BEARER),
        sample("signInMagicLink", Public).body(FROM_LINKS),
        sample("verifyMagicLink", Public).query("token={magicToken}"),
        sample("sendVerificationEmail", Public).body(FROM_LINKS),
        sample("verifyEmail", Public).query("token={verifyToken}&callbackURL=/"),
        sample("verifyEmailByPost", Public).body(r#"{"token": "{verifyToken}"}"#),
        sample("requestPasswordReset", Public).body(r#"{"redirectTo": "/"}"#),
        sample("followPasswordReset", Public)
            .query("callbackURL=/")
            .using(&[("token", "resetToken")]),
        sample("resetPassword", Public).body(r#"{"token": "{resetToken}"}"#),
        sample("changePassword", Person),
        sample("verifyPassword", Person),
        sample("enableTwoFactor", Person),
        sample("disableTwoFactor", Person),
        sample("getTotpUri", Person),
        sample("generateBackupCodes", Person),
        sample("verifyTotp", Person).body(r#"{"code": "{totpCode}"}"#),
        sample("verifyBackupCode", Person)
            .headers(HALF_SIGNED_IN)
            .body(r#"{"code": "{recoveryCode}"}"#),
        sample("generatePasskeyRegistrationOptions", Person),
        sample("verifyPasskeyRegistration", Person)
            .headers(REGISTERING)
            .body(r#"{"response": "{madePasskey}"}"#),
        sample("generatePasskeyAuthenticationOptions", Public),
        sample("verifyPasskeyAuthentication", Public)
            .headers(SHOWING)
            .body(r#"{"response": "{shownPasskey}"}"#),
        sample("listPasskeys", Person),
        sample("updatePasskey", Person).body(r#"{"id": "{passkeyId}"}"#),
        sample("deletePasskey", Person).body(r#"{"id": "{passkeyId}"}"#),
        sample("updateUser", Person).body(r#"{"email": null}"#),
        sample("listAccounts", Person),
        sample("getProfile", Person),
        sample("updateProfile", Person).body(r#"{"name": "Ada L.", "image": "https://example.org/ada.png"}"#),
        sample("authOk", Public),
        sample("listAuthSessions", Person),
        sample("revokeAuthSession", Person),
        sample("revokeAuthSessions", Person),
        sample("revokeOtherAuthSessions", Person),
        sample("banUser", Operator),
        sample("unbanUser", Operator),
        sample("removeUserFactors", Operator),
        sample("getCoreSession", Person),
        sample("validateSession", Service),
        sample("listSessions", Person),
        sample("revokeSession", Person),
        sample("orgSetup", Person).headers(COOKIE),
        sample("bootstrap", Service),
        sample("createOwnOrganization", Person).body(r#"{"metadata": {"a": 1}}"#),
        sample("checkOrganizationSlug", Person),
        sample("setActiveOrganization", Person).body(r#"{"organizationSlug": null}"#),
        sample("updateOwnOrganization", Person).body(r#"{"data": {"name": "Looms"}}"#),
        sample("deleteOwnOrganization", Person),
        sample("listOwnOrganizations", Person),
        sample("listOwnOrganizationsByPost", Person),
        sample("getFullOrganization", Person),
        sample("getFullOrganizationByPost", Person),
        sample("getOwnOrganization", Person),
        sample("getOwnOrganizationByPost", Person),
        sample("hasOrganizationPermission", Person)
            .body(r#"{"permissions": {"member": ["create"]}}"#),
        sample("updateMemberRole", Person).body(r#"{"role": "admin"}"#),
        sample("removeMember", Person),
        sample("leaveOrganization", Person).body(r#"{"organizationId": "{joinedId}"}"#),
        sample("listMembers", Person),
        sample("listMembersByPost", Person),
        sample("getActiveMember", Person),
        sample("getActiveMemberByPost", Person),
        sample("getActiveMemberRole", Person),
        sample("getActiveMemberRoleByPost", Person),
        sample("inviteMember", Person).body(r#"{"role": "member"}"#),
        sample("acceptInvitation", Person),
        sample("rejectInvitation", Person),
        sample("cancelOwnInvitation", Person).body(r#"{"invitationId": "{sentId}"}"#),
        sample("getInvitation", Person).query("id={invitationId}"),
        sample("getInvitationByPost", Person).query("id={invitationId}"),
        sample("listOrganizationInvitations", Person),
        sample("listOrganizationInvitationsByPost", Person),
        sample("listUserInvitations", Person),
        sample("listUserInvitationsByPost", Person),
        sample("listInvitations", Admin),
        sample("createInvitation", Admin).body(r#"{"inviterId": null, "role": "member"}"#),
        sample("cancelInvitation", Admin).using(&[("invitationId", "coreInvitationId")]),
        sample("listAuditEvents", SignedIn),
        sample("getAuditEvent", Person),
        sample("listRoles", Member).query("orgId={orgId}"),
        sample("mapRole", Admin).body(r#"{"role": "auditor", "permissions": ["job:read"]}"#),
        sample("unmapRole", Admin),
        sample("listGrants", Member).query("orgId={orgId}"),
        sample("createGrant", Admin).body(
            r#"{"userId": "mary", "permission": "job:create", "grantedBy": "adam", "expiresAt": null}"#,
        ),
        sample("removeGrant", Admin),
        sample("createApiKey", Person).body(r#"{"organizationId": "{keyOrgId}"}"#),
        sample("listApiKeys", Person),
        sample("getApiKey", Person).query("id={keyId}"),
        sample("updateApiKey", Person),
        sample("deleteApiKey", Person),
        sample("rotateApiKey", Person),
        sample("validateApiKey", Service),
        sample("createOrganization", Service),
        sample("getOrganization", Member).using(&[("slug", "orgSlug")]),
        sample("whoami", Person).headers(BEARER),
        sample("requestDeviceCode", Public),
        sample("decideAboutDevice", Person),
        sample("exchangeDeviceCode", Public)
            .body(r#"{"grant_type": "urn:ietf:params:oauth:grant-type:device_code"}"#),
        sample("exchangeToken", Public).body(r#"{"grant_type": "refresh_token"}"#),
        sample("getAuthorizationServer", Public),
        sample("issueServiceToken", Service)
            .body(r#"{"serviceId": "gateway", "targetService": "registry"}"#),
        sample("getSigningKeys", Public),
        sample("setPlatformStatus", Service).body(r#"{"status": "suspended"}"#),
        sample("health", Public),
        sample("homePage", Public),
        sample("getStylesheet", Public),
        sample("getPasskeyScript", Public),
        sample("signInPage", Public),
        sample("signInByForm", Public).headers(FROM_PAGE),
        sample("signOutByForm", Public).headers(COOKIE),
        sample("twoFactorPage", Public),
        sample("showSecondFactorByForm", Public).headers(FROM_PAGE),
        sample("signUpPage", Public),
        sample("signUpByForm", Public)
            .body(r#"{"email": "new@example.org"}"#)
            .headers(FROM_PAGE),
        sample("magicLinkPage", Public),
        sample("sendMagicLinkByForm", Public).headers(FROM_PAGE),
        sample("signInByLinkForm", Public)
            .body(r#"{"token": "{magicToken}", "callbackURL": "/", "newUserCallbackURL": null, "errorCallbackURL": null}"#)
            .headers(FROM_PAGE),
        sample("signUpSentPage", Public),
        sample("magicLinkSentPage", Public),
        sample("resetPasswordPage", Public).query("token={resetToken}"),
        sample("requestPasswordResetByForm", Public).headers(FROM_PAGE),
        sample("passwordResetSentPage", Public),
        sample("resetPasswordByForm", Public)
            .body(r#"{"token": "{resetToken}"}"#)
            .headers(FROM_PAGE),
        sample("verifyEmailPage", Public).query("token={verifyToken}"),
        sample("verifyEmailByForm", Public)
            .body(r#"{"token": "{verifyToken}", "callbackURL": "/"}"#)
            .headers(FROM_PAGE),
        sample("takeOverAccountByForm", Public)
            .body(r#"{"token": "{verifyToken}", "callbackURL": "/"}"#)
            .headers(FROM_PAGE),
        sample("deleteUnconfirmedAccountByForm", Public)
            .body(r#"{"token": "{unusedAccountToken}", "callbackURL": "/", "sure": true}"#)
            .headers(FROM_PAGE),
        sample("unconfirmedAccountDeletedPage", Public),
        sample("invitationPage", Public)
            .query("id={invitationId}")
            .headers(COOKIE),
        sample("answerInvitationByForm", Public)
            .body(r#"{"id": "{invitationId}"}"#)
            .headers(COOKIE),
        sample("confirmAddressForInvitationByForm", Public)
            .body(r#"{"id": "{invitationId}"}"#)
            .headers(COOKIE),
        sample("devicePage", Public)
            .query("user_code={user_code}")
            .headers(COOKIE),
        sample("decideAboutDeviceByForm", Public).headers(COOKIE),
        sample("deviceApprovedPage", Public),
        sample("deviceDeniedPage", Public),
        sample("accountPage", Public).headers(COOKIE),
        sample("sendVerificationEmailByForm", Public).headers(COOKIE),
        sample("revokeSessionByForm", Public)
            .body(r#"{"session": "{id}"}"#)
            .headers(COOKIE),
        sample("revokeOtherSessionsByForm", Public).headers(COOKIE),
        sample("securityPage", Public).headers(COOKIE),
        sample("endAccessByForm", Public).headers(COOKIE),
        sample("confirmPage", Public).headers(COOKIE),
        sample("confirmByForm", Public)
            .body(r#"{"password": "correct horse battery"}"#)
            .headers(COOKIE),
        sample("apiKeysPage", Public).headers(COOKIE),
        sample("createApiKeyByForm", Public)
            .body(r#"{"name": "CI", "organization": "{keyOrgId}", "access": "reads", "lifetime": "90"}"#)
            .headers(COOKIE),
        sample("deleteApiKeyByForm", Public)
            .body(r#"{"key": "{keyId}"}"#)
            .headers(COOKIE),
        sample("renamePasskeyByForm", Public)
            .body(r#"{"passkey": "{passkeyId}"}"#)
            .headers(COOKIE),
        sample("removePasskeyByForm", Public)
            .body(r#"{"passkey": "{passkeyId}"}"#)
            .headers(COOKIE),
    ]
}
