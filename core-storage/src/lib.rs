//! The stores of the Platform Control API Suite: one row engine contract, one description per record; memory, SQLite and Postgres.
