//! Connections over real sockets: what slow, silent and many clients may do, while others are served.

mod crowded;
mod descriptors;
mod end;
mod many;
mod slow_readers;
mod slow_senders;
mod unread_bodies;
