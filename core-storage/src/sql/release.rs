//! The numbers of releases, which tell the servers that can use a database.

use std::fmt;

/// A release of the suite: major, minor and patch number. A later release is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Release {
    /// The release of the migrations that name none.
    pub(super) const FIRST: Self = Self {
        major: 0,
        minor: 1,
        patch: 0,
    };

    /// Returns the release of this program.
    #[must_use]
    pub fn current() -> Self {
        Self::parse(env!("CORE_STORAGE_RELEASE")).unwrap_or(Self::FIRST)
    }

    /// Parses three numbers with dots between them, such as `0.2.0`. A suffix for a preview, such as `-rc.1`, is ignored.
    /// Returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split_once('-').map_or(text, |(numbers, _)| numbers);
        let mut numbers = numbers.split('.').map(|number| number.parse().ok());
        let release = Self {
            major: numbers.next()??,
            minor: numbers.next()??,
            patch: numbers.next()??,
        };
        numbers.next().is_none().then_some(release)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_three_numbers_and_compare_by_number() {
        let release = |text| Release::parse(text).unwrap();
        assert!(release("0.10.0") > release("0.9.9"));
        assert!(release("1.0.0") > release("0.99.0"));
        assert_eq!(release("1.2.3-rc.1"), release("1.2.3"));
        assert_eq!(release("1.2.3").to_string(), "1.2.3");
        for other in [
            "", "1", "1.2", "1.2.3.4", "a.b.c", "1.2.x", "-1.2.3", "1..3",
        ] {
            assert_eq!(Release::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_current_release_is_that_of_the_package() {
        assert_eq!(Release::current().to_string(), env!("CARGO_PKG_VERSION"));
    }
}
