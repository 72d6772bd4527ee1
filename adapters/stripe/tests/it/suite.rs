//! The payments suite on Stripe and on the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Clock, Entropy, Timestamp};
use core_domain::port::Payments;
use core_domain::testing::payments_suite::{PaymentsWorld, run};
use core_domain::testing::{ManualClock, SeededEntropy};
use core_domain::use_case::billing::ledger::Ledger;
use core_storage::memory::{MemoryConfig, open};
use core_stripe_fake::ChargeEnd;

use crate::world::World;

struct StripeWorld {
    world: World,
    entropy: SeededEntropy,
}

#[async_trait]
impl PaymentsWorld for StripeWorld {
    fn payments(&self) -> &dyn Payments {
        &self.world.stripe
    }

    fn entropy(&self) -> &dyn Entropy {
        &self.entropy
    }

    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn advance(&self, by: Duration) {
        self.world.advance(by);
    }

    fn decline_charges(&self, method: &str) -> bool {
        let end = ChargeEnd::Declined {
            error_code: "card_declined".to_owned(),
            decline_code: None,
            advice_code: None,
        };
        self.world.fake.set_charge_end(method, end);
        true
    }
}

struct LedgerWorld {
    ledger: Ledger,
    clock: Arc<ManualClock>,
    entropy: SeededEntropy,
}

#[async_trait]
impl PaymentsWorld for LedgerWorld {
    fn payments(&self) -> &dyn Payments {
        &self.ledger
    }

    fn entropy(&self) -> &dyn Entropy {
        &self.entropy
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    // The card decides.
    fn decline_charges(&self, _: &str) -> bool {
        false
    }
}

#[tokio::test]
async fn stripe_passes_the_suite() {
    let world = StripeWorld {
        world: World::new().await,
        entropy: SeededEntropy::new(7),
    };
    run(&world).await;
}

#[tokio::test]
async fn the_ledger_passes_the_suite() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_793_491_200)));
    let own: Arc<ManualClock> = Arc::clone(&clock);
    let config = MemoryConfig {
        clock: own,
        cursor_key: [7; 32].into(),
    };
    let entropy = Arc::new(SeededEntropy::new(7));
    let world = LedgerWorld {
        ledger: Ledger::new(open(config), entropy, true),
        clock,
        entropy: SeededEntropy::new(8),
    };
    run(&world).await;
}
