//! Infrastructure on this machine: SQLite files, bucket folders, a static-site host and stored worker bundles.
