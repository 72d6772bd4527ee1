//! Features of a platform.

use crate::client::Client;
use crate::error::Result;
use crate::operations::{ACTIVATE_FEATURE, DEACTIVATE_FEATURE, LIST_FEATURES};
use crate::types::feature::{
    ActivateFeature, DeactivateFeature, Feature, FeatureActivation, FeatureDeactivation,
};

impl Client {
    /// Lists the features of a platform.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_features(&self, platform: &str) -> Result<Vec<Feature>> {
        let list = self.call(LIST_FEATURES, &[platform]).send().await?;
        Ok(list.data)
    }

    /// Activates a feature. A job does the work; [`Client::list_features`] has its status.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn activate_feature(
        &self,
        platform: &str,
        feature: &ActivateFeature,
    ) -> Result<FeatureActivation> {
        self.call(ACTIVATE_FEATURE, &[platform]).send(feature).await
    }

    /// Deactivates a feature. A job does the work; [`Client::list_features`] has its status.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn deactivate_feature(
        &self,
        platform: &str,
        feature_id: &str,
    ) -> Result<FeatureDeactivation> {
        let feature_id = feature_id.to_owned();
        let body = DeactivateFeature { feature_id };
        self.call(DEACTIVATE_FEATURE, &[platform]).send(&body).await
    }
}
