//! The proof of whose a hostname is: a text in the DNS that only the hostname's holder can create.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Hostname;
use crate::kernel::{Timestamp, text_enum};

/// The label before a hostname in the name of its proof.
pub(super) const PROOF_LABEL: &str = "_core-verification";

/// The longest name that can be looked up.
pub(super) const MAX_NAME_LENGTH: usize = 253;

/// How long DNS records are looked up before a hostname is given up.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The shortest and the longest pause between two look-ups.
const SHORTEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

text_enum! {
    /// The type of a record in the DNS.
    pub enum DnsRecordType {
        /// Another name for a name.
        Cname = "CNAME",
        /// Text.
        Txt = "TXT",
    }
}

/// A record that the holder of a hostname still has to create in the DNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MissingRecord {
    /// Its type. In place of a CNAME, addresses that equal those of its value will do, where a name can have no CNAME.
    #[serde(rename = "type")]
    pub record_type: DnsRecordType,
    /// Its name, without the dot of the root.
    pub name: String,
    /// What it must say.
    pub value: String,
}

/// Returns the text that proves a hostname. `random` makes it differ from all others.
pub(super) fn proof_text(random: &str) -> String {
    format!("core-verification={random}")
}

/// Returns the name of the proof, which is below the hostname. The proof of a wildcard is below its base.
pub(super) fn proof_name(hostname: &Hostname) -> String {
    format!("{PROOF_LABEL}.{}", hostname.base())
}

/// Returns the DNS record that proves a hostname.
pub(super) fn proof_record(hostname: &Hostname, proof: &str) -> MissingRecord {
    MissingRecord {
        record_type: DnsRecordType::Txt,
        name: proof_name(hostname),
        value: proof.to_owned(),
    }
}

/// Returns when DNS records are looked up again: after 30 s, and then as long as they were looked up so far and 30 s more,
/// which doubles every pause, up to an hour.
pub(super) fn next_look_up(since: Timestamp, now: Timestamp) -> Timestamp {
    now.plus((now.since(since) + SHORTEST_PAUSE).min(LONGEST_PAUSE))
}

/// Tells whether DNS records were missing for so long that the hostname is given up: for seven days.
pub(super) fn is_given_up(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_some_and(|since| now.since(since) >= VERIFICATION_TIMEOUT)
}

/// Returns since when a proof has been missing, after another look-up.
pub(super) fn missing_since(
    before: Option<Timestamp>,
    is_there: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    (!is_there).then(|| before.unwrap_or(now))
}
