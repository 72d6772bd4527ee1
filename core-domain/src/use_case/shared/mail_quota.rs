//! Takes mails from the quotas that bound them, in the unit of work that queues the mail.

use super::sweep::remove_first;
use crate::access::{unaudited, unowned};
use crate::iam::TokenHash;
use crate::kernel::{Email, OrganizationId, Result};
use crate::port::UnitOfWork;
use crate::shared::{ExceededRate, MailQuota, MailQuotaQuery, MailRate};

/// What a quota counts.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case) enum MailSubject<'a> {
    /// Mails of a kind to an address, from anybody.
    Address {
        /// The kind of mail.
        kind: &'a str,
        /// The address. It is stored as a hash.
        email: &'a Email,
    },
    /// Mails of a kind to an address from one organization.
    AddressOf {
        /// The kind of mail.
        kind: &'a str,
        /// The address. It is stored as a hash.
        email: &'a Email,
        /// The sender.
        organization: &'a OrganizationId,
    },
    /// Mails of a kind from an organization, to anybody.
    Organization {
        /// The kind of mail.
        kind: &'a str,
        /// The sender.
        organization: &'a OrganizationId,
    },
}

impl MailSubject<'_> {
    fn id(self) -> String {
        let (kind, subject) = match self {
            Self::Address { kind, email } => (kind, TokenHash::of(email.as_str())),
            Self::AddressOf {
                kind,
                email,
                organization,
            } => (kind, TokenHash::of(&format!("{organization}:{email}"))),
            Self::Organization { kind, organization } => {
                (kind, TokenHash::of(organization.as_str()))
            }
        };
        format!("{kind}:{}", AsRef::<str>::as_ref(&subject))
    }
}

/// The outcome of asking quotas for a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::use_case) enum MailPermit {
    /// The mail is counted and must be queued in the same unit of work.
    Granted,
    /// A rate would be exceeded. Nothing was counted.
    Refused(ExceededRate),
}

/// Counts one mail in each of the quotas, or in none if one of them refuses it.
///
/// # Errors
/// When the store failed.
pub(in crate::use_case) async fn take_mail(
    uow: &mut dyn UnitOfWork,
    quotas: &[(MailSubject<'_>, &[MailRate])],
) -> Result<MailPermit> {
    let now = uow.now().await?;
    let mut taken = Vec::with_capacity(quotas.len());
    for (subject, rates) in quotas {
        let id = subject.id();
        let stored = unowned::<MailQuota>(uow).find(&id).await?;
        let next = match &stored {
            Some(seen) => seen.take(rates, now),
            None => MailQuota::new(id, now).take(rates, now),
        };
        match next {
            Ok(next) => taken.push((stored, next)),
            Err(exceeded) => return Ok(MailPermit::Refused(exceeded)),
        }
    }
    for (stored, next) in taken {
        match stored {
            Some(seen) => unaudited::replace(uow, &seen, next).await?,
            None => unaudited::insert(uow, next).await?,
        };
    }
    Ok(MailPermit::Granted)
}

/// Removes at most `limit` of the quotas that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_mail_quotas(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<MailQuota>(uow, &MailQuotaQuery::ExpiredAt(now), limit).await
}
