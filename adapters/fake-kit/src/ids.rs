//! The ids of objects. They are deterministic: equal in every run.

/// A generator of ids that look random but are derived from a counter.
#[derive(Debug, Default)]
pub struct Ids(u64);

impl Ids {
    /// Returns a new id of 32 hexadecimal digits.
    pub fn hex(&mut self) -> String {
        self.0 += 1;
        blake3::hash(&self.0.to_le_bytes()).to_hex()[..32].to_owned()
    }

    /// Returns a new UUID of version 4.
    pub fn uuid(&mut self) -> String {
        let hex = self.hex();
        let (a, b, c, d, e) = (
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..],
        );
        format!("{a}-{b}-4{c}-8{d}-{e}")
    }

    /// Returns a new id with a prefix, for example `cus_` and 24 hexadecimal digits.
    pub fn with_prefix(&mut self, prefix: &str) -> String {
        format!("{prefix}_{}", &self.hex()[..24])
    }
}
