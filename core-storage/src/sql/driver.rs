//! The unit of work on a typed driver: one macro, expanded once per database.

/// Implements a unit of work for a database. `$lock` is the locking clause of a select; `$now` is the statement that reads
/// the database's clock (`None`: its clock is never used).
macro_rules! sql_driver {
    ($db:ty, lock: $lock:literal, now: $now:expr, files: $files:expr) => {
        /// Where statements run.
        enum Connection {
            Transaction(sqlx::Transaction<'static, $db>),
            Bare(sqlx::pool::PoolConnection<$db>),
        }

        /// A unit of work. A transaction that is dropped is rolled back by the driver.
        struct SqlTx {
            connection: Connection,
            clock: Option<Arc<dyn Clock>>,
        }

        type DbConnection = <$db as sqlx::Database>::Connection;
        type DbRow = <$db as sqlx::Database>::Row;

        /// The only use of text as a statement: the renderer made it of quoted names and `$n` alone.
        fn bind(
            statement: &Statement,
        ) -> sqlx::query::Query<'static, $db, <$db as sqlx::Database>::Arguments> {
            let mut query = sqlx::query(sqlx::AssertSqlSafe(statement.text.clone()));
            for (kind, value) in &statement.binds {
                query = match (kind, value) {
                    (_, Value::Bool(yes)) => query.bind(*yes),
                    (_, Value::Int(number)) => query.bind(*number),
                    (_, Value::Text(text)) => query.bind(text.to_string()),
                    // Postgres needs the type of a NULL.
                    (Type::Bool, Value::Null) => query.bind(None::<bool>),
                    (Type::Int, Value::Null) => query.bind(None::<i64>),
                    (Type::Text | Type::Json, Value::Null) => query.bind(None::<String>),
                };
            }
            query
        }

        fn value(row: &DbRow, at: usize, kind: Type) -> Result<Value, StoreError> {
            let value = match kind {
                Type::Bool => row
                    .try_get::<Option<bool>, _>(at)
                    .map(|v| v.map(Value::Bool)),
                Type::Int => row.try_get::<Option<i64>, _>(at).map(|v| v.map(Value::Int)),
                Type::Text | Type::Json => row
                    .try_get::<Option<&str>, _>(at)
                    .map(|v| v.map(Value::text)),
            };
            Ok(value.map_err(failure)?.unwrap_or(Value::Null))
        }

        impl SqlTx {
            fn connection(&mut self) -> &mut DbConnection {
                match &mut self.connection {
                    Connection::Transaction(transaction) => &mut *transaction,
                    Connection::Bare(connection) => &mut *connection,
                }
            }

            async fn execute(&mut self, statement: &Statement) -> Result<u64, StoreError> {
                let done = bind(statement).execute(self.connection()).await;
                Ok(done.map_err(failure)?.rows_affected())
            }

            async fn fetch(
                &mut self,
                statement: &Statement,
                kinds: &[Type],
            ) -> Result<Vec<Row>, StoreError> {
                let rows = bind(statement).fetch_all(self.connection()).await;
                rows.map_err(failure)?
                    .iter()
                    .map(|row| {
                        let kinds = kinds.iter().enumerate();
                        kinds.map(|(at, kind)| value(row, at, *kind)).collect()
                    })
                    .collect()
            }

            async fn rows_of(
                &mut self,
                table: &Table,
                statement: &Statement,
            ) -> Result<Vec<Row>, StoreError> {
                let kinds: Vec<Type> = table.columns.iter().map(|column| column.kind).collect();
                self.fetch(statement, &kinds).await
            }

            async fn number(&mut self, statement: &Statement) -> Result<i64, StoreError> {
                let rows = self.fetch(statement, &[Type::Int]).await?;
                let number = rows.first().and_then(|row| row.first()?.as_int());
                number.ok_or_else(|| StoreError::backend("an integer was expected"))
            }

            /// The conflict of the row with another one in a unique index, if there is one.
            async fn unique_conflict(
                &mut self,
                table: &'static Table,
                row: &Row,
            ) -> Result<Option<StoreError>, StoreError> {
                for unique in table.uniques {
                    let Some(statement) = sql::count_unique_conflicts(table, unique, row) else {
                        continue;
                    };
                    if self.number(&statement).await? > 0 {
                        let (table, index) = (table.name, unique.name);
                        return Ok(Some(StoreError::Conflict { table, index }));
                    }
                }
                Ok(None)
            }

            /// Finds the unique index that an insert would have violated.
            async fn identify_conflict(&mut self, table: &'static Table, row: &Row) -> StoreError {
                let same_key = Filter::eq(table.key(), table.value(row, table.key()).clone());
                match self.number(&sql::count(table, &same_key)).await {
                    Err(error) => return error,
                    Ok(0) => {}
                    Ok(_) => {
                        let (table, index) = (table.name, "key");
                        return StoreError::Conflict { table, index };
                    }
                }
                match self.unique_conflict(table, row).await {
                    Ok(Some(conflict)) => conflict,
                    Ok(None) => StoreError::retry(format!(
                        "a row of {} conflicts with one that is not visible yet",
                        table.name
                    )),
                    Err(error) => error,
                }
            }

            /// Looks for conflicts before an update, because a failed update aborts a transaction of Postgres.
            async fn check_update(
                &mut self,
                table: &'static Table,
                filter: &Filter,
                set: &[(&'static str, Value)],
            ) -> Result<(), StoreError> {
                let touches = |(column, _): &(&'static str, Value)| {
                    table.uniques.iter().any(|unique| unique.depends_on(column))
                };
                if !set.iter().any(touches) {
                    return Ok(());
                }
                let matching = self
                    .rows_of(table, &sql::select_matching(table, filter))
                    .await?;
                for mut row in matching {
                    for (column, value) in set {
                        if let Some(stored) =
                            table.column_index(column).and_then(|at| row.get_mut(at))
                        {
                            *stored = value.clone();
                        }
                    }
                    if let Some(conflict) = self.unique_conflict(table, &row).await? {
                        return Err(conflict);
                    }
                }
                Ok(())
            }
        }

        #[async_trait]
        impl RowTx for SqlTx {
            async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
                match self.execute(&sql::insert(table, &row)).await? {
                    0 => Err(self.identify_conflict(table, &row).await),
                    _ => Ok(()),
                }
            }

            async fn insert_many(
                &mut self,
                table: &'static Table,
                rows: Vec<Row>,
            ) -> Result<(), StoreError> {
                for row in rows {
                    self.insert(table, row).await?;
                }
                Ok(())
            }

            async fn replace_many(
                &mut self,
                table: &'static Table,
                rows: Vec<Replacement>,
            ) -> Result<(), StoreError> {
                for Replacement { old, new } in rows {
                    let at = |name: &str| table.value(&old, name).clone();
                    let filter = Filter::eq(table.key(), at(table.key()))
                        .and(Filter::eq(VERSION, at(VERSION)));
                    let columns = table.columns.iter().zip(old.iter().zip(new));
                    let changed = columns.filter(|(_, (old, new))| *old != new);
                    let set: Vec<_> = changed
                        .map(|(column, (_, new))| (column.name, new))
                        .collect();
                    match self.update(table, &filter, &set).await {
                        Ok(0) => {
                            let what = format!("a row of {} was changed in between", table.name);
                            return Err(StoreError::retry(what));
                        }
                        Err(conflict @ StoreError::Conflict { .. }) => {
                            return Err(StoreError::retry(conflict));
                        }
                        outcome => outcome?,
                    };
                }
                Ok(())
            }

            async fn update(
                &mut self,
                table: &'static Table,
                filter: &Filter,
                set: &[(&'static str, Value)],
            ) -> Result<u64, StoreError> {
                self.check_update(table, filter, set).await?;
                self.execute(&sql::update(table, filter, set)).await
            }

            async fn delete(
                &mut self,
                table: &'static Table,
                filter: &Filter,
            ) -> Result<u64, StoreError> {
                self.execute(&sql::delete(table, filter)).await
            }

            async fn select(
                &mut self,
                select: &Select,
                visit: Visit<'_>,
            ) -> Result<(), StoreError> {
                let rows = self.rows_of(select.table, &sql::select(select, "")).await?;
                rows.iter().try_for_each(|row| visit(row))
            }

            async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
                let statement = sql::select(select, $lock);
                let rows = self.rows_of(select.table, &statement).await?;
                rows.iter().try_for_each(|row| visit(row))
            }

            async fn count(
                &mut self,
                table: &'static Table,
                filter: &Filter,
            ) -> Result<u64, StoreError> {
                let count = self.number(&sql::count(table, filter)).await?;
                Ok(u64::try_from(count).unwrap_or(0))
            }

            async fn sum(
                &mut self,
                table: &'static Table,
                column: &'static str,
                group: &'static str,
                filter: &Filter,
            ) -> Result<Vec<(Value, i64)>, StoreError> {
                let kinds = [table.column(group)?.kind, Type::Int];
                let statement = sql::sum(table, column, group, filter);
                let rows = self.fetch(&statement, &kinds).await?;
                let pair = |row: Row| {
                    let mut values = row.into_iter();
                    Some((values.next()?, values.next()?.as_int()?))
                };
                Ok(rows.into_iter().filter_map(pair).collect())
            }

            async fn walk(
                &mut self,
                table: &'static Table,
                key: &str,
                direction: Direction,
                depth: u32,
                filter: &Filter,
                visit: Visit<'_>,
            ) -> Result<(), StoreError> {
                let statement = sql::walk(table, key, direction, depth, filter);
                let rows = self.rows_of(table, &statement).await?;
                rows.iter().try_for_each(|row| visit(row))
            }

            async fn now(&mut self) -> Result<Timestamp, StoreError> {
                if let Some(clock) = &self.clock {
                    return Ok(clock.now());
                }
                let now: Option<&'static str> = $now;
                let Some(text) = now else {
                    return Err(StoreError::backend("there is no clock"));
                };
                let millis = sqlx::query_scalar::<_, i64>(text)
                    .fetch_one(self.connection())
                    .await
                    .map_err(failure)?;
                Ok(Timestamp::from_millis(millis))
            }

            async fn commit(self: Box<Self>) -> Result<(), StoreError> {
                match self.connection {
                    Connection::Transaction(transaction) => {
                        transaction.commit().await.map_err(commit_failure)
                    }
                    Connection::Bare(_) => Ok(()),
                }
            }

            async fn rollback(self: Box<Self>) {
                if let Connection::Transaction(transaction) = self.connection {
                    // When a rollback fails, the connection is closed, and the transaction with it.
                    let _ = transaction.rollback().await;
                }
            }
        }

        /// Brings the schema up to date inside the given transaction, which holds the lock on it.
        async fn migrate(
            transaction: &mut DbConnection,
            dialect: Dialect,
            extra: &[&'static Table],
        ) -> Result<(), StoreError> {
            sqlx::raw_sql(migrations::MIGRATIONS_TABLE)
                .execute(&mut *transaction)
                .await
                .map_err(failure)?;
            let done: Vec<(String, String)> =
                sqlx::query_as("SELECT \"name\", \"checksum\" FROM \"schema_migrations\"")
                    .fetch_all(&mut *transaction)
                    .await
                    .map_err(failure)?;
            let text: fn(&migrations::Migration) -> &'static str = $files;
            for migration in migrations::pending(&done, text)? {
                sqlx::raw_sql(text(migration))
                    .execute(&mut *transaction)
                    .await
                    .map_err(failure)?;
                sqlx::query("INSERT INTO \"schema_migrations\" VALUES ($1, $2)")
                    .bind(migration.name)
                    .bind(migrations::checksum(text(migration)))
                    .execute(&mut *transaction)
                    .await
                    .map_err(failure)?;
            }
            for table in extra {
                let text = ddl::create(table, dialect, true);
                sqlx::raw_sql(sqlx::AssertSqlSafe(text))
                    .execute(&mut *transaction)
                    .await
                    .map_err(failure)?;
            }
            Ok(())
        }
    };
}

pub(crate) use sql_driver;
