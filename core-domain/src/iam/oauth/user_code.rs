//! The code that a person reads on one device and enters on another.

use crate::kernel::{Entropy, TextValue, arbitrary};

/// Consonants alone, so that no code is a word (RFC 8628, section 6.1); 8 of them are 34 bits.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// How many letters stand before and behind the dash.
const HALF: usize = 4;

/// A user code, `XXXX-XXXX`.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct UserCode(String);

// The code stays out of logs.
impl std::fmt::Debug for UserCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserCode(..)")
    }
}

impl UserCode {
    /// A new code, each letter uniformly random.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut letters = Vec::with_capacity(2 * HALF);
        let mut buffer = [0_u8; 16];
        while letters.len() < 2 * HALF {
            entropy.fill(&mut buffer);
            // 240 = 12 * 20: larger bytes would favour the first letters.
            let fair = buffer.iter().filter(|b| **b < 240);
            letters.extend(fair.map(|b| char::from(LETTERS[usize::from(b % 20)])));
        }
        letters.truncate(2 * HALF);
        Self::of(&letters)
    }

    /// Reads a code as people write it: case, spaces and dashes do not matter.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let written = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let letters: Vec<char> = written.map(|c| c.to_ascii_uppercase()).take(9).collect();
        let known = |c: &char| u8::try_from(*c).is_ok_and(|byte| LETTERS.contains(&byte));
        (letters.len() == 2 * HALF && letters.iter().all(known)).then(|| Self::of(&letters))
    }

    fn of(letters: &[char]) -> Self {
        let (first, second) = letters.split_at(HALF.min(letters.len()));
        let halves = [first, second].map(|half| half.iter().collect::<String>());
        Self(halves.join("-"))
    }
}

impl TextValue for UserCode {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::read(text).filter(|code| code.0 == text)
    }
}

arbitrary!(UserCode as "[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::SeededEntropy;

    proptest! {
        #[test]
        fn a_code_is_read_however_it_is_written(seed: u64, spaces in "[ \t-]{0,3}", lower: bool) {
            let code = UserCode::generate(&SeededEntropy::new(seed));
            prop_assert_eq!(UserCode::from_text(code.as_text()), Some(code.clone()));
            let spread: String = code.as_text().chars().map(|c| format!("{c}{spaces}")).collect();
            let written = if lower { spread.to_lowercase() } else { spread };
            prop_assert_eq!(UserCode::read(&written), Some(code));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = UserCode::read(&text);
        }
    }

    #[test]
    fn vowels_digits_and_other_lengths_are_no_code() {
        for text in [
            "",
            "BCDF-GHJ",
            "BCDF-GHJKL",
            "ACDF-GHJK",
            "BCDF-GHJ0",
            "BCDFĞGHJK",
        ] {
            assert_eq!(UserCode::read(text), None, "{text}");
        }
    }
}
