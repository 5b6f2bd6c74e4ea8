//! What writes logs and reports.

use std::sync::OnceLock;

/// The version, and the commit if the build was told one by the variable `SPECGAP_COMMIT`:
/// `0.1.0`, `0.1.0 (e74e0be5)`.
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| with_commit(option_env!("SPECGAP_COMMIT")))
}

/// The program with its [`version`], as reports name it.
///
/// # Example
/// ```
/// assert!(specgap_log::log::tool().starts_with("specgap 0."));
/// ```
pub fn tool() -> String {
    format!("specgap {}", version())
}

fn with_commit(commit: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) if !commit.is_empty() => format!("{version} ({commit})"),
        _ => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::with_commit;

    #[test]
    fn a_commit_is_named_where_the_build_knows_it() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(with_commit(None), version);
        assert_eq!(with_commit(Some("")), version);
        assert_eq!(
            with_commit(Some("e74e0be5")),
            format!("{version} (e74e0be5)")
        );
    }
}
