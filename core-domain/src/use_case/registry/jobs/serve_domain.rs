//! The steps in which a provider serves a custom domain.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::domain_target::{DomainTarget, find_domain, find_wanted};
use super::hostname_calls::{at_provider, serve, stop_serving};
use crate::kernel::{Result, Stored, Timestamp};
use crate::port::{HostnameState, Mode, ProviderError, ServedHostname, UnitOfWork};
use crate::registry::{CustomDomain, CustomDomainStatus, SslStatus};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Undone,
};
use crate::use_case::registry::domain::{forget_hostname, record_served};
use crate::use_case::registry::hostname::ensure_not_foreign;

/// The code of the error of a job that waited for a certificate as long as it may.
pub(super) const GIVEN_UP: &str = "CERTIFICATE_PENDING";

/// The code of the error of a job whose hostname the provider will not serve.
pub(super) const HOSTNAME_FAILED: &str = "HOSTNAME_FAILED";

/// How long a certificate is waited for, from the beginning of the step or from an operator's retry.
const CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The shortest and the longest pause between two looks at the provider.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

/// How far the provider is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AtProvider {
    cf_hostname_id: String,
    ssl_status: SslStatus,
    /// Whether it is served, with a certificate.
    active: bool,
}

impl From<&ServedHostname> for AtProvider {
    fn from(found: &ServedHostname) -> Self {
        Self {
            cf_hostname_id: found.id.clone(),
            ssl_status: found.certificate,
            active: found.state == HostnameState::Active,
        }
    }
}

/// Asks the provider to serve the hostname. Its output is unset when the domain is not to be served (any more).
#[derive(Clone, Copy, Debug)]
pub(super) struct AskProvider;

#[async_trait]
impl<K: JobKind<Input = DomainTarget>> JobStep<K> for AskProvider {
    const UNDOES: bool = true;
    type Output = Option<AtProvider>;

    fn name(&self) -> &'static str {
        "hostname"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError> {
        let (Some(domain), _) = current(cx).await? else {
            return Ok(Observation::Present(None));
        };
        // Who has proved it since keeps it.
        let mut uow = cx.store.begin(Mode::Read).await?;
        if let Some(platform) = cx.platform(uow.as_mut()).await? {
            ensure_not_foreign(&platform, uow.as_mut(), &domain.hostname).await?;
        }
        drop(uow);
        let found = at_provider(cx, &domain).await?;
        let found = found.filter(|found| !matches!(found.state, HostnameState::Failed(_)));
        Ok(match found {
            Some(found) => Observation::Present(Some(AtProvider::from(&found))),
            None => Observation::Absent,
        })
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError> {
        let (Some(domain), _) = current(cx).await? else {
            return Ok(None);
        };
        Ok(Some(AtProvider::from(
            &serve(cx, &domain, cx.effect_key.to_owned()).await?,
        )))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Self::Output,
    ) -> Result<()> {
        record(cx, uow, output.as_ref(), false).await
    }

    /// A domain that is wanted again by now stays.
    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let found = find_domain(cx, uow.as_mut()).await?;
        drop(uow);
        let Some((_, domain)) = found else {
            return Ok(Undone::left("its domain does not exist"));
        };
        if domain.status != CustomDomainStatus::Failed {
            return Ok(Undone::left("its domain is in use"));
        }
        stop_serving(cx, &domain).await?;
        Ok(Undone::TakenBack)
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let Some(platform) = platform.filter(|_| undone.is_taken_back()) else {
            return Ok(());
        };
        let is_given_up = |domain: &CustomDomain| domain.status == CustomDomainStatus::Failed;
        forget_hostname(cx, &platform, uow, &cx.input.domain_id, is_given_up).await
    }
}

/// Waits until the hostname is served with a certificate; writes at every look where that stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitCertificate;

#[async_trait]
impl<K: JobKind<Input = DomainTarget>> JobStep<K> for AwaitCertificate {
    type Output = Option<AtProvider>;

    fn name(&self) -> &'static str {
        "certificate"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError> {
        let (Some(domain), now) = current(cx).await? else {
            return Ok(Observation::Present(None));
        };
        let found = match at_provider(cx, &domain).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Observation::Absent),
            Err(error) => return Err(outage(cx, error, now)),
        };
        evaluate(cx, &found, now).map(Observation::Present)
    }

    /// The provider lost it.
    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError> {
        let (Some(domain), now) = current(cx).await? else {
            return Ok(None);
        };
        evaluate(
            cx,
            &serve(cx, &domain, cx.effect_key.to_owned()).await?,
            now,
        )
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Self::Output,
    ) -> Result<()> {
        record(cx, uow, output.as_ref(), true).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Self::Output,
    ) -> Result<()> {
        record(cx, uow, found.as_ref(), false).await
    }
}

/// What a look at the provider means for the step.
fn evaluate<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    found: &ServedHostname,
    now: Timestamp,
) -> Result<Option<AtProvider>, StepError> {
    let at_provider = Some(AtProvider::from(found));
    match &found.state {
        HostnameState::Active => Ok(at_provider),
        HostnameState::Failed(why) => Err(StepError::permanent(HOSTNAME_FAILED, why)),
        HostnameState::Pending(what) if now.since(waits_since(cx, now)) >= CERTIFICATE_TIMEOUT => {
            let message = format!("there is no certificate after a day: {what}");
            Err(StepError::permanent(GIVEN_UP, message))
        }
        HostnameState::Pending(what) => {
            let until = next_poll(cx, now);
            Err(StepError::wait_with(until, what, &at_provider)?)
        }
    }
}

/// A provider that does not answer says nothing of the hostname, however long that lasts.
fn outage<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    error: ProviderError,
    now: Timestamp,
) -> StepError {
    let until = match error {
        ProviderError::Throttled {
            retry_after_seconds,
        } => now.plus(Duration::from_secs(retry_after_seconds)),
        ProviderError::Transient(_) | ProviderError::OutcomeUnknown(_) => now,
        error => return error.into(),
    };
    StepError::Wait {
        until: until.max(next_poll(cx, now)),
        reason: "the provider, which did not answer".to_owned(),
        found: None,
    }
}

/// As long as it was waited so far and the shortest pause more, which doubles every pause, up to the longest.
fn next_poll<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    now: Timestamp,
) -> Timestamp {
    let waited = now.since(waits_since(cx, now));
    now.plus((waited + SHORTEST_PAUSE).min(LONGEST_PAUSE))
}

/// Since when the step waits: an operator's retry begins anew.
fn waits_since<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    now: Timestamp,
) -> Timestamp {
    let step = cx.job.current_step().map(|at| &cx.job.steps[at]);
    let begun = step.and_then(|step| step.started_at).unwrap_or(now);
    begun.max(cx.job.deadline_at.minus(K::DEADLINE))
}

/// The domain, if this job still has it served, and the instant.
async fn current<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
) -> Result<(Option<Stored<CustomDomain>>, Timestamp), StepError> {
    let job = &cx.job.id;
    Ok(find_wanted(cx, |domain| domain.is_served_by(job)).await?)
}

async fn record<K: JobKind<Input = DomainTarget>>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    found: Option<&AtProvider>,
    activates: bool,
) -> Result<()> {
    let (Some(found), Some(platform)) = (found, cx.platform(uow).await?) else {
        return Ok(());
    };
    let own = (&cx.input.domain_id, &cx.job.id);
    let at_provider = (found.cf_hostname_id.as_str(), found.ssl_status);
    let activates = activates && found.active;
    record_served(cx, &platform, uow, own, at_provider, activates).await
}
