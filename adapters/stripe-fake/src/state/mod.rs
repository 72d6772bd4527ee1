//! The objects of the account.

pub(crate) mod customer;
pub(crate) mod endpoint;
pub(crate) mod event;
pub(crate) mod invoice;
pub(crate) mod object;
pub(crate) mod payment_intent;
pub(crate) mod payment_method;
pub(crate) mod refund;
pub(crate) mod setup_intent;

use core_fake_kit::Ids;
use serde_json::Value;

use self::customer::Customer;
use self::endpoint::Endpoint;
use self::event::Event;
use self::invoice::Invoice;
use self::object::Origin;
use self::payment_intent::PaymentIntent;
use self::payment_method::PaymentMethod;
use self::refund::Refund;
use self::setup_intent::SetupIntent;
use crate::clock::Clock;
use crate::envelope::Refusal;
use crate::idempotency::Keys;
use crate::settings::Settings;

/// The objects of the account. Lists are in the order of creation.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) keys: Keys,
    pub(crate) customers: Vec<Customer>,
    pub(crate) setup_intents: Vec<SetupIntent>,
    pub(crate) payment_methods: Vec<PaymentMethod>,
    pub(crate) payment_intents: Vec<PaymentIntent>,
    pub(crate) invoices: Vec<Invoice>,
    pub(crate) refunds: Vec<Refund>,
    pub(crate) events: Vec<Event>,
    pub(crate) endpoints: Vec<Endpoint>,
    /// The number of events that were handed to the sender of webhooks.
    pub(crate) handed_over: usize,
}

/// Finds an object of a list by its id. `$kind` is its name in messages.
macro_rules! finders {
    ($($find:ident, $find_mut:ident, $list:ident, $of:ty, $kind:literal;)*) => {
        impl State {$(
            pub(crate) fn $find(&self, id: &str, param: &str) -> Result<&$of, Refusal> {
                let found = self.$list.iter().find(|own| own.id == id);
                found.ok_or_else(|| Refusal::missing($kind, id, param))
            }

            pub(crate) fn $find_mut(&mut self, id: &str, param: &str) -> Result<&mut $of, Refusal> {
                let found = self.$list.iter_mut().find(|own| own.id == id);
                found.ok_or_else(|| Refusal::missing($kind, id, param))
            }
        )*}
    };
}

finders! {
    customer, customer_mut, customers, Customer, "customer";
    setup_intent, setup_intent_mut, setup_intents, SetupIntent, "setupintent";
    payment_method, payment_method_mut, payment_methods, PaymentMethod, "PaymentMethod";
    payment_intent, payment_intent_mut, payment_intents, PaymentIntent, "payment_intent";
    invoice, invoice_mut, invoices, Invoice, "invoice";
    refund, refund_mut, refunds, Refund, "refund";
}

impl State {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            clock: Clock::new(settings.now, settings.runs),
            settings,
            ids: Ids::default(),
            keys: Keys::default(),
            customers: Vec::new(),
            setup_intents: Vec::new(),
            payment_methods: Vec::new(),
            payment_intents: Vec::new(),
            invoices: Vec::new(),
            refunds: Vec::new(),
            events: Vec::new(),
            endpoints: Vec::new(),
            handed_over: 0,
        }
    }

    /// Returns the id, time and mode of a new object.
    pub(crate) fn origin(&mut self, prefix: &str) -> Origin {
        Origin {
            id: self.ids.with_prefix(prefix),
            created: self.clock.now(),
            is_live: self.settings.is_live(),
        }
    }

    /// Records an event about an object.
    pub(crate) fn emit(&mut self, kind: &str, object: Value) {
        let origin = self.origin("evt");
        self.events.push(Event {
            id: origin.id,
            created: origin.created,
            is_live: origin.is_live,
            version: self.settings.event_version.clone(),
            kind: kind.to_owned(),
            object,
        });
    }

    /// Records an event about an invoice as it is now.
    pub(crate) fn emit_invoice(&mut self, kind: &str, id: &str) {
        if let Ok(object) = self.rendered_invoice(id) {
            self.emit(kind, object);
        }
    }

    pub(crate) fn rendered_invoice(&self, id: &str) -> Result<Value, Refusal> {
        let invoice = self.invoice(id, "invoice")?;
        Ok(invoice.render(self.customer(&invoice.customer, "customer").ok()))
    }
}
