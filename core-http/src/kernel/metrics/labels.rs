//! The label sets of series.

use std::fmt;

use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};

/// The labels of a series: names of the definition, and a value for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LabelSet<const N: usize> {
    names: [&'static str; N],
    /// Escaped, because the encoder writes the values unchanged.
    values: [String; N],
}

impl<const N: usize> LabelSet<N> {
    pub(super) fn new(names: [&'static str; N], values: [&str; N]) -> Self {
        Self {
            names,
            values: values.map(escape),
        }
    }
}

impl<const N: usize> EncodeLabelSet for LabelSet<N> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let mut labels = self.names.iter().zip(&self.values);
        labels.try_for_each(|(name, value)| (*name, value.as_str()).encode(encoder.encode_label()))
    }
}

/// Escapes the characters that would end a label value.
fn escape(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    escaped.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_end_its_label() {
        assert_eq!(escape("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
