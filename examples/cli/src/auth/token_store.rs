//! The file with the tokens of a profile.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use core_client::Secret;
use core_client::types::account::TokenPair;
use serde::Deserialize;
use serde_json::json;

use super::keyring;
use crate::config::files::{
    create_private_folder, delete_optional, open_lock_file, read_optional, write_private_file,
};
use crate::failure::{Failure, Result};

/// Time before the expiry of an access token at which it is refreshed.
const REFRESH_BEFORE: Duration = Duration::from_secs(60);

/// The tokens of a profile, and the installation that they belong to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct StoredTokens {
    /// The address of the gateway that accepts the tokens. They are never sent to another one.
    pub(crate) api_url: String,
    /// The address of IAM that refreshes the tokens.
    pub(crate) iam_url: String,
    pub(crate) access_token: Secret,
    pub(crate) refresh_token: Secret,
    /// The time at which the access token expires, in Unix seconds.
    pub(crate) expires_at: u64,
}

impl StoredTokens {
    pub(crate) fn new(api_url: &str, iam_url: &str, pair: &TokenPair, now: SystemTime) -> Self {
        Self {
            api_url: api_url.to_owned(),
            iam_url: iam_url.to_owned(),
            access_token: pair.access_token.clone(),
            refresh_token: pair.refresh_token.clone(),
            expires_at: unix_seconds(now) + pair.lifetime().as_secs(),
        }
    }

    /// Returns whether the access token is valid for some time.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        unix_seconds(now + REFRESH_BEFORE) < self.expires_at
    }

    fn to_text(&self) -> String {
        let tokens = json!({
            "api_url": self.api_url,
            "iam_url": self.iam_url,
            "access_token": self.access_token.expose(),
            "refresh_token": self.refresh_token.expose(),
            "expires_at": self.expires_at,
        });
        format!("{tokens:#}\n")
    }
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// The store of one profile's tokens: a file with the mode 0600 in a folder with the mode 0700.
#[derive(Clone, Debug)]
pub(crate) struct TokenStore {
    folder: PathBuf,
    profile: String,
}

/// The exclusive access to a store. Other processes wait until it is dropped.
#[derive(Debug)]
pub(crate) struct TokenLock(File);

impl Drop for TokenLock {
    fn drop(&mut self) {
        // Closing the file releases the lock as well.
        let _ = self.0.unlock();
    }
}

impl TokenStore {
    /// Creates the store of a profile below the configuration folder.
    pub(crate) fn new(config_folder: &Path, profile: &str) -> Self {
        Self {
            folder: config_folder.join("tokens"),
            profile: profile.to_owned(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.profile))
    }

    fn failure(&self, action: &str, error: &io::Error) -> Failure {
        Failure::io(&format!("{action} {}", self.path().display()), error)
    }

    /// Returns the tokens; `None` if the person is not signed in.
    pub(crate) fn read(&self) -> Result<Option<StoredTokens>> {
        let of_file = || read_optional(&self.path()).map_err(|error| self.failure("read", &error));
        let text = match keyring::read(&self.account()) {
            Some(text) => text,
            None => match of_file()? {
                Some(text) => text,
                None => return Ok(None),
            },
        };
        // The message does not quote the file, because it contains secrets.
        let tokens = serde_json::from_str(&text).map_err(|_| {
            Failure::other(format!("{} is damaged.", self.path().display()))
                .hint("Run `core-cli login` to replace it.")
        })?;
        Ok(Some(tokens))
    }

    /// Replaces the tokens.
    pub(crate) fn write(&self, tokens: &StoredTokens) -> Result<()> {
        if keyring::write(&self.account(), &tokens.to_text()) {
            return self.delete_file().map(drop);
        }
        let written = create_private_folder(&self.folder)
            .and_then(|()| write_private_file(&self.path(), tokens.to_text().as_bytes()));
        written.map_err(|error| self.failure("write", &error))
    }

    /// Deletes the tokens. Returns whether there were any.
    pub(crate) fn delete(&self) -> Result<bool> {
        let of_keyring = keyring::delete(&self.account());
        Ok(self.delete_file()? || of_keyring)
    }

    fn delete_file(&self) -> Result<bool> {
        delete_optional(&self.path()).map_err(|error| self.failure("delete", &error))
    }

    /// Returns the name of the profile in the keyring. Folders of configuration do not share entries.
    fn account(&self) -> String {
        format!("{} in {}", self.profile, self.folder.display())
    }

    /// Waits until no other process changes the tokens, and keeps others from doing so.
    pub(crate) fn lock(&self) -> Result<TokenLock> {
        let path = self.folder.join(format!("{}.lock", self.profile));
        let locked = create_private_folder(&self.folder).and_then(|()| {
            let file = open_lock_file(&path)?;
            file.lock()?;
            Ok(TokenLock(file))
        });
        locked.map_err(|error| Failure::io(&format!("lock {}", path.display()), &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(access: &str, expires_at: u64) -> StoredTokens {
        StoredTokens {
            api_url: "http://a".to_owned(),
            iam_url: "http://i".to_owned(),
            access_token: Secret::new(access),
            refresh_token: Secret::new("crt_1"),
            expires_at,
        }
    }

    #[test]
    fn written_tokens_are_read_again_until_they_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path(), "default");
        assert_eq!(store.read().unwrap(), None);
        store.write(&tokens("cat_1", 7)).unwrap();
        assert_eq!(store.read().unwrap(), Some(tokens("cat_1", 7)));
        assert!(store.delete().unwrap());
        assert!(!store.delete().unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_tokens() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path(), "default");
        store.write(&tokens("cat_1", 7)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.path()), mode(&store.folder)), (0o600, 0o700));
    }

    #[test]
    fn tokens_are_fresh_until_a_minute_before_their_expiry() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(tokens("cat_1", 1000).is_fresh(at(939)));
        assert!(!tokens("cat_1", 1000).is_fresh(at(940)));
    }

    #[test]
    fn the_message_about_a_damaged_file_does_not_quote_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore::new(folder.path(), "default");
        store.write(&tokens("cat_1", 7)).unwrap();
        std::fs::write(store.path(), "{\"access_token\": cat_secret").unwrap();
        assert!(!format!("{}", store.read().unwrap_err()).contains("cat_secret"));
    }
}
