//! The classes of requests, and how many of each there are.

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Looks at a platform, its entities, or their session.
    Read,
    /// Creates an entity, or gives one another name.
    Write,
    /// Signs in with a password.
    SignIn,
    /// Queues the job that sees to a platform's infrastructure.
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

    /// How many of 1,000 requests are of it.
    const fn share(self) -> u64 {
        match self {
            Self::Read => 887,
            Self::Write => 100,
            Self::SignIn => 10,
            Self::Job => 2,
            Self::Deploy => 1,
        }
    }

    /// The class of the request with this number: the shares are exact in every 1,000, and evenly spread.
    pub(crate) fn of(number: u64) -> Self {
        // A prime: each remainder comes once.
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
