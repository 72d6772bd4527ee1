//! Seals the audit log, and tampers with it in ways that no use case allows.

use core_domain::access::RecordKey;
use core_domain::kernel::{
    AuditId, Caller, Context, JsonText, PlatformId, TextValue, Timestamp, first_uuid,
};
use core_domain::port::{Mode, Within, transact};
use core_domain::shared::{AuditEntry, AuditSeal, AuditSealQuery, AuditStream};
use core_domain::use_case::shared::{seal, sign_due_checkpoints, sign_due_installation_checkpoint};
use core_storage::{Filter, Row, Table, Tabular, VERSION, Value as Column};
use serde_json::{Value, json};

use super::World;

impl World {
    /// Seals every unsealed audit entry. Returns the number of sealed entries.
    pub(crate) async fn seal(&self) -> usize {
        let (cx, key) = (
            Context::system(self.app.entropy.clone()),
            &self.app.audit_key,
        );
        let mut entries = 0;
        loop {
            let sealed = seal(&cx, self.app.store.as_ref(), key).await.unwrap();
            entries += sealed.entries;
            if !sealed.has_more {
                self.app.sealed.notify();
                return entries;
            }
        }
    }

    /// Seals every unsealed entry, and signs the due checkpoints an hour later. Returns their number.
    pub(crate) async fn sign_checkpoints(&self) -> usize {
        self.seal().await;
        self.tick(60 * 60);
        let (cx, key) = (
            Context::system(self.app.entropy.clone()),
            &self.app.audit_key,
        );
        let signed = sign_due_checkpoints(&cx, self.app.store.as_ref(), key);
        signed.await.unwrap()
    }

    /// Seals every unsealed entry, and signs a checkpoint of the installation an hour later. Returns whether one was
    /// due.
    pub(crate) async fn sign_installation(&self) -> bool {
        self.seal().await;
        self.tick(60 * 60);
        let cx = Context::system(self.app.entropy.clone());
        let (store, key) = (self.app.store.as_ref(), &self.app.audit_key);
        let signed = sign_due_installation_checkpoint(&cx, store, key).await;
        signed.unwrap()
    }

    /// Returns all seals, in the order of their positions.
    pub(crate) async fn seals(&self) -> Vec<AuditSeal> {
        let mut uow = self.app.store.begin(Mode::Read).await.unwrap();
        let seals = uow.repositories(RecordKey::for_tests()).audit_seals();
        let all = AuditSealQuery::Positions(0, i64::MAX);
        let all = seals.list(Within::Installation, &all, 100_000).await;
        all.unwrap()
            .into_iter()
            .map(|seal| seal.into_inner())
            .collect()
    }

    /// Returns the result of a verification that this caller requests.
    pub(crate) async fn verify(&self, caller: &Caller, query: &str) -> Value {
        let path = format!("/api/v1/audit/verify?{query}");
        self.registry.get(caller, &path).await.expect(200).json
    }

    /// Inserts audit entries unchanged.
    pub(crate) async fn write_entries(&self, entries: &[AuditEntry]) {
        for entries in entries.chunks(500) {
            let written = transact(self.app.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    let repositories = uow.repositories(RecordKey::for_tests());
                    let audit = repositories.audit_entries();
                    audit.insert_many(entries.to_vec()).await?;
                    Ok(())
                })
            });
            written.await.unwrap();
        }
    }

    /// Changes rows directly, bypassing the protection of append-only tables. Returns the number of changed rows.
    pub(crate) async fn tamper<R: Tabular>(
        &self,
        filter: Filter,
        set: &[(&'static str, Column)],
    ) -> u64 {
        self.store_location.drop_guards().await;
        let mut tx = self.rows.begin(Mode::Write).await.unwrap();
        let changed = tx
            .update(unprotected_table::<R>(), &filter, set)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        changed
    }

    /// Deletes rows directly, bypassing the protection of append-only tables. Returns the number of deleted rows.
    pub(crate) async fn erase<R: Tabular>(&self, filter: Filter) -> u64 {
        self.store_location.drop_guards().await;
        let mut tx = self.rows.begin(Mode::Write).await.unwrap();
        let erased = tx.delete(unprotected_table::<R>(), &filter).await.unwrap();
        tx.commit().await.unwrap();
        erased
    }

    /// Inserts a record that no use case wrote.
    pub(crate) async fn forge<R: Tabular>(&self, record: &R) {
        let mut row: Row = record.to_row();
        row.push(Column::Int(1));
        let mut tx = self.rows.begin(Mode::Write).await.unwrap();
        tx.insert(R::TABLE, row).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// Returns the table of a record without its append-only protection.
fn unprotected_table<R: Tabular>() -> &'static Table {
    let table = R::TABLE;
    Box::leak(Box::new(Table {
        name: table.name,
        columns: table.columns,
        uniques: table.uniques,
        indexes: table.indexes,
        parent: table.parent,
        append_only: false,
        archive: None,
    }))
}

/// A row version that differs from the 1 of a newly inserted row.
pub(crate) const NEXT_ROW_VERSION: (&str, Column) = (VERSION, Column::Int(2));

/// Returns the time of the `n`-th entry.
fn entry_time(n: i64) -> Timestamp {
    Timestamp::from_seconds(1_800_000_000 + n / 3)
}

/// Returns the id of the `n`-th entry. Like a generated id, it starts with the time.
pub(crate) fn entry_id(n: i64) -> String {
    format!("{}-7000-8000-{n:012}", first_uuid(entry_time(n)))
}

/// Returns the `n`-th entry of the change stream, for this action. It belongs to the installation if `platform` is
/// `None`.
pub(crate) fn audit_entry(n: i64, platform: Option<&str>, action: &str) -> AuditEntry {
    AuditEntry {
        id: AuditId::from_text(&entry_id(n)).unwrap(),
        stream: AuditStream::Changes,
        platform_id: platform.and_then(PlatformId::parse),
        actor_id: "olga".to_owned(),
        actor_type: "user".to_owned(),
        action: action.to_owned(),
        entity_type: core_domain::shared::first_segment(action).to_owned(),
        entity_id: format!("thing-{}", n % 5),
        before: None,
        after: Some(JsonText::of(&json!({ "n": n }))),
        metadata: JsonText::of(&json!({ "requestId": "r" })),
        created_at: entry_time(n),
    }
}
