//! Rules for the endpoints of every service, tested with the stack registry or with endpoints made for the tests.

mod answers;
mod body_times;
mod health;
mod idempotency;
mod limits;
mod reference;
mod replica;
mod requests;
mod rows;
mod streams;
mod table;
mod trust;
