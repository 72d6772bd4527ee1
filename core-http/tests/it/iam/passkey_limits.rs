//! Limits of passkeys and challenges per person, and the lifetime of challenges.

use core_domain::iam::MAX_PASSKEY_REGISTRATIONS;
use core_domain::kernel::Caller;
use serde_json::Value;

use super::{ADA, EVE};
use crate::world::{World, assert_limit, on_every_store};

const NOBODY: &Caller = &Caller::Anonymous;

async fn the_sixth_pending_registration_ends_only_the_persons_oldest(world: World) {
    let (ada, eve) = (world.sign_up(ADA).await, world.sign_up(EVE).await);
    let mut phone = world.create_passkey(&eve, 99).await;
    let hers = world.begin_passkey(&eve).await;
    let asked = world.begin_passkey_sign_in().await;
    let mut begun = Vec::new();
    for _ in 0..=MAX_PASSKEY_REGISTRATIONS {
        world.tick(1);
        begun.push(world.begin_passkey(&ada).await);
    }
    assert_eq!(begun.len(), 6);
    for (seed, begun) in (0..).zip(&begun) {
        let made = world.authenticator(seed).create(&begun.options);
        let answer = world.finish_passkey(&ada, &begun.cookie, &made).await;
        if seed == 0 {
            answer.expect_error(400, "CHALLENGE_NOT_FOUND");
        } else {
            let _ = answer.expect(200);
        }
    }
    let made = world.authenticator(7).create(&hers.options);
    let of_eve = world.finish_passkey(&eve, &hers.cookie, &made).await;
    let _ = of_eve.expect(200);
    let shown = phone.get(&asked.options);
    let signed_in = world
        .finish_passkey_sign_in(NOBODY, &asked.cookie, &shown)
        .await;
    let _ = signed_in.expect(200);
}

on_every_store! { the_sixth_pending_registration_ends_only_the_persons_oldest }

#[tokio::test]
async fn a_challenge_expires_after_five_minutes() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let mut phone = world.create_passkey(&ada, 1).await;
    let asked = world.begin_passkey_sign_in().await;
    let in_time = phone.get(&asked.options);
    let too_late = world.begin_passkey_sign_in().await;
    let shown = phone.get(&too_late.options);
    world.tick(299);
    let last = world
        .finish_passkey_sign_in(NOBODY, &asked.cookie, &in_time)
        .await;
    let _ = last.expect(200);
    world.tick(1);
    let late = world
        .finish_passkey_sign_in(NOBODY, &too_late.cookie, &shown)
        .await;
    late.expect_error(400, "CHALLENGE_NOT_FOUND");
    let forged = "better-auth.better-auth-passkey=abc.def";
    let forged = world.finish_passkey_sign_in(NOBODY, forged, &shown).await;
    forged.expect_error(400, "CHALLENGE_NOT_FOUND");
}

#[tokio::test]
async fn a_person_has_at_most_twenty_passkeys() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let begun = world.begin_passkey(&ada).await;
    for number in 0..20 {
        world.create_passkey(&ada, number).await;
        world.tick(1);
    }
    let made = world.authenticator(99).create(&begun.options);
    let old = world.finish_passkey(&ada, &begun.cookie, &made).await;
    assert_limit(&old, 20, "registration");
    let call = "generate-register-options";
    let caller = ada.caller();
    let full = world.call_passkey(&caller, call, "", Value::Null);
    assert_limit(&full.await, 20, call);
}
