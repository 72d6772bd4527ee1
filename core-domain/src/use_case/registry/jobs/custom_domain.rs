//! `domain.add`, `domain.verify` and `domain.remove`: prove the ownership of custom domains, serve their hostnames, and
//! stop serving them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::custom_domain_outcome::{
    apply_job_outcome, record_check, record_earlier_proof, record_proof, record_served,
    replace_domain,
};
use super::custom_domain_removal::{
    DomainTarget, RecordedHostname, RemoveDomain, clear_hostname_id, find_domain,
};
use super::hostname::{at_provider, serve, stop_serving};
use crate::access::PlatformWriter;
use crate::kernel::{Context, Machine, Result, Stored, Timestamp};
use crate::port::{
    DnsError, DnsResolver, HostnameState, ProviderError, ServedHostname, UnitOfWork,
};
use crate::provisioning::{ADD_DOMAIN, FailureKind, Job};
use crate::registry::{
    CustomDomain, CustomDomainEvent, CustomDomainStatus, MissingRecord, PlatformStatus, SslStatus,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone, enqueue,
};
use crate::use_case::registry::hostname::ensure_not_served_elsewhere;

/// Returns the domain if `is_wanted` selects it and its platform is not deleted. Also returns the current time.
pub(super) async fn find_wanted<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    is_wanted: impl Fn(&CustomDomain) -> bool + Send,
) -> Result<(Option<Stored<CustomDomain>>, Timestamp)> {
    let (mut uow, found) = find_domain(cx).await?;
    let now = uow.now().await?;
    let wanted = found.filter(|(platform, domain)| {
        platform.platform().status != PlatformStatus::Deleted && is_wanted(domain)
    });
    Ok((wanted.map(|(_, domain)| domain), now))
}

/// The job kind `domain.add`.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct AddDomain {
    /// The resolver for the lookups of DNS records.
    pub(in crate::use_case::registry) dns: Arc<dyn DnsResolver>,
}

impl ProvesDomain for AddDomain {
    fn dns(&self) -> &dyn DnsResolver {
        self.dns.as_ref()
    }
}

#[async_trait]
impl JobKind for AddDomain {
    const NAME: &'static str = ADD_DOMAIN;
    /// Each step has its own time limit. A suspended platform or an unavailable DNS server must not end the job.
    const DEADLINE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    type Input = DomainTarget;

    fn steps() -> Steps<Self> {
        let proved = Steps::new().step(LookUpRecords);
        proved.step(AskProvider).step(AwaitCertificate)
    }

    /// Activates the domain only if an operator forced the job to complete. Otherwise the last step has activated it.
    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        if !cx.job.forced {
            return Ok(());
        }
        let events = [CustomDomainEvent::Restart, CustomDomainEvent::Activate];
        apply_events(cx, uow, &events, None).await
    }

    /// Fails the domain if the error concerns the domain. An outage does not change the domain.
    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !fails_domain(cx.job) {
            return Ok(());
        }
        let refused = has_error(cx.job, HOSTNAME_FAILED);
        let certificate = refused.then_some(SslStatus::Failed);
        apply_events(cx, uow, &[CustomDomainEvent::Fail], certificate).await?;
        // The job calls the provider only after the proof. A cancelled job is undone instead.
        let is_asked = cx.job.output_of(LOOK_UP_RECORDS).is_some();
        if !is_asked || cx.job.failure_kind == Some(FailureKind::Cancelled) {
            return Ok(());
        }
        enqueue::<RemoveDomain>(cx, &cx.scope, uow, cx.input).await?;
        Ok(())
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_events(cx, uow, &[CustomDomainEvent::Restart], None).await?;
        if cx.job.output_of(LOOK_UP_RECORDS).is_none() {
            return Ok(());
        }
        // The completed step that records the proof is not repeated.
        let (domain, job) = (&cx.input.domain_id, &cx.job.id);
        record_earlier_proof(cx, &cx.scope, uow, domain, job).await
    }
}

/// Returns whether the failure of the job means that the domain must not be served.
fn fails_domain(job: &Job) -> bool {
    match job.failure_kind {
        Some(FailureKind::Cancelled) => true,
        Some(FailureKind::PermanentError) => {
            !has_error(job, CERTIFICATE_PENDING) && !has_error(job, "PROVIDER_DAMAGED")
        }
        _ => false,
    }
}

/// Returns whether the job failed with this error code.
fn has_error(job: &Job, code: &str) -> bool {
    job.error.as_ref().is_some_and(|error| error.code == code)
}

/// Applies events of the job to its domain.
async fn apply_events(
    cx: &JobContext<'_, AddDomain>,
    uow: &mut dyn UnitOfWork,
    events: &[CustomDomainEvent],
    certificate: Option<SslStatus>,
) -> Result<()> {
    let (domain, job) = (&cx.input.domain_id, &cx.job.id);
    apply_job_outcome(cx, &cx.scope, uow, domain, job, events, certificate).await
}

/// The name of the step that looks up DNS records.
pub(super) const LOOK_UP_RECORDS: &str = "records";

/// The error code of a job whose DNS records were not created in time.
pub(super) const RECORDS_MISSING: &str = "DNS_RECORDS_MISSING";

/// A kind that proves the ownership of a domain.
pub(super) trait ProvesDomain: JobKind<Input = DomainTarget> {
    /// Returns the resolver for the lookups of DNS records.
    fn dns(&self) -> &dyn DnsResolver;
}

/// The result of a lookup of the required DNS records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LookUp {
    /// The missing records; `None` if the domain no longer has to be verified.
    missing_records: Option<Vec<MissingRecord>>,
}

/// Waits until all required DNS records exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct LookUpRecords;

#[async_trait]
impl<K: ProvesDomain> JobStep<K> for LookUpRecords {
    type Output = LookUp;

    fn name(&self) -> &'static str {
        LOOK_UP_RECORDS
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<LookUp>, StepError> {
        let job = &cx.job.id;
        let (domain, now) = find_wanted(cx, |domain| domain.is_verified_by(job)).await?;
        let Some(domain) = domain else {
            return Ok(Observation::Present(LookUp {
                missing_records: None,
            }));
        };
        let Ok(missing) = missing_records(cx.kind.dns(), &domain).await else {
            return Err(StepError::Wait {
                until: domain.next_check_after_error(now),
                reason: "a response from the DNS".to_owned(),
                output: None,
            });
        };
        let is_complete = missing.is_empty();
        let found = LookUp {
            missing_records: Some(missing),
        };
        if is_complete {
            return Ok(Observation::Present(found));
        }
        if domain.has_timed_out(now) {
            let message = format!(
                "DNS records of {} were not created in time",
                domain.hostname
            );
            return Err(StepError::permanent(RECORDS_MISSING, message));
        }
        let reason = format!("the DNS records of {}", domain.hostname);
        Err(StepError::wait_with(
            domain.next_check(now),
            reason,
            &found,
        )?)
    }

    async fn apply(&self, _cx: &StepContext<'_, K>) -> Result<LookUp, StepError> {
        Err(StepError::permanent(
            RECORDS_MISSING,
            "only the holder of the domain can create its DNS records",
        ))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &LookUp,
    ) -> Result<()> {
        let (domain, job) = (&cx.input.domain_id, &cx.job.id);
        match &output.missing_records {
            Some(missing) if missing.is_empty() => {
                record_proof(cx, &cx.scope, uow, domain, job).await
            }
            Some(missing) => record_check(cx, &cx.scope, uow, domain, job, missing).await,
            // The platform is deleted. The domain fails, because no other job verifies it, even if the platform is
            // restored.
            None => {
                let events = [CustomDomainEvent::Fail];
                apply_job_outcome(cx, &cx.scope, uow, domain, job, &events, None).await
            }
        }
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &LookUp,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        // Four lookups of at most 20 seconds each.
        Duration::from_secs(100)
    }
}

/// Returns the missing DNS records of a domain.
///
/// # Errors
/// [`DnsError`] if a lookup failed.
async fn missing_records(
    dns: &dyn DnsResolver,
    domain: &CustomDomain,
) -> Result<Vec<MissingRecord>, DnsError> {
    let [route, proof] = domain.required_records();
    let mut missing = Vec::new();
    if !leads_to(dns, &route).await? {
        missing.push(route);
    }
    if !dns.txt(&proof.name).await?.contains(&proof.value) {
        missing.push(proof);
    }
    Ok(missing)
}

/// Returns whether a name points to another one, either as its alias (`CNAME`) or with the same addresses. The apex of
/// a zone cannot be an alias.
async fn leads_to(dns: &dyn DnsResolver, route: &MissingRecord) -> Result<bool, DnsError> {
    if dns.cname(&route.name).await?.as_ref() == Some(&route.value) {
        return Ok(true);
    }
    let own = dns.addresses(&route.name).await?;
    Ok(!own.is_empty() && own == dns.addresses(&route.value).await?)
}

/// The job kind `domain.verify`. Its jobs only queue a new `domain.add` job.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifyDomain;

impl JobKind for VerifyDomain {
    const NAME: &'static str = "domain.verify";
    const HAS_HOOKS: bool = false;
    type Input = DomainTarget;

    fn steps() -> Steps<Self> {
        Steps::new().step(QueueAddDomain)
    }
}

/// Queues a `domain.add` job, unless the domain is active or deleted or has another job.
#[derive(Clone, Copy, Debug)]
struct QueueAddDomain;

#[async_trait]
impl JobStep<VerifyDomain> for QueueAddDomain {
    type Output = ();

    fn name(&self) -> &'static str {
        LOOK_UP_RECORDS
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, VerifyDomain>,
    ) -> Result<Observation<()>, StepError> {
        Ok(Observation::Present(()))
    }

    async fn apply(&self, _cx: &StepContext<'_, VerifyDomain>) -> Result<(), StepError> {
        Ok(())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, VerifyDomain>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let domains = cx.scope.records::<CustomDomain>(uow);
        let found: Option<Stored<CustomDomain>> = domains.find(&cx.input.domain_id).await?;
        let is_unserved = |domain: &CustomDomain| {
            !matches!(
                domain.status,
                CustomDomainStatus::Active | CustomDomainStatus::Deleted
            )
        };
        let Some(seen) = found.filter(|seen| seen.job_id == cx.job.id && is_unserved(seen)) else {
            return Ok(());
        };
        requeue(cx, &cx.scope, uow, &seen).await?;
        Ok(())
    }
}

/// The error code of a job that waited the maximum time for a certificate.
pub(super) const CERTIFICATE_PENDING: &str = "CERTIFICATE_PENDING";

/// The error code of a job whose hostname the provider refuses to serve.
pub(super) const HOSTNAME_FAILED: &str = "HOSTNAME_FAILED";

/// Maximum wait for a certificate, from the start of the step or from an operator's retry.
const CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Minimum pause between two requests to the provider.
const MIN_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum pause between two requests to the provider.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// The state of a domain at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AtProvider {
    cf_hostname_id: String,
    ssl_status: SslStatus,
    /// Whether the hostname is served with a certificate.
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

/// Asks the provider to serve the hostname. The output is `None` if the domain must no longer be served.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskProvider;

#[async_trait]
impl<K: JobKind<Input = DomainTarget>> JobStep<K> for AskProvider {
    const CAN_UNDO: bool = true;
    type Output = Option<AtProvider>;

    fn name(&self) -> &'static str {
        "hostname"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError> {
        let (Some(domain), _) = find_served(cx).await? else {
            return Ok(Observation::Present(None));
        };
        // A platform that has proved the hostname since then keeps it.
        let (mut uow, platform) = cx.read().await?;
        if let Some(platform) = platform {
            ensure_not_served_elsewhere(&platform, uow.as_mut(), &domain.hostname).await?;
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
        let (Some(domain), _) = find_served(cx).await? else {
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

    /// Keeps a domain that is in use again.
    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        let (_, found) = find_domain(cx).await?;
        let Some((_, domain)) = found else {
            return Ok(Undone::kept_because("its domain does not exist"));
        };
        if domain.status != CustomDomainStatus::Failed {
            return Ok(Undone::kept_because("its domain is in use"));
        }
        stop_serving(cx, &domain).await?;
        Ok(Undone::Removed)
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        if !undone.is_removed() {
            return Ok(());
        }
        let is_given_up = |domain: &CustomDomain| domain.status == CustomDomainStatus::Failed;
        clear_hostname_id(cx, &cx.scope, uow, &cx.input.domain_id, is_given_up).await
    }
}

/// Waits until the hostname is served with a certificate. Records the state at every poll.
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
        let (Some(domain), now) = find_served(cx).await? else {
            return Ok(Observation::Present(None));
        };
        let found = match at_provider(cx, &domain).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Observation::Absent),
            Err(error) => return Err(outage(cx, error, now)),
        };
        evaluate(cx, &found, now).map(Observation::Present)
    }

    /// Asks the provider again, because it no longer knows the hostname.
    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError> {
        let (Some(domain), now) = find_served(cx).await? else {
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

/// Converts the state at the provider to the result of the step.
fn evaluate<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    found: &ServedHostname,
    now: Timestamp,
) -> Result<Option<AtProvider>, StepError> {
    let at_provider = Some(AtProvider::from(found));
    match &found.state {
        HostnameState::Active => Ok(at_provider),
        HostnameState::Failed(why) => Err(StepError::permanent(HOSTNAME_FAILED, why)),
        HostnameState::Pending(what) if now.since(wait_start(cx, now)) >= CERTIFICATE_TIMEOUT => {
            let message = format!("the certificate was not issued within a day: {what}");
            Err(StepError::permanent(CERTIFICATE_PENDING, message))
        }
        HostnameState::Pending(what) => {
            let until = next_poll(cx, now);
            Err(StepError::wait_with(until, what, &at_provider)?)
        }
    }
}

/// Returns a wait for temporary errors of the provider, however long they last. Other errors are returned unchanged.
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
        reason: "a response from the provider".to_owned(),
        output: None,
    }
}

/// Returns the time of the next poll. The pause is the time waited so far plus the minimum pause, so it doubles each
/// time up to the maximum.
fn next_poll<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    now: Timestamp,
) -> Timestamp {
    let waited = now.since(wait_start(cx, now));
    now.plus((waited + MIN_POLL_INTERVAL).min(MAX_POLL_INTERVAL))
}

/// Returns the time since which the step waits. An operator's retry restarts it.
fn wait_start<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    now: Timestamp,
) -> Timestamp {
    let step = cx.job.current_step().map(|at| &cx.job.steps[at]);
    let begun = step.and_then(|step| step.started_at).unwrap_or(now);
    begun.max(cx.job.deadline_at.minus(K::DEADLINE))
}

/// Returns the domain if this job still has to serve it, and the current time.
async fn find_served<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
) -> Result<(Option<Stored<CustomDomain>>, Timestamp), StepError> {
    let job = &cx.job.id;
    Ok(find_wanted(cx, |domain| domain.is_served_by(job)).await?)
}

/// Records the state at the provider.
async fn record<K: JobKind<Input = DomainTarget>>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    found: Option<&AtProvider>,
    activates: bool,
) -> Result<()> {
    let Some(found) = found else {
        return Ok(());
    };
    let (domain, job) = (&cx.input.domain_id, &cx.job.id);
    let hostname = RecordedHostname {
        cf_hostname_id: &found.cf_hostname_id,
        ssl_status: found.ssl_status,
    };
    let activates = activates && found.active;
    record_served(cx, &cx.scope, uow, domain, job, hostname, activates).await
}

/// Queues a new job for an existing domain. The job replaces the domain's earlier job.
///
/// # Errors
/// `LIMIT_REACHED` if too many jobs of the platform are queued; `VERSION_CONFLICT` if `If-Match` does not match.
pub(in crate::use_case::registry) async fn requeue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<Stored<Job>> {
    let job = enqueue::<AddDomain>(cx, scope, uow, &DomainTarget::of(scope, &seen.id)).await?;
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    if seen.status == CustomDomainStatus::Failed {
        let event = CustomDomainEvent::Restart;
        next = next.after(event, uow.now().await?)?;
        action = event.transition().action;
    }
    next.job_id = job.id.clone();
    replace_domain(cx, scope, uow, seen, next, action).await?;
    Ok(job)
}
