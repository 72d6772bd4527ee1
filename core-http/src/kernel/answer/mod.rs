//! TODO

pub(super) mod envelope;
pub(super) mod feed;
pub(super) mod jwk;
pub(super) mod lists;
pub(super) mod long_poll;
pub(super) mod media;
pub(super) mod reply;
