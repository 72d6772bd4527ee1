//! Infrastructure in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use core_domain::port::{
    CreateResource, Infrastructure, ProviderError, Provisioned, ResourceRef, SiteDeployment,
    SiteUpload,
};

/// Names, and who they belong to.
#[derive(Debug, Default)]
pub(super) struct Provider {
    pub(super) objects: Mutex<BTreeMap<String, String>>,
    /// As long as this is set nothing can be made or removed.
    pub(super) refuses: Mutex<bool>,
}

impl Provider {
    fn ask(&self) -> Result<(), ProviderError> {
        if *self.refuses.lock().unwrap() {
            return Err(ProviderError::Permanent("the provider refuses".to_owned()));
        }
        Ok(())
    }
}

fn provisioned(name: &str, owner: &str) -> Provisioned {
    Provisioned {
        id: format!("id-of-{name}"),
        url: Some(format!("http://{name}.test")),
        owner: owner.to_owned(),
    }
}

#[async_trait]
impl Infrastructure for Provider {
    async fn observe(&self, resource: &ResourceRef) -> Result<Option<Provisioned>, ProviderError> {
        let objects = self.objects.lock().unwrap();
        let owner = objects.get(&resource.name);
        Ok(owner.map(|owner| provisioned(&resource.name, owner)))
    }

    async fn create(&self, request: &CreateResource) -> Result<Provisioned, ProviderError> {
        self.ask()?;
        let name = request.resource.name.clone();
        let mut objects = self.objects.lock().unwrap();
        objects.insert(name.clone(), request.owner.clone());
        Ok(provisioned(&name, &request.owner))
    }

    async fn remove(&self, resource: &ResourceRef, _: &str) -> Result<(), ProviderError> {
        self.ask()?;
        self.objects.lock().unwrap().remove(&resource.name);
        Ok(())
    }

    async fn deploy_site(&self, _: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        Err(ProviderError::Permanent("no sites here".to_owned()))
    }

    async fn site_deployment(
        &self,
        _: &str,
        _: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        Ok(None)
    }
}
