//! Network files: the user's, and those compiled into a program.
//!
//! The library does not add network files to a program by itself. The engine [carries](carry) them,
//! so that it can play wherever it is copied. Programs without built-in networks, such as `tessera-train`
//! and the examples, are 7 MB smaller and read the same files from the folder `nets` next to the
//! executable.

use super::error::LoadError;
use crate::backend::{BuiltIn, NetworkOptions, shipped};
use crate::bounded;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The maximum size of a network file in bytes: 4 GiB, a billion weights in f32.
const LARGEST_FILE: u64 = 4 << 30;

/// The networks of this build, for [`carry`].
pub const NETWORKS: BuiltInNetworks = BuiltInNetworks {
    main: include!(concat!(env!("OUT_DIR"), "/embedded.rs")),
    human: include!(concat!(env!("OUT_DIR"), "/embedded_human.rs")),
};

/// The network that nets/default named at build time, without its extension.
const MAIN: Option<&str> = option_env!("TESSERA_DEFAULT_NETWORK");
const HUMAN: &str = "tessera-human";

static CARRIED: OnceLock<BuiltInNetworks> = OnceLock::new();

/// Network files that are compiled into a program.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInNetworks {
    /// The file that nets/default names, if it existed at build time.
    main: Option<&'static [u8]>,
    /// nets/tessera-human.pt, if it existed at build time.
    human: Option<&'static [u8]>,
}

/// Registers `networks` as the program's built-in networks. Call this once, at program start.
pub fn carry(networks: BuiltInNetworks) {
    let _ = CARRIED.set(networks);
}

/// Returns the contents of the network file that `options` name.
///
/// # Errors
/// [`LoadError`] if the file or the network does not exist.
pub fn network_file(options: &NetworkOptions) -> Result<Cow<'static, [u8]>, LoadError> {
    read(options.net.as_deref(), options.built_in)
}

/// Returns the contents of a network file. `None` means the built-in network.
///
/// # Errors
/// [`LoadError`] if the file or the network does not exist.
pub fn read_network(net: Option<&Path>) -> Result<Cow<'static, [u8]>, LoadError> {
    read(net, BuiltIn::Main)
}

/// Reads the named file. If none is given, reads the built-in network or, if the program does not
/// contain it, the network's file next to the program.
pub(super) fn read(net: Option<&Path>, built_in: BuiltIn) -> Result<Cow<'static, [u8]>, LoadError> {
    if let Some(path) = net {
        return read_file(path);
    }
    match carried(built_in) {
        Some(file) => Ok(Cow::Borrowed(file)),
        None => read_file(&instead_of(built_in).ok_or(match built_in {
            BuiltIn::Main => LoadError::NoneBuiltIn,
            BuiltIn::Human => LoadError::NoHumanBuiltIn,
        })?),
    }
}

/// Returns a network that the program contains.
fn carried(built_in: BuiltIn) -> Option<&'static [u8]> {
    let carried = CARRIED.get()?;
    match built_in {
        BuiltIn::Main => carried.main,
        BuiltIn::Human => carried.human,
    }
}

/// Returns the file next to the program that takes the place of a built-in network, if the program
/// does not contain that network.
pub(super) fn instead_of(built_in: BuiltIn) -> Option<PathBuf> {
    let name = match built_in {
        BuiltIn::Main => MAIN,
        BuiltIn::Human => Some(HUMAN),
    };
    match carried(built_in) {
        Some(_) => None,
        None => name.and_then(shipped::beside),
    }
}

fn read_file(path: &Path) -> Result<Cow<'static, [u8]>, LoadError> {
    let file = bounded::read_regular(path, LARGEST_FILE);
    file.map(Cow::Owned).map_err(|source| {
        let path = path.to_owned();
        LoadError::Read { path, source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carried_network_is_the_file_beside_the_program() {
        let beside = [BuiltIn::Main, BuiltIn::Human].map(|network| read(None, network).unwrap());
        assert!(beside.each_ref().map(|file| Some(&**file)) == [NETWORKS.main, NETWORKS.human]);
        carry(NETWORKS);
        let carried = [BuiltIn::Main, BuiltIn::Human].map(|network| read(None, network).unwrap());
        assert!(carried.iter().all(|file| matches!(file, Cow::Borrowed(_))));
        assert!(carried == beside);
    }
}
