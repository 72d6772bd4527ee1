//! Embeds the suite in a program with a table of its own. The row of a customer and the platform of the customer are
//! created in one transaction: both exist, or neither.
//!
//! `cargo run -p core-embed --features customers --bin customers -- app.sqlite` uses a SQLite file, and `.. --
//! postgres://core@localhost/app` a Postgres database, over a pool of sqlx. The program adds a customer, and then one whose
//! row is refused, and prints what exists afterwards.
//!
//! # What to look at
//! - **The body may run more than once.** A unit that conflicts with a concurrent one is rolled back, together with the
//!   statements of the program, and runs again. So the body sends nothing and counts nothing outside of the unit.
//! - **An error undoes all of it.** The body returns the error of a statement with `?`. The unit cannot be used after it.
//! - **Own tables, own schema.** On Postgres the tables of the suite are in the schema `core_suite`. The statements of the
//!   program see the search path of the pool. On SQLite the names of the tables must differ from those of the suite.

use core_domain::access::authorize_organization;
use core_domain::kernel::{Name, Slug, permission};
use core_domain::registry::{CreatePlatform, Tier};
use core_domain::use_case::registry::platform;
use core_suite::units::rusqlite::{Connection, params};
use core_suite::units::sqlx::postgres::PgPoolOptions;
use core_suite::units::sqlx::{PgPool, query, query_scalar, raw_sql};
use core_suite::units::{Error, UnitOfWork, Units, enlist_sqlite, enlist_sqlx};
use core_suite::{Suite, SuiteBuilder};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The table of the program. An email address has at most one customer.
const CUSTOMERS: &str = "CREATE TABLE IF NOT EXISTS customers \
     (email TEXT NOT NULL PRIMARY KEY, platform_id TEXT NOT NULL)";

/// The database that the program and the suite share.
#[derive(Clone)]
enum Database {
    Sqlite(String),
    Postgres(PgPool),
}

impl Database {
    /// Opens the database, and creates the table of the program if it is missing.
    async fn open(address: &str) -> Result<Self, Failure> {
        if address.starts_with("postgres://") {
            let pool = PgPoolOptions::new().connect(address).await?;
            raw_sql(CUSTOMERS).execute(&pool).await?;
            return Ok(Self::Postgres(pool));
        }
        // The suite holds the file from now on, so the program uses a connection of its own only before that.
        Connection::open(address)?.execute_batch(CUSTOMERS)?;
        Ok(Self::Sqlite(address.to_owned()))
    }

    /// Stores the records of the suite here.
    fn suite(&self) -> SuiteBuilder {
        let builder = Suite::builder();
        match self {
            Self::Sqlite(file) => builder.sqlite(file),
            Self::Postgres(pool) => {
                let builder = builder.sqlx(pool.clone());
                builder
                    .settings(|settings| settings.postgres.schema = Some("core_suite".to_owned()))
            }
        }
    }

    /// Inserts the row of a customer, in a unit of work of the suite.
    async fn insert(
        &self,
        unit: &mut dyn UnitOfWork,
        email: &str,
        platform: &str,
    ) -> Result<(), Error> {
        match self {
            Self::Sqlite(_) => {
                const INSERT: &str = "INSERT INTO customers VALUES (?1, ?2)";
                enlist_sqlite(unit, |own| own.execute(INSERT, params![email, platform])).await?;
            }
            Self::Postgres(_) => {
                enlist_sqlx(unit, |own, _| {
                    let insert = query("INSERT INTO customers VALUES ($1, $2)");
                    let insert = insert.bind(email).bind(platform);
                    Box::pin(async move { insert.execute(own).await })
                })
                .await?;
            }
        }
        Ok(())
    }

    /// Returns the number of customers.
    async fn count(&self) -> Result<i64, Failure> {
        const COUNT: &str = "SELECT COUNT(*) FROM customers";
        Ok(match self {
            Self::Sqlite(file) => Connection::open(file)?.query_row(COUNT, [], |row| row.get(0))?,
            Self::Postgres(pool) => query_scalar(COUNT).fetch_one(pool).await?,
        })
    }
}

/// Creates a platform for a customer, and the row of the customer.
async fn add(units: &Units, database: &Database, email: &str, slug: &str) -> Result<(), Error> {
    let name = Name::parse(slug).map_err(|error| Error::Unavailable(error.to_string()))?;
    let slug = Slug::parse(slug).map_err(|error| Error::Unavailable(error.to_string()))?;
    let command = CreatePlatform {
        name,
        slug,
        tier: Tier::Starter,
        cf_account_id: None,
        repo_name: None,
    };
    let command = &command;
    let add = units.transact(|unit, _| {
        Box::pin(async move {
            let cx = units.context();
            let scope = authorize_organization::<permission::PlatformCreate>(cx, unit).await?;
            let platform = platform::create(cx, &scope, unit, command.clone()).await?;
            database.insert(unit, email, platform.id.as_str()).await
        })
    });
    add.await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let address = std::env::args().nth(1);
    let address = address.ok_or("name a SQLite file or the URL of a Postgres database")?;
    let database = Database::open(&address).await?;
    let suite = database.suite().build().await?;
    let units = suite.units();
    add(&units, &database, "ada@example.org", "engines").await?;
    say(&format!("customers: {}", database.count().await?));
    // The address has a customer already. Its platform is not created either.
    let refused = add(&units, &database, "ada@example.org", "looms").await;
    let Err(error) = refused else {
        return Err("two customers have the same address".into());
    };
    say(&format!("refused: {error}"));
    say(&format!("customers: {}", database.count().await?));
    add(&units, &database, "joseph@example.org", "looms").await?;
    say(&format!("customers: {}", database.count().await?));
    suite.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn say(line: &str) {
    println!("{line}");
}
