//! A store in the cloud: Amazon S3 and compatible stores, Google Cloud Storage, and Azure.
//!
//! The object_store crate retries failed requests with exponential backoff.

use super::{Listing, Name};
use crate::header_text::unsendable;
use object_store::path::Path as Key;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, parse_url_opts,
};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// Prefixes of the environment variables that configure object stores.
const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// The runtime on which requests run.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    // Of the two cryptography providers for rustls, ring builds faster. A program that has already
    // installed one keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("object-store")
        .enable_all()
        .build()
});

/// Returns the runtime on which requests run.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    RUNTIME
        .as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Returns the store that an address belongs to, and the key that it names there.
///
/// Credentials, region and endpoint are taken from the environment variables that these stores' own
/// tools use (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on).
pub(crate) fn connect(address: &str) -> io::Result<(Arc<dyn ObjectStore>, Key)> {
    // Starting the runtime also installs the provider that HTTP clients need.
    runtime()?;
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
    let url = Url::parse(address).map_err(|error| wrong(error.to_string()))?;
    let is_ours = |name: &str| VARIABLES.iter().any(|prefix| name.starts_with(prefix));
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.into_string().ok().filter(|name| is_ours(name)) else {
            continue;
        };
        variables.push((name.clone(), value_of(&name, value).map_err(wrong)?));
    }
    let is_plain = |text: &str| text.starts_with("http://");
    let plain = is_plain(url.as_str())
        || variables
            .iter()
            .any(|(name, value)| name.contains("ENDPOINT") && is_plain(value));
    // An explicit http:// address is intentional.
    let plain = plain.then(|| ("allow_http".to_owned(), "true".to_owned()));
    let options = variables.into_iter().chain(plain);
    let (store, key) = parse_url_opts(&url, options).map_err(|error| wrong(error.to_string()))?;
    Ok((Arc::from(store), key))
}

/// Returns the value of an environment variable. The client would panic on a credential that no
/// header can carry, for example because it ends with a line break.
fn value_of(name: &str, value: OsString) -> Result<String, String> {
    let value = value.into_string();
    let value = value.map_err(|_| format!("the environment variable {name} is not UTF-8"))?;
    let is_credential = name.contains("ACCESS_KEY") || name.contains("TOKEN");
    let is_place = ["_FILE", "_URI", "_URL"]
        .iter()
        .any(|end| name.ends_with(end));
    match unsendable(&value).filter(|_| is_credential && !is_place) {
        Some(character) => Err(format!(
            "the environment variable {name} contains {character}, which a request cannot send"
        )),
        None => Ok(value),
    }
}

/// The part of a bucket that contains the store.
#[derive(Debug)]
pub(super) struct Cloud {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// Whether the store has ever answered, so that there are credentials.
    has_answered: AtomicBool,
}

/// Parts of the addresses from which credentials are requested if none are configured, with the
/// variables that configure them.
const METADATA: [(&str, &str); 4] = [
    ("/latest/api/token", AWS),
    ("/meta-data/iam/security-credentials", AWS),
    ("/computeMetadata/", "GOOGLE_SERVICE_ACCOUNT"),
    (
        "/metadata/identity/",
        "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    ),
];
const AWS: &str = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// Explains an error that another request would meet again. Returns `None` for all others, such as
/// timeouts and busy servers. The library's errors do not expose HTTP statuses, but their texts
/// contain them.
fn lasting(error: &str, has_answered: bool) -> Option<(ErrorKind, String)> {
    let asked = METADATA.iter().find(|(address, _)| error.contains(address));
    if let Some((_, variables)) = asked {
        let text = format!(
            "there are no credentials: set {variables}; this machine's metadata service, which \
             might know them, does not provide any"
        );
        // A service that has provided credentials before will do so again.
        return (!has_answered).then_some((ErrorKind::PermissionDenied, text));
    }
    let between = |start: &str, end: &str| {
        let (_, rest) = error.split_once(start)?;
        rest.split_once(end).map(|(inside, _)| inside.trim())
    };
    // A redirection without an address has no status.
    let status = match error.contains("redirect without LOCATION") {
        true => "301 Moved Permanently",
        false => between("status code: ", ":")?,
    };
    let code = between("<Code>", "</Code>").unwrap_or(status);
    let (kind, text) = match status.get(..3)? {
        "401" | "403" => (
            ErrorKind::PermissionDenied,
            format!("access is denied ({code}): check the credentials and their permissions"),
        ),
        "404" => (
            ErrorKind::InvalidInput,
            format!("the bucket does not exist ({code})"),
        ),
        "301" => (
            ErrorKind::InvalidInput,
            format!("the bucket is elsewhere ({code}): check its region or endpoint"),
        ),
        "400" => (
            ErrorKind::InvalidInput,
            format!("the store rejects the request ({code})"),
        ),
        _ => return None,
    };
    Some((kind, text))
}

/// Converts a failed request's error. The kind of an error that another request would meet again is
/// `PermissionDenied` or `InvalidInput`. `has_answered` says whether the store has ever answered.
pub(crate) fn failure(error: Error, has_answered: bool) -> io::Error {
    match lasting(&error.to_string(), has_answered) {
        Some((kind, text)) => io::Error::new(kind, text),
        None => io::Error::other(error),
    }
}

impl Cloud {
    pub fn open(address: &str) -> io::Result<Cloud> {
        let (store, prefix) = connect(address)?;
        Ok(Cloud {
            store,
            prefix,
            has_answered: AtomicBool::new(false),
        })
    }

    /// Converts the result of a request; see [`failure`].
    fn answered<T>(&self, result: object_store::Result<T>) -> io::Result<T> {
        let has_answered = self.has_answered.load(Relaxed);
        let answer = result.map_err(|error| failure(error, has_answered))?;
        self.has_answered.store(true, Relaxed);
        Ok(answer)
    }

    pub fn put(&self, name: &Name, bytes: &[u8]) -> io::Result<bool> {
        let key = self.key(name.as_str());
        let payload = PutPayload::from(bytes.to_vec());
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&key, payload, options);
        match runtime()?.block_on(put) {
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            put => self.answered(put.map(|_| true)),
        }
    }

    pub fn get(&self, name: &Name) -> io::Result<Option<Vec<u8>>> {
        let key = self.key(name.as_str());
        let get = async { self.store.get(&key).await?.bytes().await };
        match runtime()?.block_on(get) {
            Err(Error::NotFound { .. }) => Ok(None),
            bytes => self.answered(bytes.map(|bytes| Some(bytes.into()))),
        }
    }

    pub fn list(&self, folder: &str) -> io::Result<Listing> {
        let key = self.key(folder);
        let list = self.store.list_with_delimiter(Some(&key));
        let found = self.answered(runtime()?.block_on(list))?;
        let last = |key: &Key| key.filename().map(str::to_owned);
        Ok(Listing {
            files: found
                .objects
                .iter()
                .filter_map(|object| last(&object.location))
                .collect(),
            folders: found.common_prefixes.iter().filter_map(last).collect(),
        })
    }

    fn key(&self, name: &str) -> Key {
        let parts = name.split('/').map(Into::into);
        self.prefix.parts().chain(parts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_that_no_request_can_send_is_refused_by_its_character() {
        let value = |name: &str, value: &str| value_of(name, value.into());
        for (name, given, character) in [
            ("AWS_SESSION_TOKEN", "secret\n", "a line break (U+000A)"),
            ("AWS_ACCESS_KEY_ID", "schlüssel", "the character ü (U+00FC)"),
            ("AZURE_STORAGE_TOKEN", "two words", "a blank (U+0020)"),
        ] {
            assert_eq!(
                value(name, given).unwrap_err(),
                format!(
                    "the environment variable {name} contains {character}, which a request cannot \
                     send"
                )
            );
            assert_eq!(value(name, "a/b+c=").unwrap(), "a/b+c=");
        }
        let json = "{ \"type\": \"service_account\" }";
        assert_eq!(value("GOOGLE_SERVICE_ACCOUNT_KEY", json).unwrap(), json);
        let path = "/var/run/two words";
        assert_eq!(value("AWS_WEB_IDENTITY_TOKEN_FILE", path).unwrap(), path);
    }
}
