//! Connections over real sockets: slow, silent and many clients do not prevent others from being served.

mod crowded;
mod descriptors;
mod end;
mod many;
mod slow_readers;
mod slow_senders;
mod unread_bodies;
