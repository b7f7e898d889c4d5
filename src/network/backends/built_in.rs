//! The networks compiled into a program.
//!
//! The library adds none to a program by itself: the engine [carries](carry) them, so that it
//! plays wherever it is copied. Programs that do not (`train`, the examples) are 7 MB smaller
//! and read the same networks from the folder `nets` beside them.

use super::error::LoadError;
use super::networks::read_file;
use crate::backend::{BuiltIn, shipped};
use std::borrow::Cow;
use std::sync::OnceLock;

/// The networks of this build, for [`carry`].
pub const NETWORKS: BuiltInNetworks = BuiltInNetworks {
    main: include!(concat!(env!("OUT_DIR"), "/embedded.rs")),
    human: include!(concat!(env!("OUT_DIR"), "/embedded_human.rs")),
};

/// The network that nets/default named at build time, without its ending.
const MAIN: Option<&str> = option_env!("TESSERA_DEFAULT_NETWORK");
const HUMAN: &str = "tessera-human";

static CARRIED: OnceLock<BuiltInNetworks> = OnceLock::new();

/// Network files in a program's data.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInNetworks {
    /// The file that nets/default names, if it existed at build time.
    main: Option<&'static [u8]>,
    /// nets/tessera-human.pt, if it existed at build time.
    human: Option<&'static [u8]>,
}

/// Makes `networks` those of [`BuiltIn`]; call it once, at the start of a program.
pub fn carry(networks: BuiltInNetworks) {
    let _ = CARRIED.set(networks);
}

/// Returns a built-in network, or its file beside the program.
pub(super) fn read(network: BuiltIn) -> Result<Cow<'static, [u8]>, LoadError> {
    let (carried, name, error): (_, _, fn() -> LoadError) = match network {
        BuiltIn::Main => (CARRIED.get().and_then(|carried| carried.main), MAIN, || {
            LoadError::NoneBuiltIn
        }),
        BuiltIn::Human => (
            CARRIED.get().and_then(|carried| carried.human),
            Some(HUMAN),
            || LoadError::NoHumanBuiltIn,
        ),
    };
    if let Some(file) = carried {
        return Ok(Cow::Borrowed(file));
    }
    let beside = name.and_then(shipped::beside).ok_or_else(error)?;
    read_file(&beside).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carried_network_is_the_file_beside_the_program() {
        let beside = [BuiltIn::Main, BuiltIn::Human].map(|network| read(network).unwrap());
        assert!(beside.each_ref().map(|file| Some(&**file)) == [NETWORKS.main, NETWORKS.human]);
        carry(NETWORKS);
        let carried = [BuiltIn::Main, BuiltIn::Human].map(|network| read(network).unwrap());
        assert!(carried.iter().all(|file| matches!(file, Cow::Borrowed(_))));
        assert!(carried == beside);
    }
}
