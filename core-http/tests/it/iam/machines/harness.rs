//! Applies the same steps to a model and to the services, on one store.

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

/// The expected state: a value that steps change. It does not know the implementation.
pub(super) trait Model: Clone + Debug + Default + 'static {
    type Step: Clone + Debug + 'static;

    /// Returns the steps that make sense in this state.
    fn steps(&self) -> BoxedStrategy<Self::Step>;

    /// Returns whether a step still makes sense after steps before it were left out.
    fn allows(&self, step: &Self::Step) -> bool;

    /// Applies a step to the expected state.
    fn apply(&mut self, step: &Self::Step);
}

/// The actual state: the services, and the people of one test case.
pub(super) trait Subject: Sized {
    type Model: Model;

    /// Whether the default mail quotas apply. Default: no, because other tests cover them.
    const LIMITS_MAILS: bool = false;

    /// Creates the people and records of the test case with this number.
    async fn begin(world: Arc<World>, case: u32) -> Self;

    /// Takes the step and asserts that its outcome is the one in the model, which has taken it already.
    async fn step(&mut self, step: &<Self::Model as Model>::Step, model: &Self::Model);

    /// Asserts that the state of the services equals the model.
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

/// Maximum number of steps in a run.
const MAX_STEPS: usize = 30;

/// The seconds by which the clock advances before each case, so that the limits of one case do not affect the next.
const PAUSE: u64 = 3 * DAY;

/// Returns the number of cases, which is smaller on slower stores.
fn config(backend: Backend) -> ProptestConfig {
    ProptestConfig::with_cases(cases(match backend {
        Backend::Memory => 24,
        Backend::Sqlite => 8,
        Backend::Postgres | Backend::Sqlx | Backend::Cells => 4,
    }))
}

/// Runs random sequences of steps on a store of this backend.
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
    let steps = Reference::<S::Model>::sequential_strategy(1..=MAX_STEPS);
    let outcome = TestRunner::new(config(backend)).run(&steps, |(mut model, steps, seen)| {
        count.set(count.get() + 1);
        world.tick(PAUSE);
        runtime.block_on(async {
            let mut subject = S::begin(Arc::clone(&world), count.get()).await;
            for step in &steps {
                // When proptest shrinks a failing run, it removes the steps that were never reached first.
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

/// A visit of a person in a new session, so that no fresh proof is required. It ends with a sign-out.
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

    pub(super) async fn sign_out(self, answer: Answer) -> Answer {
        let out = self
            .world
            .send_with_bearer(&self.person.token, "POST", SIGN_OUT);
        let _ = out.await.expect(200);
        answer
    }
}

/// Returns the sessions in the list of a person.
pub(super) async fn listed_sessions(world: &World, person: &Person) -> Answer {
    let listed = world.iam.get(&person.caller(), "/api/sessions").await;
    listed.expect(200)
}

/// Runs the same state machine on every store.
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
