//! Organizations that people create after they sign up.

use core_domain::access::RecordKey;
use core_domain::iam::Member;
use core_domain::kernel::{MemberId, Role, UserId};
use core_domain::port::{Mode, Within};
use core_http::kernel::testing::{Answer, organization_of};
use serde_json::{Value, json};

use super::{Person, World};

/// The ids of the organizations, memberships and invitations of a person.
#[derive(Clone, Debug)]
pub(crate) struct Organizations {
    /// The organization that the person owns.
    pub(crate) own: String,
    /// The membership of another person in `own`.
    pub(crate) member: String,
    /// A pending invitation to `own`.
    pub(crate) sent: String,
    /// A pending invitation for the person.
    pub(crate) received: String,
    /// An organization that the person has joined.
    pub(crate) joined: String,
}

impl World {
    /// Calls a route of the organization plugin as this person.
    pub(crate) async fn call_organization(
        &self,
        person: &Person,
        call: &str,
        body: Value,
    ) -> Answer {
        let path = format!("/api/auth/organization/{call}");
        self.iam.post(&person.caller(), &path, body).await
    }

    /// Creates an organization as this person and returns its id. Advances the clock by a second.
    pub(crate) async fn create_organization(&self, person: &Person, slug: &str) -> String {
        let body = json!({ "name": slug, "slug": slug });
        let created = self.call_organization(person, "create", body).await;
        self.tick(1);
        created.expect(200).id()
    }

    /// Invites an address to an organization of this person. Returns the id of the invitation. Advances the clock by a
    /// second.
    pub(crate) async fn invite(
        &self,
        person: &Person,
        organization: &str,
        email: &str,
        role: &str,
    ) -> String {
        let body = json!({ "email": email, "role": role, "organizationId": organization });
        let invited = self.call_organization(person, "invite-member", body).await;
        self.tick(1);
        invited.expect(200).id()
    }

    /// Invites a person, who accepts. Returns the id of the membership. Advances the clock by two seconds.
    pub(crate) async fn join(
        &self,
        [inviter, person]: [&Person; 2],
        organization: &str,
        role: &str,
    ) -> String {
        self.invite(inviter, organization, &person.email, role)
            .await;
        let body = json!({ "invitationId": self.mailed_invitation(&person.email).await });
        let accepted = self
            .call_organization(person, "accept-invitation", body)
            .await;
        self.tick(1);
        let id = &accepted.expect(200).json["member"]["id"];
        id.as_str().unwrap().to_owned()
    }

    /// Adds a person to the organization of a platform, without an invitation.
    pub(crate) async fn add_member(&self, platform: &str, person: &Person, role: Role) {
        let mut uow = self.app.store.begin(Mode::Write).await.unwrap();
        let created_at = uow.now().await.unwrap();
        let member = Member {
            id: MemberId::generate(created_at, self.app.entropy.as_ref()),
            organization_id: organization_of(platform),
            user_id: UserId::parse(&person.user_id).unwrap(),
            role: role.into(),
            grants: Vec::new(),
            created_at,
        };
        let members = uow.repositories(RecordKey::for_tests()).members();
        members.insert(member).await.unwrap();
        uow.commit().await.unwrap();
    }

    /// Ends the membership of a person, who leaves the organization.
    pub(crate) async fn leave(&self, person: &Person, organization: &str) {
        let body = json!({ "organizationId": organization });
        let left = self.call_organization(person, "leave", body).await;
        let _ = left.expect(200);
    }

    /// Sets in the store whether the address of a person is confirmed. Sends no mail.
    pub(crate) async fn set_confirmed(&self, person: &Person, is_confirmed: bool) {
        let mut uow = self.app.store.begin(Mode::Write).await.unwrap();
        let users = uow.repositories(RecordKey::for_tests()).users();
        let user = users.get(Within::Installation, &person.user_id).await;
        let user = user.unwrap().unwrap();
        let mut next = user.edit();
        next.email_verified = is_confirmed;
        users.replace(&user, next).await.unwrap();
        uow.commit().await.unwrap();
    }

    /// Confirms the address of a person by a mailed link. Advances the clock by a second.
    pub(crate) async fn confirm(&self, person: &Person) {
        let body = json!({ "email": person.email });
        let path = "/api/auth/send-verification-email";
        let _ = self
            .iam
            .post(&person.caller(), path, body)
            .await
            .expect(200);
        let token = self.mailed_token(&person.email).await;
        let path = format!("/api/auth/verify-email?token={token}");
        let _ = self.iam.get(&person.caller(), &path).await.expect(200);
        self.tick(1);
    }

    /// Creates organizations for two people. Returns those of the first, as [`Organizations`] describes.
    pub(crate) async fn organizations_of(&self, ada: &Person, eve: &Person) -> Organizations {
        let hers = self.create_organization(eve, "eves").await;
        let joined = self.create_organization(eve, "eves-second").await;
        let received = self.invite(eve, &hers, &ada.email, "member").await;
        self.join([eve, ada], &joined, "member").await;
        let own = self.create_organization(ada, "adas").await;
        let member = self.join([ada, eve], &own, "member").await;
        let sent = self.invite(ada, &own, "bob@example.org", "admin").await;
        Organizations {
            own,
            member,
            sent,
            received,
            joined,
        }
    }
}
