//! Drives a model and the services through the same steps, on one store.

use std::cell::Cell;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use core_domain::kernel::Limits;
use core_domain::testing::cases;
use proptest::prelude::{BoxedStrategy, Just, ProptestConfig, Strategy};
use proptest::test_runner::TestRunner;
use proptest_state_machine::ReferenceStateMachine;

use crate::iam::{DAY, SIGN_OUT};
use crate::world::{Answer, Backend, PASSWORD, Person, World};

/// What should be: a value that steps change. Knows nothing of how it is done.
pub(super) trait Model: Clone + Debug + Default + 'static {
    type Step: Clone + Debug + 'static;

    /// Steps that make sense now.
    fn steps(&self) -> BoxedStrategy<Self::Step>;

    /// Whether a step still makes sense, now that others before it were left out.
    fn allows(&self, step: &Self::Step) -> bool;

    fn apply(&mut self, step: &Self::Step);
}

/// What is: the services, and the people of one case.
pub(super) trait Subject: Sized {
    type Model: Model;

    /// Whether the quotas of mails are those of an installation; they have tests of their own.
    const LIMITS_MAILS: bool = false;

    async fn begin(world: Arc<World>, case: u32) -> Self;

    /// Takes the step, whose outcome must be what the model says, which has taken it already.
    async fn step(&mut self, step: &<Self::Model as Model>::Step, model: &Self::Model);

    /// Compares everything there is with the model.
    async fn check_state(&self, model: &Self::Model);
}

struct Reference<M>(PhantomData<M>);

impl<M: Model> ReferenceStateMachine for Reference<M> {
    type State = M;
    type Transition = M::Step;

    fn init_state() -> BoxedStrategy<M> {
        Just(M::default()).boxed()
    }

    fn transitions(model: &M) -> BoxedStrategy<M::Step> {
        model.steps()
    }

    fn apply(mut model: M, step: &M::Step) -> M {
        model.apply(step);
        model
    }

    fn preconditions(model: &M, step: &M::Step) -> bool {
        model.allows(step)
    }
}

/// The longest run of steps.
const STEPS: usize = 30;

/// How far the clock is set forward before each case, in seconds, so that no limit of one case is met by the next.
const PAUSE: u64 = 3 * DAY;

/// Few cases on the stores that take longer.
fn config(backend: Backend) -> ProptestConfig {
    ProptestConfig::with_cases(cases(match backend {
        Backend::Memory => 24,
        Backend::Sqlite => 8,
        Backend::Postgres => 4,
    }))
}

pub(super) fn run<S: Subject>(backend: Backend) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let world = World::on_with(backend, |app| {
        let mut limits = Limits::default();
        if !S::LIMITS_MAILS {
            limits.mail = Limits::unlimited().mail;
        }
        app.options.limits = Arc::new(limits);
    });
    let world = Arc::new(runtime.block_on(world));
    let count = Cell::new(0);
    let steps = Reference::<S::Model>::sequential_strategy(1..=STEPS);
    let outcome = TestRunner::new(config(backend)).run(&steps, |(mut model, steps, seen)| {
        count.set(count.get() + 1);
        world.tick(PAUSE);
        runtime.block_on(async {
            let mut subject = S::begin(Arc::clone(&world), count.get()).await;
            for step in &steps {
                // Steps that were never reached are left out first when a failing run is made shorter.
                if let Some(seen) = &seen {
                    seen.fetch_add(1, Ordering::SeqCst);
                }
                model.apply(step);
                subject.step(step, &model).await;
                subject.check_state(&model).await;
            }
        });
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    runtime.block_on(async { drop(world) });
}

/// What somebody does who has just signed in, so that nobody asks them for a fresh proof, and signs out again.
pub(super) struct Visit<'w> {
    world: &'w World,
    pub(super) person: Person,
}

impl<'w> Visit<'w> {
    pub(super) async fn of(world: &'w World, person: &Person) -> Self {
        let signed_in = world.sign_in(&person.email, PASSWORD).await.expect(200);
        let token = signed_in.text("token").to_owned();
        let person = Person {
            session_id: world.session_of(&token).await,
            token,
            ..person.clone()
        };
        Self { world, person }
    }

    pub(super) async fn ends_with(self, answer: Answer) -> Answer {
        let out = self.world.held(&self.person.token, "POST", SIGN_OUT);
        let _ = out.await.expect(200);
        answer
    }
}

/// The sessions of a person, as they are shown them.
pub(super) async fn listed_sessions(world: &World, person: &Person) -> Answer {
    let listed = world.iam.get(&person.caller(), "/api/sessions").await;
    listed.expect(200)
}

/// The same machine on every store.
macro_rules! machine {
    ($name:ident of $subject:ident) => {
        mod $name {
            use super::super::harness::run;
            use crate::world::Backend;

            #[test]
            fn on_memory() {
                run::<super::$subject>(Backend::Memory);
            }

            #[test]
            fn on_sqlite() {
                run::<super::$subject>(Backend::Sqlite);
            }

            #[test]
            fn on_postgres() {
                run::<super::$subject>(Backend::Postgres);
            }
        }
    };
}
pub(super) use machine;
