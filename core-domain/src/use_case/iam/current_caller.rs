//! Who a caller is by now.

use std::sync::Arc;

use super::{NamedOrganization, api_key, named_person, session};
use crate::access::authorize_session;
use crate::kernel::{Caller, Context, Error, Result};
use crate::port::UnitOfWork;

/// The caller as their credential would make them known now: for requests that last so long that a session may end or a
/// role be taken away meanwhile. A person whom a service vouches for without a session is read from the store as well; services
/// are who they were.
///
/// # Errors
/// `UNAUTHORIZED` when the session or key is over.
pub async fn current_caller(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<Arc<Caller>> {
    let current = match &*cx.caller {
        Caller::User {
            session_id: Some(_),
            service: None,
            ..
        } => {
            let scope = authorize_session(cx)?;
            let found = session::details(&scope, uow).await?;
            found.map(|found| found.caller())
        }
        Caller::User {
            user_id,
            session_id: None,
            service: Some(service),
            membership,
        } => {
            let organization = membership
                .as_ref()
                .map(|own| NamedOrganization::Id(own.organization_id.clone()));
            let named = named_person(uow, service, user_id.clone(), organization.as_ref()).await?;
            Some(named).filter(|named| !named.is_anonymous())
        }
        Caller::ApiKey { key_id, .. } => {
            let found = api_key::details_by_id(uow, key_id).await?;
            found.map(|found| found.caller())
        }
        _ => return Ok(Arc::clone(&cx.caller)),
    };
    current.map(Arc::new).ok_or(Error::Unauthorized)
}
