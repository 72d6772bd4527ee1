//! Who may import whom, who may touch a record, where tests live, and how large a file may get.

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
