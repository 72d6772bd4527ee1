//! Rules for every endpoint, tested with the endpoint table and one [`Sample`](samples::Sample) per endpoint.

mod access;
mod arrangements;
mod bodies;
mod bounds;
mod contract;
mod fixture;
mod limits;
mod lists;
mod narrow_callers;
mod openapi;
mod pages;
mod plans;
mod preconditions;
mod replays;
mod routes;
mod samples;
mod unknown_ids;
