//! The three stores, fresh for a test.

use core_storage::testing::TestDatabase;
use core_suite::{Suite, SuiteBuilder};
use tempfile::TempDir;

/// A suite to be built over a fresh store, and what must live as long as it.
pub(crate) struct Fresh {
    pub(crate) builder: SuiteBuilder,
    _folder: TempDir,
    _database: Option<TestDatabase>,
}

fn fresh(
    choose: impl FnOnce(SuiteBuilder, &TempDir) -> SuiteBuilder,
    database: Option<TestDatabase>,
) -> Fresh {
    let folder = tempfile::tempdir().unwrap();
    let builder = Suite::builder().data_folder(folder.path());
    Fresh {
        builder: choose(builder, &folder),
        _folder: folder,
        _database: database,
    }
}

pub(crate) fn memory() -> Fresh {
    fresh(|builder, _| builder.in_memory(), None)
}

pub(crate) fn sqlite() -> Fresh {
    fresh(
        |builder, folder| builder.sqlite(folder.path().join("core.sqlite")),
        None,
    )
}

pub(crate) async fn postgres() -> Fresh {
    let database = core_storage::testing::postgres().await;
    let url = database.url.clone();
    fresh(|builder, _| builder.postgres(url), Some(database))
}
