//! Rules for the source code: allowed imports, access to records, the location of tests, and the size of files.

mod crates;
mod fields;
mod files;
mod imports;
mod layers;
mod randomness;
mod records;
mod secrets;
mod sources;
mod tokens;
