//! The classes of requests, and their shares.

/// A class of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Reads a platform, its entities or resources, or the session.
    Read,
    /// Creates or renames an entity.
    Write,
    /// Signs in with a password.
    SignIn,
    /// Queues the job that provisions a platform.
    Job,
    /// Deploys a small site.
    Deploy,
}

impl Class {
    pub(crate) const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::SignIn,
        Self::Job,
        Self::Deploy,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::SignIn => "sign-ins",
            Self::Job => "jobs",
            Self::Deploy => "deploys",
        }
    }

    /// The share of requests, in a thousandth.
    const fn share(self) -> u64 {
        match self {
            Self::Read => 887,
            Self::Write => 100,
            Self::SignIn => 10,
            Self::Job => 2,
            Self::Deploy => 1,
        }
    }

    /// Returns the class of the request with this number. The shares are exact in every 1,000 requests, and evenly
    /// distributed.
    pub(crate) fn of(number: u64) -> Self {
        // The factor is prime, so that each remainder occurs once.
        let mut left = number.wrapping_mul(619) % 1_000;
        for class in Self::ALL {
            if left < class.share() {
                return class;
            }
            left -= class.share();
        }
        Self::Read
    }
}
