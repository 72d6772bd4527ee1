//! The tower services of the Platform Control API Suite: typed endpoint table, router, gateway layers, OpenAPI.
