//! Settings that are valid but probably mistakes. They are logged at the start and shown by `check-config`.

use crate::config_warning::ConfigWarning;
use crate::{Settings, SuiteBuilder};

impl SuiteBuilder {
    /// Returns warnings about settings that are valid but probably mistakes: sites that can set cookies for IAM, and settings
    /// that contradict each other. They are logged when the suite is built.
    #[must_use]
    pub fn warnings(&self) -> Vec<ConfigWarning> {
        let warnings = contradictions_of_sites(&self.settings).into_iter();
        #[cfg(feature = "local")]
        let warnings = warnings.chain(site_warnings(self));
        warnings.collect()
    }

    pub(crate) fn log_warnings(&self) {
        for ConfigWarning { setting, problem } in self.warnings() {
            tracing::warn!(setting, "{problem}");
        }
    }
}

/// Returns warnings about the addresses of sites, if they are served on this machine.
#[cfg(feature = "local")]
fn site_warnings(builder: &SuiteBuilder) -> Vec<ConfigWarning> {
    if builder.is_local() {
        builder.settings.sites.warnings(&builder.iam_url)
    } else {
        Vec::new()
    }
}

/// Returns the settings of sites and uploads that have no effect because another setting bounds them.
pub(crate) fn contradictions_of_sites(settings: &Settings) -> Vec<ConfigWarning> {
    let (sites, uploads) = (&settings.cli.sites, &settings.cli.uploads);
    let room = settings.limits.site_bytes_per_platform;
    let gateway = &settings.gateway;
    let table = [
        (
            "cli.sites.file_bytes",
            sites.file_bytes > sites.unpacked_bytes,
            "is more than all files of a site may have: cli.sites.unpacked_bytes",
        ),
        (
            "cli.sites.unpacked_bytes",
            sites.unpacked_bytes > room,
            "is more than all sites of a platform may have: limits.site_bytes_per_platform",
        ),
        (
            "cli.uploads.permits",
            uploads.permits > uploads.spools,
            "is more than the uploads that are received at a time: cli.uploads.spools",
        ),
        (
            "cli.uploads.spools_per_platform",
            uploads.spools_per_platform > uploads.spools,
            "is more than the uploads that are received at a time: cli.uploads.spools",
        ),
        (
            "cli.uploads.idle_timeout",
            uploads.idle_timeout > gateway.upload_idle_timeout,
            "is longer than the gateway waits: gateway.upload_idle_timeout",
        ),
    ];
    let contradicts = |(setting, contradicts, problem): (&'static str, bool, &str)| {
        let problem = problem.to_owned();
        contradicts.then_some(ConfigWarning { setting, problem })
    };
    table.into_iter().filter_map(contradicts).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_defaults_contradict_each_other_nowhere() {
        assert!(contradictions_of_sites(&Settings::default()).is_empty());
        assert!(SuiteBuilder::default().warnings().is_empty());
    }

    #[test]
    fn a_setting_of_sites_that_another_one_bounds_is_named() {
        let cases: [(fn(&mut Settings), &str); 5] = [
            (
                |s| s.cli.sites.file_bytes = s.cli.sites.unpacked_bytes + 1,
                "cli.sites.file_bytes",
            ),
            (
                |s| s.limits.site_bytes_per_platform = s.cli.sites.unpacked_bytes - 1,
                "cli.sites.unpacked_bytes",
            ),
            (|s| s.cli.uploads.permits = 65, "cli.uploads.permits"),
            (
                |s| s.cli.uploads.spools_per_platform = 65,
                "cli.uploads.spools_per_platform",
            ),
            (
                |s| s.cli.uploads.idle_timeout = Duration::from_secs(61),
                "cli.uploads.idle_timeout",
            ),
        ];
        for (change, setting) in cases {
            let mut settings = Settings::default();
            change(&mut settings);
            let found = contradictions_of_sites(&settings);
            let found: Vec<_> = found.iter().map(|warning| warning.setting).collect();
            assert_eq!(found, [setting]);
        }
    }
}
