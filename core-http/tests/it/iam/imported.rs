//! Users imported from another installation, and password hashes in an outdated format.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_domain::access::{PublicScope, authorize_operator};
use core_domain::iam::PasswordHash;
use core_domain::kernel::{Context, Email, Line, PersonName, Timestamp, UserId};
use core_domain::port::{HashForm, Mode, PasswordError, PasswordHasher, Store, transact};
use core_domain::use_case::iam::user::{
    ImportOutcome, ImportedUser, KnownUsers, PasswordCredential, import, password_credential,
    preview_import, rehash_password,
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ADA, EVE, GET_SESSION, WRONG_PASSWORD};
use crate::world::{PASSWORD, World, on_every_store};

/// A fake hasher that marks passwords with `$new$`. Hashes marked with `$old$` are outdated.
#[derive(Debug, Default)]
struct MarkingHasher {
    /// A concurrent change that happens once, while a password is checked.
    concurrent_rehash: Mutex<Option<ConcurrentRehash>>,
    /// `true` makes hashing fail with `Busy`.
    is_failing: AtomicBool,
}

#[derive(Clone, Debug)]
struct ConcurrentRehash {
    store: Arc<dyn Store>,
    cx: Context,
    /// The hash that replaces the checked one.
    hash: String,
}

impl ConcurrentRehash {
    async fn apply(&self) {
        let on_file = &find_credential(self.store.as_ref()).await;
        let (cx, hash) = (&self.cx, &PasswordHash::new(self.hash.clone()));
        let scope = &PublicScope::open();
        let done = transact(self.store.as_ref(), |uow, _| {
            Box::pin(rehash_password(cx, scope, uow, on_file, hash))
        });
        assert!(done.await.unwrap());
    }
}

#[async_trait]
impl PasswordHasher for MarkingHasher {
    async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        if self.is_failing.load(Ordering::SeqCst) {
            return Err(PasswordError::Busy);
        }
        Ok(format!("$new${password}"))
    }

    fn form(&self, hash: &str) -> HashForm {
        match hash.split('$').nth(1) {
            Some("new") => HashForm::Current,
            Some("old") => HashForm::Outdated,
            _ => HashForm::Unreadable,
        }
    }

    async fn verify<'a>(
        &self,
        password: &str,
        hash: Option<&'a str>,
    ) -> Result<bool, PasswordError> {
        let fits = hash.and_then(|hash| hash.rsplit('$').next()) == Some(password);
        let meanwhile = self.concurrent_rehash.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile.apply().await;
        }
        Ok(fits)
    }
}

async fn find_credential(store: &dyn Store) -> PasswordCredential {
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let found = password_credential(uow.as_mut(), &Email::parse(ADA).unwrap()).await;
    uow.rollback().await;
    found.unwrap().unwrap()
}

async fn hash_on_file(world: &World) -> String {
    let on_file = find_credential(world.app.store.as_ref()).await;
    on_file.hash.expose().to_owned()
}

fn person(email: &str, id: Option<&str>, hash: Option<&str>) -> ImportedUser {
    ImportedUser {
        id: id.map(|id| UserId::parse(id).unwrap()),
        name: PersonName::parse("Somebody").unwrap(),
        email: Email::parse(email).unwrap(),
        email_verified: true,
        image: Some(Line::parse("https://example.org/a.png").unwrap()),
        created_at: Some(Timestamp::from_seconds(1_600_000_000)),
        password_hash: hash.map(|hash| PasswordHash::new(hash.to_owned())),
    }
}

async fn import_people(world: &World, people: &[ImportedUser]) -> Vec<ImportOutcome> {
    let cx = &Context::system(Arc::clone(&world.app.entropy));
    let scope = &authorize_operator(cx).unwrap();
    let outcomes = transact(world.app.store.as_ref(), |uow, _| {
        Box::pin(import(cx, scope, uow, people))
    });
    outcomes.await.unwrap()
}

/// Creates a world in which Ada was imported with an outdated hash.
async fn world() -> (World, Arc<MarkingHasher>) {
    let marks = Arc::new(MarkingHasher::default());
    let hasher = Arc::clone(&marks);
    let world = World::with(|app| app.hasher = hasher);
    let hash = format!("$old${PASSWORD}");
    let outcomes = import_people(&world, &[person(ADA, Some("user-1"), Some(&hash))]).await;
    let expected = ImportOutcome::Imported(UserId::parse("user-1"));
    assert_eq!(outcomes, [expected]);
    (world, marks)
}

#[tokio::test]
async fn the_first_sign_in_replaces_an_outdated_password_hash() {
    let (world, _) = world().await;
    let _ = world.sign_in(ADA, WRONG_PASSWORD).await.expect(401);
    assert_eq!(hash_on_file(&world).await, format!("$old${PASSWORD}"));
    for _ in 0..2 {
        let signed_in = world.sign_in(ADA, PASSWORD).await.expect(200);
        assert_eq!(signed_in.json["user"]["id"], "user-1");
        assert_eq!(hash_on_file(&world).await, format!("$new${PASSWORD}"));
    }
    let entries = world.audit("account.password_rehashed").await;
    assert_eq!((entries.len(), &*entries[0].actor_id), (1, "user-1"));
    assert!(!format!("{entries:?}").contains("horse"));
}

#[tokio::test]
async fn a_failed_rehash_does_not_fail_the_sign_in() {
    let (world, marks) = world().await;
    marks.is_failing.store(true, Ordering::SeqCst);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(hash_on_file(&world).await, format!("$old${PASSWORD}"));
    marks.is_failing.store(false, Ordering::SeqCst);
    let _ = world.sign_in(ADA, PASSWORD).await.expect(200);
    assert_eq!(hash_on_file(&world).await, format!("$new${PASSWORD}"));
}

#[tokio::test]
async fn a_hash_that_changes_during_its_check_is_checked_again() {
    for (hash, status) in [
        (format!("$new${PASSWORD}"), 200),
        ("$new$another horse".to_owned(), 401),
    ] {
        let (world, marks) = world().await;
        *marks.concurrent_rehash.lock().unwrap() = Some(ConcurrentRehash {
            store: Arc::clone(&world.app.store),
            cx: Context::system(Arc::clone(&world.app.entropy)),
            hash: hash.clone(),
        });
        let _ = world.sign_in(ADA, PASSWORD).await.expect(status);
        assert_eq!(hash_on_file(&world).await, hash);
    }
}

#[tokio::test]
async fn concurrent_sign_ins_all_succeed_and_rehash_once() {
    let (world, _) = world().await;
    let signed_in = join_all((0..8).map(|_| world.sign_in(ADA, PASSWORD))).await;
    assert!(signed_in.iter().all(|answer| answer.status == 200));
    assert_eq!(world.audit("account.password_rehashed").await.len(), 1);
}

async fn an_import_leaves_existing_users_unchanged_and_adds_the_others(world: World) {
    let eve = world.sign_up(EVE).await;
    let batch = [
        person(ADA, Some("user-1"), None),
        person(EVE, None, None),
        person("ADA@example.org", None, None),
        person("bob@example.org", Some("user-1"), None),
        person("eva@example.org", Some(&eve.user_id), None),
        person(
            "zoe@example.org",
            None,
            Some("$worthless$correct horse battery"),
        ),
    ];
    let cx = Context::system(Arc::clone(&world.app.entropy));
    let scope = authorize_operator(&cx).unwrap();
    let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
    let previewed = preview_import(&scope, uow.as_mut(), &mut KnownUsers::default(), &batch)
        .await
        .unwrap();
    uow.rollback().await;
    let outcomes = import_people(&world, &batch).await;
    let kind = |outcome: &ImportOutcome| match outcome {
        ImportOutcome::Imported(_) => "imported",
        ImportOutcome::EmailTaken => "email",
        ImportOutcome::IdTaken => "id",
    };
    let expected = ["imported", "email", "email", "id", "id", "imported"];
    for found in [&previewed, &outcomes] {
        assert_eq!(found.iter().map(kind).collect::<Vec<_>>(), expected);
    }
    let entries = world.audit("user.imported").await;
    assert_eq!((entries.len(), &*entries[0].actor_type), (2, "system"));
    let again = import_people(&world, &batch).await;
    assert_eq!(world.audit("user.imported").await.len(), 2);
    assert_eq!(kind(&again[0]), "email");
    // A user without a password cannot sign in with one.
    let _ = world.sign_in(ADA, PASSWORD).await.expect(401);
    let zoe = world
        .sign_in("zoe@example.org", "correct horse battery")
        .await;
    let zoe = zoe.expect(200);
    let shown = world
        .send_with_bearer(zoe.text("token"), "GET", GET_SESSION)
        .await;
    let user = &shown.json["user"];
    let expected = json!({
        "id": user["id"], "name": "Somebody", "email": "zoe@example.org", "emailVerified": true,
        "image": "https://example.org/a.png", "createdAt": "2020-09-13T12:26:40.000Z",
        "updatedAt": user["updatedAt"],
    });
    let part = |field: &str| (field.to_owned(), user[field].clone());
    let fields = expected
        .as_object()
        .unwrap()
        .keys()
        .map(|field| part(field));
    assert_eq!(Value::Object(fields.collect()), expected);
}

on_every_store! { an_import_leaves_existing_users_unchanged_and_adds_the_others }
