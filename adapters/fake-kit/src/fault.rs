//! Faults: scripted for matching requests, or random. Each fake has its own kinds of faults.

use std::collections::VecDeque;
use std::time::Duration;

/// The kind of a missing response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The connection is closed.
    Close,
    /// The connection stays open without any response.
    Hang,
}

/// The speed of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The body is sent in eight pieces, with this pause before each.
    Drip(Duration),
    /// The first half is sent, then nothing more.
    Stall,
}

/// Selects the requests of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    method: Option<String>,
    path: Option<Vec<String>>,
}

impl Matcher {
    /// Matches every request.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            method: None,
            path: None,
        }
    }

    /// Matches requests with a method and a path. `*` matches one segment, and `**` at the end matches any remaining
    /// segments.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            path: Some(path.split('/').skip(1).map(str::to_owned).collect()),
        }
    }

    /// Returns whether the matcher matches a request.
    #[must_use]
    pub fn matches(&self, method: &str, path: &str) -> bool {
        let method_matches = self.method.as_deref().is_none_or(|own| own == method);
        let path_matches = self.path.as_deref().is_none_or(|pattern| {
            let segments: Vec<_> = path.split('/').skip(1).collect();
            let (pattern, open) = match pattern.split_last() {
                Some((last, start)) if last == "**" => (start, true),
                _ => (pattern, false),
            };
            let lengths_fit =
                segments.len() == pattern.len() || open && segments.len() > pattern.len();
            let mut pairs = pattern.iter().zip(segments);
            lengths_fit && pairs.all(|(own, segment)| own == "*" || own == segment)
        });
        method_matches && path_matches
    }
}

/// The faults of a fake, of which some can be random.
pub trait RandomFault {
    /// Returns a random fault. It does not leave the connection open, so that no client needs a timeout.
    fn random(rng: &mut FaultRng) -> Self;
}

/// The pending faults.
#[derive(Debug)]
pub struct FaultQueue<F> {
    /// Chains of faults. Only the first fault of each chain can match a request.
    waiting: Vec<VecDeque<(Matcher, F)>>,
    /// The generator, and the percentage of requests that fail.
    random: Option<(FaultRng, u32)>,
}

impl<F> Default for FaultQueue<F> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            random: None,
        }
    }
}

impl<F: RandomFault> FaultQueue<F> {
    /// Adds a chain of faults. Each becomes active after the previous one has matched a request.
    pub fn push(&mut self, chain: impl IntoIterator<Item = (Matcher, F)>) {
        self.waiting.push(chain.into_iter().collect());
    }

    /// Makes each further request fail with this probability in percent. Equal seeds give equal faults.
    pub fn set_random(&mut self, seed: u64, percent: u32) {
        self.random = Some((FaultRng::new(seed), percent));
    }

    /// Removes all faults.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the number of pending scripted faults.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// Returns the fault of a request: the first matching scripted one, otherwise a random one.
    pub fn next(&mut self, method: &str, path: &str) -> Option<F> {
        let is_for = |(matcher, _): &(Matcher, F)| matcher.matches(method, path);
        let mut waiting = self.waiting.iter_mut();
        if let Some(chain) = waiting.find(|chain| chain.front().is_some_and(is_for)) {
            return chain.pop_front().map(|(_, fault)| fault);
        }
        let (rng, percent) = self.random.as_mut()?;
        let fails = rng.below(100) < u64::from(*percent);
        fails.then(|| F::random(rng))
    }
}

/// A random number generator with a seed: a linear congruential generator (Knuth's MMIX) of which the high bits are
/// used.
#[derive(Debug)]
pub struct FaultRng(u64);

impl FaultRng {
    const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// Returns a random number below a bound.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fault {
        Scripted(u32),
        Random(u64),
    }

    impl RandomFault for Fault {
        fn random(rng: &mut FaultRng) -> Self {
            Self::Random(rng.below(1_000))
        }
    }

    #[test]
    fn patterns_match_segments_and_open_ends() {
        let matches = |pattern, path| Matcher::new("GET", pattern).matches("GET", path);
        assert!(matches("/a/*/c", "/a/b/c"));
        assert!(!matches("/a/*", "/a/b/c"));
        assert!(matches("/a/**", "/a/b/c"));
        assert!(matches("/a/**", "/a"));
        assert!(!matches("/b/**", "/a"));
        assert!(!Matcher::new("POST", "/a").matches("GET", "/a"));
        assert!(Matcher::any().matches("DELETE", "/any/path"));
    }

    #[test]
    fn a_chain_gives_its_faults_in_order_and_lets_later_chains_pass() {
        let mut queue = FaultQueue::default();
        let first = Matcher::new("GET", "/a");
        queue.push([
            (first, Fault::Scripted(1)),
            (Matcher::any(), Fault::Scripted(2)),
        ]);
        queue.push([(Matcher::any(), Fault::Scripted(3))]);
        assert_eq!(queue.waiting(), 3);
        assert_eq!(queue.next("GET", "/b"), Some(Fault::Scripted(3)));
        assert_eq!(queue.next("GET", "/b"), None);
        assert_eq!(queue.next("GET", "/a"), Some(Fault::Scripted(1)));
        assert_eq!(queue.next("GET", "/b"), Some(Fault::Scripted(2)));
        assert_eq!(queue.waiting(), 0);
    }

    #[test]
    fn equal_seeds_give_equal_faults() {
        let draw = |seed, percent| {
            let mut queue = FaultQueue::<Fault>::default();
            queue.set_random(seed, percent);
            let faults: Vec<_> = (0..50).map(|_| queue.next("GET", "/")).collect();
            faults
        };
        assert_eq!(draw(7, 50), draw(7, 50));
        assert_ne!(draw(7, 50), draw(8, 50));
        assert!(draw(7, 0).iter().all(Option::is_none));
        assert!(draw(7, 100).iter().all(Option::is_some));
    }
}
