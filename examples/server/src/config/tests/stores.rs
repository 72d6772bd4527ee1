//! The options of databases, cells, Redis and buckets.

use super::*;

#[test]
fn a_database_url_of_another_kind_is_refused() {
    assert!(load(&["--database-url", "mysql://x"]).is_err());
}

#[test]
fn the_postgres_settings_are_unset_by_default() {
    let unsaid = load(&[]).unwrap().options.settings.postgres;
    assert_eq!((unsaid.schema, unsaid.root_certificates), (None, None));
    let variable = "CORE_SETTINGS__POSTGRES__ROOT_CERTIFICATES";
    let config = load_with(
        &["--set", "settings.postgres.schema=core"],
        [(variable, "/etc/ca.pem")],
    );
    let said = config.unwrap().options.settings.postgres;
    assert_eq!(said.schema.as_deref(), Some("core"));
    assert_eq!(said.root_certificates.unwrap().as_os_str(), "/etc/ca.pem");
}

#[test]
fn the_further_urls_of_the_database_are_checked_and_never_shown() {
    let further_url = |option: &str, direct_url: Option<&str>, replica_url: Option<&str>| {
        let expected = Database::Postgres {
            url: "postgres://core:sesame@pooler/core".to_owned(),
            direct_url: direct_url.map(str::to_owned),
            replica_url: replica_url.map(str::to_owned),
        };
        check_further_url(option, &expected);
    };
    let url = "postgres://core:sesame@db/core";
    further_url("--database-direct-url", Some(url), None);
    further_url("--database-replica-url", None, Some(url));
}

/// Checks an option with the URL `postgres://core:sesame@db/core`.
fn check_further_url(option: &str, expected: &Database) {
    let pooler = ["--database-url", "postgres://core:sesame@pooler/core"];
    let direct = [option, "postgres://core:sesame@db/core"];
    let config = load(&[pooler, direct].concat()).unwrap();
    assert_eq!(config.database, *expected);
    let shown = format!(
        "{config:?} {} {:?}",
        config.effective,
        crate::run::builder(&config)
    );
    assert!(!shown.contains("sesame"), "{shown}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("url");
    std::fs::write(&file, "postgres://core:sesame@db/core\n").unwrap();
    let file_option = format!("{option}-file");
    let from_file = [&*file_option, file.to_str().unwrap()];
    let config = load(&[pooler, from_file].concat()).unwrap();
    assert_eq!(config.database, *expected);

    let memory = ["--database-url", "memory:"];
    let other = [option, "mysql://sesame"];
    let name = option.trim_start_matches('-').replace('-', "_");
    for arguments in [
        &direct[..],
        &[memory, direct].concat(),
        &[pooler, other].concat(),
        &[pooler, direct, from_file].concat(),
    ] {
        let error = load(arguments).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: ")), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn the_cells_are_read_from_a_file_and_never_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cells = ["--cells", file.path().to_str().unwrap()];
    let home = ["--database-url", "postgres://core@home/core"];
    let with = |content: &str| {
        std::fs::write(&file, content).unwrap();
        load(&[home, cells].concat())
    };
    let config = with(
        "[[cell]]\nname = \"a\"\ndatabase_url = \"postgres://core:sesame@a/core\"\n\
         [[cell]]\nname = \"b\"\ndatabase_url = \"postgres://b/core\"\ntakes_new_platforms = false\n",
    )
    .unwrap();
    let [a, b] = &config.cells.others[..] else {
        panic!("two cells");
    };
    assert_eq!((&*a.name, a.takes_new_platforms), ("a", true));
    assert_eq!((&*b.name, b.takes_new_platforms), ("b", false));
    let builder = crate::run::builder(&config);
    let shown = format!("{config:?} {} {builder:?}", config.effective);
    assert!(!shown.contains("sesame"), "{shown}");
    for refused in [
        "[[cell]]\nname = \"a\"\n",
        "[[cell]]\nname = \"a\"\ndatabase_url = \"mysql://sesame\"\n",
        "[[cell]]\nname = \"a\"\ndatabase_url = postgres://sesame\n",
        "[[cells]]\nname = \"sesame\"\n",
    ] {
        let error = with(refused).unwrap_err().to_string();
        assert!(error.starts_with("cells: "), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn the_url_of_redis_is_checked_and_never_shown() {
    let url = ["--redis-url", "rediss://core:sesame@redis.example.org/1"];
    let postgres = ["--database-url", "postgres://core@localhost/core"];
    let config = load(&[url, postgres].concat()).unwrap();
    let shown = format!(
        "{config:?} {} {:?}",
        config.effective,
        crate::run::builder(&config)
    );
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(crate::run::contradictions(&config).is_empty());
    let config = load(&url).unwrap();
    let contradictions = crate::run::contradictions(&config);
    assert_eq!(contradictions.len(), 1, "{contradictions:?}");
    assert!(contradictions[0].starts_with("settings.redis: only counts"));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("url");
    std::fs::write(&file, "redis://:sesame@127.0.0.1\n").unwrap();
    let from_file = ["--redis-url-file", file.to_str().unwrap()];
    let config = load(&from_file).unwrap();
    assert_eq!(
        config.options.redis_url.as_deref(),
        Some("redis://:sesame@127.0.0.1")
    );
    for (arguments, named) in [
        (&["--redis-url", "sesame"][..], "redis_url: "),
        (&["--redis-url", ""], "redis_url: "),
        (&["--redis-url", "redis://:sesame@host:port"], "redis_url: "),
        (&[url, from_file].concat(), "redis_url: "),
        (&["--set", "settings.redis.key_prefix="], "settings: "),
    ] {
        let error = load(arguments).unwrap_err().to_string();
        assert!(error.starts_with(named), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn the_bucket_is_checked_and_its_secret_is_never_shown() {
    let url = ["--blobs-url", "s3://uploads/core?region=eu-central-1"];
    let id = ["--s3-access-key-id", "key-1"];
    let secret = ["--s3-secret-access-key", "sesame"];
    let config = load(&[url, id, secret].concat()).unwrap();
    let shown = format!(
        "{config:?} {} {:?}",
        config.effective,
        crate::run::builder(&config)
    );
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(shown.contains("s3://uploads/core"), "{shown}");
    crate::run::check(&config).unwrap();
    assert!(crate::run::contradictions(&config).is_empty());
    assert!(load(&[]).unwrap().bucket.is_none());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "sesame\n").unwrap();
    let from_file = ["--s3-secret-access-key-file", file.to_str().unwrap()];
    load(&[url, id, from_file].concat()).unwrap();
    for (arguments, named) in [
        (&["--blobs-url", "https://sesame"][..], "blobs_url: "),
        (
            &["--blobs-url", "s3://uploads"],
            "blobs_url: needs a region",
        ),
        (&["--blobs-url", "s3://k:sesame@uploads"], "blobs_url: "),
        (&id, "blobs_url: is required"),
        (&[url, id].concat(), "s3_secret_access_key: is required"),
        (&[url, secret].concat(), "s3_access_key_id: is required"),
        (
            &[url, ["--s3-access-key-id", "a b"], secret].concat(),
            "s3_access_key_id: ",
        ),
        (
            &[url, secret, from_file].concat(),
            "s3_secret_access_key: is set twice",
        ),
        (&["--set", "settings.s3.idle_timeout=0s"], "settings: "),
    ] {
        let error = load(arguments).err().unwrap().to_string();
        assert!(error.starts_with(named), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn the_key_the_role_and_the_region_of_a_bucket_come_from_the_variables_of_aws() {
    use core_suite::S3Credentials::{Key, Role};
    let url = ["--blobs-url", "s3://uploads"];
    let region = ("AWS_REGION", "eu-central-1");
    let id = ("AWS_ACCESS_KEY_ID", "key-1");
    let secret = ("AWS_SECRET_ACCESS_KEY", "sesame");
    let token = ("AWS_SESSION_TOKEN", "sesame");
    let config = load_with(&url, [region, id, secret, token]).unwrap();
    assert_eq!(
        config.options.settings.s3.region.as_deref(),
        Some("eu-central-1")
    );
    let found = config.bucket.unwrap().credentials;
    assert!(!format!("{found:?}").contains("sesame"));
    assert!(matches!(found, Key { id, session_token: Some(_), .. } if id == "key-1"));

    // The options of the server take precedence, and a key is never mixed.
    let own = ["--s3-access-key-id", "own", "--s3-secret-access-key", "own"];
    let arguments = [&url[..], &own].concat();
    let config = load_with(&arguments, [region, id, secret, token]).unwrap();
    let found = config.bucket.unwrap().credentials;
    assert!(matches!(found, Key { id, session_token: None, .. } if id == "own"));
    let error = load_with(&url, [region, id, ("AWS_SECRET_ACCESS_KEY", "")]);
    let error = error.err().unwrap().to_string();
    assert!(error.contains("only one of them is set"), "{error}");

    let role = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role");
    let config = load_with(&url, [region, role, ("AWS_PROFILE", "x")]).unwrap();
    let found = config.bucket.unwrap().credentials;
    assert!(matches!(found, Role { environment } if environment.len() == 1));
    // Without a bucket the variables are for other programs.
    assert!(load_with(&[], [region, id]).unwrap().bucket.is_none());
}
