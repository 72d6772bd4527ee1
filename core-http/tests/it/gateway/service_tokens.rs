//! Service tokens with which a gateway vouches for requests to a service behind HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use core_domain::iam::SuiteService;
use core_domain::kernel::Caller;
use core_domain::kernel::Secret;
use core_http::gateway::{HttpUpstream, InProcess, ServiceTokens, Upstream, UpstreamError};
use core_http::kernel::{Body, empty_body};
use futures_util::future::join_all;
use http::{Request, Response};

use crate::world::server::{Server, options};
use crate::world::{PLATFORMS, Person, SERVICE_KEY, World, at};

/// IAM, which counts how often it is asked, and can be down or hang.
#[derive(Clone, Debug)]
struct Iam {
    service: InProcess,
    asked: Arc<AtomicUsize>,
    is_down: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

#[async_trait]
impl Upstream for Iam {
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Err(UpstreamError::Broken("down".to_owned()));
        }
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.service.send(request).await
    }
}

/// The registry over a socket, and the way to it.
struct Remote {
    world: World,
    iam: Iam,
    upstream: HttpUpstream,
    /// Owns `platform`.
    ada: Person,
    platform: String,
    _registry: Server,
}

impl Remote {
    /// With tokens for this service.
    async fn with_tokens_for(target: SuiteService) -> Self {
        let world = World::new();
        let ada = world.sign_up("ada@example.org").await;
        let set_up = world.set_up(&ada, "engines").await.expect(201);
        let registry = Server::start(world.registry.0.clone(), options()).await;
        let iam = Iam {
            service: InProcess::service(world.iam.0.clone()),
            asked: Arc::default(),
            is_down: Arc::default(),
            hangs: Arc::default(),
        };
        let key = Secret::new(SERVICE_KEY);
        let tokens = ServiceTokens::new(iam.clone(), &key, world.clock.clone()).unwrap();
        let upstream = HttpUpstream::new(&format!("http://{}", registry.address)).unwrap();
        Self {
            world,
            iam,
            upstream: upstream.with_service_tokens(Arc::new(tokens), target),
            ada,
            platform: set_up.text("platformId").to_owned(),
            _registry: registry,
        }
    }

    async fn get(&self, caller: Caller, path: &str) -> Result<u16, UpstreamError> {
        let request = Request::get(path).extension(Arc::new(caller));
        let answer = self.upstream.send(request.body(empty_body()).unwrap());
        Ok(answer.await?.status().as_u16())
    }

    /// Shows the platform to its owner.
    async fn show(&self) -> Result<u16, UpstreamError> {
        let path = at(&self.platform, "");
        self.get(self.ada.caller(), &path).await
    }

    fn asked(&self) -> usize {
        self.iam.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_service_behind_http_believes_a_gateways_word_by_a_service_token_for_it() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    let foreign = at(&remote.world.platform("mills").await, "");
    assert_eq!(remote.show().await.unwrap(), 200);
    let hidden = remote.get(remote.ada.caller(), &foreign).await;
    assert_eq!(hidden.unwrap(), 404);
    let anonymous = remote.get(Caller::Anonymous, PLATFORMS).await;
    assert_eq!(anonymous.unwrap(), 401);
    // One token for the session, and one for calls without a session.
    assert_eq!(remote.asked(), 2);
}

#[tokio::test]
async fn a_token_for_another_service_vouches_for_nobody() {
    let remote = Remote::with_tokens_for(SuiteService::Provisioning).await;
    assert_eq!(remote.show().await.unwrap(), 401);
}

#[tokio::test]
async fn a_session_that_has_ended_or_is_another_users_is_refused_by_the_service() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    let eve = remote.world.sign_up("eve@example.org").await;
    let stolen = Person {
        session_id: remote.ada.session_id.clone(),
        ..eve
    };
    let path = at(&remote.platform, "");
    assert_eq!(remote.get(stolen.caller(), &path).await.unwrap(), 401);
    assert_eq!(remote.show().await.unwrap(), 200);
    let (ada, path) = (remote.ada.caller(), "/api/auth/revoke-sessions");
    let ended = remote.world.iam.post(&ada, path, serde_json::json!({}));
    let _ = ended.await.expect(200);
    assert_eq!(remote.show().await.unwrap(), 401);
}

#[tokio::test]
async fn iam_is_asked_once_for_all_requests_until_the_token_is_nearly_over() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    let many = join_all((0..20).map(|_| remote.show())).await;
    assert!(
        many.iter().all(|answer| matches!(answer, Ok(200))),
        "{many:?}"
    );
    assert_eq!(remote.asked(), 1);
    remote.world.tick(239);
    assert_eq!(remote.show().await.unwrap(), 200);
    assert_eq!(remote.asked(), 1);
    remote.world.tick(1);
    assert_eq!(remote.show().await.unwrap(), 200);
    assert_eq!(remote.asked(), 2);
}

#[tokio::test]
async fn while_iam_is_down_a_token_serves_to_its_end_and_then_the_service_is_unavailable() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    assert_eq!(remote.show().await.unwrap(), 200);
    remote.iam.is_down.store(true, Ordering::SeqCst);
    remote.world.tick(250);
    assert_eq!(remote.show().await.unwrap(), 200);
    // It is not asked with every request.
    assert_eq!(remote.show().await.unwrap(), 200);
    assert_eq!(remote.asked(), 2);
    remote.world.tick(50);
    let refused = remote.show().await;
    assert!(
        matches!(refused, Err(UpstreamError::Broken(_))),
        "{refused:?}"
    );
    remote.iam.is_down.store(false, Ordering::SeqCst);
    assert_eq!(remote.show().await.unwrap(), 200);
}

#[tokio::test]
async fn while_iam_does_not_answer_requests_go_on_with_the_token_there_is() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    assert_eq!(remote.show().await.unwrap(), 200);
    remote.iam.hangs.store(true, Ordering::SeqCst);
    remote.world.tick(250);
    let asking = remote.show();
    let others = async {
        while remote.asked() == 1 {
            tokio::task::yield_now().await;
        }
        // The one before still waits.
        remote.show().await.unwrap()
    };
    tokio::pin!(asking);
    tokio::select! {
        biased;
        _ = &mut asking => panic!("IAM does not answer"),
        status = others => assert_eq!(status, 200),
    }
    assert_eq!(asking.await.unwrap(), 200);
    assert_eq!(remote.asked(), 2);
}

#[tokio::test]
async fn requests_without_a_token_ask_an_iam_that_is_down_once_together() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    remote.iam.hangs.store(true, Ordering::SeqCst);
    let many = join_all((0..20).map(|_| remote.show())).await;
    let none =
        |answer: &Result<u16, UpstreamError>| matches!(answer, Err(UpstreamError::Unavailable(_)));
    assert!(many.iter().all(none), "{many:?}");
    assert_eq!(remote.asked(), 1);
}
