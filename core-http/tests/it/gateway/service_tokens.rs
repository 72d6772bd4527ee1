//! Service tokens, with which a gateway authenticates forwarded requests to a service over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use core_domain::kernel::Secret;
use core_domain::kernel::{Caller, SuiteService};
use core_http::gateway::{HttpUpstream, InProcess, ServiceTokens, Upstream, UpstreamError};
use core_http::kernel::{Body, empty_body};
use futures_util::future::join_all;
use http::{Request, Response};

use crate::world::server::{Server, options};
use crate::world::{PLATFORMS, Person, SERVICE_KEY, World, platform_path};

/// An IAM that counts its requests, and can be down or hang.
#[derive(Clone, Debug)]
struct Iam {
    service: InProcess,
    requests: Arc<AtomicUsize>,
    is_down: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

#[async_trait]
impl Upstream for Iam {
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if self.is_down.load(Ordering::SeqCst) {
            return Err(UpstreamError::Broken("down".to_owned()));
        }
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.service.send(request).await
    }
}

/// The registry on a socket, and an upstream that calls it.
struct Remote {
    world: World,
    iam: Iam,
    upstream: HttpUpstream,
    /// The owner of `platform`.
    ada: Person,
    platform: String,
    _registry: Server,
}

impl Remote {
    /// Creates a remote registry whose callers use service tokens for `target`.
    async fn with_tokens_for(target: SuiteService) -> Self {
        let world = World::new();
        let ada = world.sign_up("ada@example.org").await;
        let set_up = world.set_up_organization(&ada, "engines").await.expect(201);
        let registry = Server::start(world.registry.0.clone(), options()).await;
        let iam = Iam {
            service: InProcess::service(world.iam.0.clone()),
            requests: Arc::default(),
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

    /// Gets the platform as its owner, and returns the response status.
    async fn show(&self) -> Result<u16, UpstreamError> {
        let path = platform_path(&self.platform, "");
        self.get(self.ada.caller(), &path).await
    }

    fn iam_request_count(&self) -> usize {
        self.iam.requests.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn an_http_service_accepts_identity_headers_with_a_service_token_for_it() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    let foreign = platform_path(&remote.world.create_platform("mills").await, "");
    assert_eq!(remote.show().await.unwrap(), 200);
    let hidden = remote.get(remote.ada.caller(), &foreign).await;
    assert_eq!(hidden.unwrap(), 404);
    let anonymous = remote.get(Caller::Anonymous, PLATFORMS).await;
    assert_eq!(anonymous.unwrap(), 401);
    // One token for the session, and one for calls without a session.
    assert_eq!(remote.iam_request_count(), 2);
}

#[tokio::test]
async fn a_service_token_for_another_service_is_refused() {
    let remote = Remote::with_tokens_for(SuiteService::Provisioning).await;
    assert_eq!(remote.show().await.unwrap(), 401);
}

#[tokio::test]
async fn the_service_refuses_an_ended_session_and_a_session_of_another_user() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    let eve = remote.world.sign_up("eve@example.org").await;
    let stolen = Person {
        session_id: remote.ada.session_id.clone(),
        ..eve
    };
    let path = platform_path(&remote.platform, "");
    assert_eq!(remote.get(stolen.caller(), &path).await.unwrap(), 401);
    assert_eq!(remote.show().await.unwrap(), 200);
    let (ada, path) = (remote.ada.caller(), "/api/auth/revoke-sessions");
    let ended = remote.world.iam.post(&ada, path, serde_json::json!({}));
    let _ = ended.await.expect(200);
    assert_eq!(remote.show().await.unwrap(), 401);
}

#[tokio::test]
async fn one_token_serves_all_requests_until_shortly_before_it_expires() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    let many = join_all((0..20).map(|_| remote.show())).await;
    assert!(
        many.iter().all(|answer| matches!(answer, Ok(200))),
        "{many:?}"
    );
    assert_eq!(remote.iam_request_count(), 1);
    remote.world.tick(239);
    assert_eq!(remote.show().await.unwrap(), 200);
    assert_eq!(remote.iam_request_count(), 1);
    remote.world.tick(1);
    assert_eq!(remote.show().await.unwrap(), 200);
    assert_eq!(remote.iam_request_count(), 2);
}

#[tokio::test]
async fn while_iam_is_down_a_token_is_used_until_it_expires_and_then_requests_fail() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    assert_eq!(remote.show().await.unwrap(), 200);
    remote.iam.is_down.store(true, Ordering::SeqCst);
    remote.world.tick(250);
    assert_eq!(remote.show().await.unwrap(), 200);
    // IAM is not called for every request.
    assert_eq!(remote.show().await.unwrap(), 200);
    assert_eq!(remote.iam_request_count(), 2);
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
async fn while_iam_does_not_respond_requests_use_the_current_token() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    assert_eq!(remote.show().await.unwrap(), 200);
    remote.iam.hangs.store(true, Ordering::SeqCst);
    remote.world.tick(250);
    let asking = remote.show();
    let others = async {
        while remote.iam_request_count() == 1 {
            tokio::task::yield_now().await;
        }
        // The first request still waits for IAM.
        remote.show().await.unwrap()
    };
    tokio::pin!(asking);
    tokio::select! {
        biased;
        _ = &mut asking => panic!("the first request cannot end while IAM hangs"),
        status = others => assert_eq!(status, 200),
    }
    assert_eq!(asking.await.unwrap(), 200);
    assert_eq!(remote.iam_request_count(), 2);
}

#[tokio::test]
async fn concurrent_requests_without_a_token_share_one_call_to_an_unavailable_iam() {
    let remote = Remote::with_tokens_for(SuiteService::Registry).await;
    remote.iam.hangs.store(true, Ordering::SeqCst);
    let many = join_all((0..20).map(|_| remote.show())).await;
    let none =
        |answer: &Result<u16, UpstreamError>| matches!(answer, Err(UpstreamError::Unavailable(_)));
    assert!(many.iter().all(none), "{many:?}");
    assert_eq!(remote.iam_request_count(), 1);
}
