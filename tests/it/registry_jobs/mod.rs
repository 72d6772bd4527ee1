//! The kinds of jobs that make and remove what platforms have, with the local provider.

mod crash;
mod holds;
mod onboarding;
mod removal;
mod setup;
mod world;
