//! The text of `--version`.

use crate::eval::bench::SIGNATURE;
use std::sync::LazyLock;

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let number = env!("CARGO_PKG_VERSION");
    match option_env!("TESSERA_COMMIT") {
        Some(commit) => format!("{number} (commit {commit}, signature {SIGNATURE})"),
        None => format!("{number} (signature {SIGNATURE})"),
    }
});

/// Returns the version of the package, the commit from which it was built, if known, and the
/// [signature](SIGNATURE) of its search.
pub fn version() -> &'static str {
    &VERSION
}
