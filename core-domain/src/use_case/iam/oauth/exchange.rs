//! Exchanging a refresh token for new tokens.

use super::TokenPair;
use super::grant::{GrantOutcome, GrantRefusal};
use super::tokens::{as_owner, issue};
use crate::access::{PublicScope, audited, unaudited, unowned};
use crate::iam::{
    AccessToken, AccessTokenQuery, OAuthClient, RefreshDecision, RefreshToken, RefreshTokenQuery,
    Session, SessionValidity, TokenHash, User,
};
use crate::kernel::{Cipher, Context, Effect, Error, Result, Stored};
use crate::port::UnitOfWork;

/// Returns a refresh token of the client, and its session.
async fn find(
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    shown: &str,
) -> Result<Option<(Stored<RefreshToken>, Stored<Session>)>> {
    let hash = TokenHash::of(shown);
    let Some(token) = unowned::<RefreshToken>(uow).find(&hash).await? else {
        return Ok(None);
    };
    let session = unowned::<Session>(uow).find(&token.session_id).await?;
    let session = session.filter(|session| session.client_id == Some(client));
    Ok(session.map(|session| (token, session)))
}

/// Tells whether a refresh token of the client is stored. Reads only.
///
/// # Errors
/// When the store failed.
pub async fn has_refresh_token(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    refresh_token: &str,
) -> Result<bool> {
    Ok(find(uow, client, refresh_token).await?.is_some())
}

/// Exchanges a refresh token; its session goes on as long as the new one. A token that was exchanged a moment ago gets the
/// same tokens again; one that somebody uses who should not have it ends the session and every token of it.
///
/// # Errors
/// When the store failed.
pub async fn refresh(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    client: OAuthClient,
    shown: &str,
) -> Result<GrantOutcome> {
    let invalid = Ok(Err(GrantRefusal::InvalidGrant));
    let Some((token, session)) = find(uow, client, shown).await? else {
        return invalid;
    };
    let now = uow.now().await?;
    let over = session.validity(now) == SessionValidity::Expired;
    let user = unowned::<User>(uow).find(&session.user_id).await?;
    if over || user.is_none_or(|user| user.banned_at.is_some()) {
        return invalid;
    }
    let successor = match &token.successor_hash {
        Some(successor) => unowned::<RefreshToken>(uow).find(successor).await?,
        None => None,
    };
    match token.shown(successor.as_deref(), now) {
        RefreshDecision::Rotate => Ok(Ok(rotate(cx, uow, cipher, &session, &token).await?)),
        RefreshDecision::Repeat => Ok(Ok(repeated(cipher, &token)?)),
        RefreshDecision::Expired => invalid,
        RefreshDecision::Reuse => {
            end_family(cx, scope, uow, &session).await?;
            invalid
        }
    }
}

async fn rotate(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    session: &Stored<Session>,
    token: &Stored<RefreshToken>,
) -> Result<TokenPair> {
    let now = uow.now().await?;
    let until = Session::end_of_family(session.created_at, now);
    // Compared with what was read: a session that is ended at the same time is not brought back.
    let session = unaudited::replace(uow, session, session.extended(now, until)).await?;
    let pair = issue(cx, uow, &session, Some(&token.token_hash)).await?;
    let text = serde_json::to_string(&pair);
    let text = text.map_err(|error| Error::Internal(format!("tokens are no JSON: {error}")))?;
    let sealed = cipher.seal(token.token_hash.as_ref(), &text)?;
    let successor = TokenHash::of(&pair.refresh_token);
    unaudited::replace(uow, token, token.rotated(now, successor, sealed)).await?;
    forget_repeat(uow, token).await?;
    Ok(pair)
}

/// What the token before was exchanged for is not given again.
async fn forget_repeat(uow: &mut dyn UnitOfWork, token: &RefreshToken) -> Result<()> {
    let Some(predecessor) = &token.predecessor_hash else {
        return Ok(());
    };
    if let Some(predecessor) = unowned::<RefreshToken>(uow).find(predecessor).await? {
        let mut next = predecessor.edit();
        next.sealed_successor = None;
        unaudited::replace(uow, &predecessor, next).await?;
    }
    Ok(())
}

fn repeated(cipher: &Cipher, token: &RefreshToken) -> Result<TokenPair> {
    let sealed = token.sealed_successor.as_deref();
    let sealed = sealed.ok_or_else(|| Error::Internal("the successor is gone".to_owned()))?;
    let text = cipher.open(token.token_hash.as_ref(), sealed)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Internal(format!("sealed tokens are no tokens: {error}")))
}

/// Ends the session and removes its tokens.
async fn end_family(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    session: &Stored<Session>,
) -> Result<()> {
    let cx = as_owner(cx, session);
    audited::remove(&cx, scope, uow, session, "token.reuse_detected").await?;
    let id = &session.id;
    let access = AccessTokenQuery::OfSession(id.clone());
    unowned::<AccessToken>(uow).remove_all(&access).await?;
    let refresh = RefreshTokenQuery::OfSession(id.clone());
    unowned::<RefreshToken>(uow).remove_all(&refresh).await?;
    uow.effects().add(Effect::SessionChanged(id.clone()));
    Ok(())
}
