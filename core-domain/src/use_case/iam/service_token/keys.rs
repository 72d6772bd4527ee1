//! The keys that service tokens are signed with. They are made when somebody needs them or looks, and at the latest by the
//! daily sweep.

use std::sync::Arc;

use crate::access::{SystemScope, audited, unaudited, unowned};
use crate::iam::{
    Ed25519Private, SigningKey, SigningKeyQuery, keys_to_sign_with, next_key_begins,
    published_keys, retired_keys,
};
use crate::kernel::{Caller, Cipher, Context, Error, Result, StoreError, Stored, Timestamp};
use crate::port::UnitOfWork;

/// More keys than there ever are: retired ones are removed daily, and one is made in 30 days.
const MOST_KEYS: u32 = 100;

/// Every key, oldest first.
pub(super) async fn all(uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<SigningKey>>> {
    let all = unowned::<SigningKey>(uow)
        .list(&SigningKeyQuery::All, MOST_KEYS)
        .await?;
    Ok(all)
}

/// The keys that signatures are checked with now, oldest first.
///
/// # Errors
/// When the store failed.
pub async fn published(uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<SigningKey>>> {
    let (keys, now) = (all(uow).await?, uow.now().await?);
    Ok(published_stored(&keys, now))
}

fn published_stored(keys: &[Stored<SigningKey>], now: Timestamp) -> Vec<Stored<SigningKey>> {
    let plain = plain(keys);
    let skipped = keys.len() - published_keys(&plain, now).len();
    keys[skipped..].to_vec()
}

fn plain(keys: &[Stored<SigningKey>]) -> Vec<&SigningKey> {
    keys.iter().map(|key| &**key).collect()
}

/// Tells whether the next key has to be made. Reads only: a unit that writes is too dear for whoever looks.
///
/// # Errors
/// When the store failed.
pub async fn next_key_is_due(uow: &mut dyn UnitOfWork) -> Result<bool> {
    let (keys, now) = (all(uow).await?, uow.now().await?);
    Ok(next_key_begins(&plain(&keys), now).is_some())
}

/// Makes the next key, if it has to be made.
///
/// # Errors
/// [`StoreError::Retry`] when another node made it at the same time: run again, it is there.
pub async fn make_next_key(cx: &Context, uow: &mut dyn UnitOfWork, cipher: &Cipher) -> Result<()> {
    let (keys, now) = (all(uow).await?, uow.now().await?);
    let Some(active_from) = next_key_begins(&plain(&keys), now) else {
        return Ok(());
    };
    insert(cx, uow, cipher, &keys, active_from).await?;
    Ok(())
}

/// Makes the key that follows these.
async fn insert(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    keys: &[Stored<SigningKey>],
    active_from: Timestamp,
) -> Result<Ed25519Private> {
    let private = Ed25519Private::generate(cx.entropy.as_ref());
    let public = private.public();
    let kid = public.thumbprint();
    let key = SigningKey {
        generation: keys.last().map_or(0, |last| last.generation) + 1,
        public_key: public.x(),
        sealed_private_key: cipher.seal(&kid, &private.expose())?,
        kid,
        active_from,
        created_at: uow.now().await?,
    };
    let (cx, scope) = (&by_the_suite(cx), &SystemScope::new());
    match audited::insert(cx, scope, uow, key, "signing_key.created").await {
        Ok(_) => Ok(private),
        Err(Error::Store(StoreError::Conflict { .. })) => Err(Error::Store(StoreError::Retry(
            "another node made the signing key".into(),
        ))),
        Err(error) => Err(error),
    }
}

/// Whoever happens to look does not make keys.
fn by_the_suite(cx: &Context) -> Context {
    Context {
        caller: Arc::new(Caller::System),
        ..cx.consequence()
    }
}

/// The private key that tokens are signed with now; made when there is none, and when none can be decrypted because the
/// installation was given another key to encrypt with: what was signed before is still believed.
pub(super) async fn signing_key(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
) -> Result<Ed25519Private> {
    make_next_key(cx, uow, cipher).await?;
    let (keys, now) = (all(uow).await?, uow.now().await?);
    let readable = |key: &SigningKey| {
        let text = cipher.open(&key.kid, &key.sealed_private_key).ok()?;
        Ed25519Private::read(&text)
    };
    let readable = keys_to_sign_with(&plain(&keys), now)
        .into_iter()
        .find_map(|key| readable(key));
    match readable {
        Some(key) => Ok(key),
        None => insert(cx, uow, cipher, &keys, now).await,
    }
}

/// Makes the next key in time and removes those nobody needs any more; tells how many. Where nobody has ever asked for a token
/// there are no keys, and none is made.
///
/// # Errors
/// As [`make_next_key`].
pub async fn look_after_keys(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
) -> Result<u64> {
    if all(uow).await?.is_empty() {
        return Ok(0);
    }
    make_next_key(cx, uow, cipher).await?;
    let (keys, now) = (all(uow).await?, uow.now().await?);
    let retired = retired_keys(&plain(&keys), now).len();
    for key in &keys[..retired] {
        unaudited::remove(uow, key).await?;
    }
    Ok(retired as u64)
}
