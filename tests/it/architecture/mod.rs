//! Rules for the source code: allowed imports, access to records, the location of tests, the size of files, and the
//! language of texts.

mod crates;
mod fields;
mod files;
mod gateway_contract;
mod imports;
mod layers;
mod names;
mod prose;
mod randomness;
mod records;
mod secrets;
mod sources;
mod tokens;
