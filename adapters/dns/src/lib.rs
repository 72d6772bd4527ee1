//! DNS look-ups, through the name servers of the operating system or through configured ones. Results are not cached.
//!
//! ```
//! use core_dns::HickoryDns;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dns = HickoryDns::new(&["192.0.2.53".to_owned()], std::time::Duration::from_secs(5))?;
//! assert!(HickoryDns::new(&["ns.example.org".to_owned()], std::time::Duration::from_secs(5)).is_err());
//! # drop(dns);
//! # Ok(()) }
//! ```

mod resolver;
#[cfg(feature = "testing")]
pub mod testing;

pub use resolver::{HickoryDns, NameServerError};
