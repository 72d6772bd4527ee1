//! What holds for the rows of any service: shown on the stack registry's, or on rows made for the purpose.

mod answers;
mod body_times;
mod health;
mod idempotency;
mod limits;
mod requests;
mod rows;
mod streams;
mod table;
mod trust;
