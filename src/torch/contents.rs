//! Opens network files. Metadata and tensors are read without libtorch if possible, so that no code
//! in the file runs.

use super::archive::Archive;
use super::pickle::{Object, Pickle};
use super::{Module, NetworkError, check, open, parse, tensor_hash};
use crate::backend::{CodePolicy, Metadata};
use tch::Tensor;

/// Maximum nesting depth of objects.
const MOST_NESTED: usize = 32;

/// An open network file.
pub(crate) struct NetworkFile<'f> {
    bytes: &'f [u8],
    policy: CodePolicy,
    /// The file's metadata. Tensors are checked against the hash in the metadata when they are
    /// read.
    pub metadata: Metadata,
    /// The archive, until the tensors have been read from it.
    archive: Option<Archive<'f>>,
    /// The module, once libtorch has opened the file.
    module: Option<Module>,
}

impl<'f> NetworkFile<'f> {
    /// Opens a file. Files that only libtorch can read, such as those of contract version 1, are
    /// opened with [`open`].
    ///
    /// # Errors
    /// [`NetworkError`] if the file is not a network of this engine or is damaged.
    pub fn open(bytes: &'f [u8], policy: CodePolicy) -> Result<NetworkFile<'f>, NetworkError> {
        let (archive, metadata, module) = match directory(bytes) {
            Some((archive, metadata)) => (Some(archive), metadata, None),
            None => {
                let (module, metadata) = open(bytes, policy)?;
                (None, metadata, Some(module))
            }
        };
        Ok(NetworkFile {
            bytes,
            policy,
            metadata,
            archive,
            module,
        })
    }

    /// Returns the file's tensors by name, as exported.
    ///
    /// # Errors
    /// [`NetworkError`] if the file is damaged.
    pub fn tensors(&mut self) -> Result<Vec<(String, Tensor)>, NetworkError> {
        let archive = self.archive.take();
        match archive.and_then(|archive| tensors(archive, &self.metadata)) {
            Some(tensors) => Ok(tensors),
            None => Ok(self.module()?.tensors()?),
        }
    }

    /// Returns the program in the file, which [`open`] checks.
    ///
    /// # Errors
    /// The same as for [`open`].
    pub fn into_module(mut self) -> Result<Module, NetworkError> {
        self.module()?;
        Ok(self.module.expect("it was opened"))
    }

    fn module(&mut self) -> Result<&Module, NetworkError> {
        match &mut self.module {
            Some(module) => Ok(module),
            none => Ok(none.insert(open(self.bytes, self.policy)?.0)),
        }
    }
}

/// Returns the metadata of a network file and its tensors by name, as [`NetworkFile`] reads them.
///
/// # Errors
/// [`NetworkError`] if the file is not a network of this engine or is damaged.
pub(crate) fn contents(
    file: &[u8],
    policy: CodePolicy,
) -> Result<(Metadata, Vec<(String, Tensor)>), NetworkError> {
    let mut file = NetworkFile::open(file, policy)?;
    let tensors = file.tensors()?;
    Ok((file.metadata, tensors))
}

/// Returns the metadata of a network file after checking the file. The file's code runs only if the
/// file can be read by libtorch alone.
///
/// # Errors
/// The same as for [`open`].
pub fn describe(file: &[u8], policy: CodePolicy) -> Result<Metadata, NetworkError> {
    let is_harmless = policy == CodePolicy::Allowed || check::check(file).is_ok();
    let read = directory(file).filter(|_| is_harmless);
    let read = read.and_then(|(archive, metadata)| {
        tensors(archive, &metadata)?;
        Some(metadata)
    });
    match read {
        Some(metadata) => Ok(metadata),
        None => Ok(open(file, policy)?.1),
    }
}

/// Returns `None` if the file was not written by our exporters or is damaged.
fn directory(file: &[u8]) -> Option<(Archive<'_>, Metadata)> {
    let mut archive = Archive::open(file).ok()?;
    let is_little = !archive.has("byteorder") || archive.entry("byteorder").ok()? == b"little";
    if archive.is_checkpoint() || !is_little {
        return None;
    }
    let metadata = parse(&check::metadata(&mut archive).ok()??).ok()?;
    Some((archive, metadata))
}

/// Returns `None` if the tensors were not written by our exporters or do not match the metadata.
fn tensors(mut archive: Archive, metadata: &Metadata) -> Option<Vec<(String, Tensor)>> {
    let data = archive.unpacked("data.pkl", check::MOST_PICKLE).ok()?;
    let pickle = Pickle::read_script(&data).ok()?;
    let mut tensors = Tensors {
        pickle: &pickle,
        archive,
        found: Vec::new(),
    };
    tensors.collect(pickle.root(), "", 0)?;
    let found = tensors.found;
    let hashed = found
        .iter()
        .map(|(name, it)| (name.clone(), it.shallow_clone()));
    (tensor_hash(hashed) == metadata.hash).then_some(found)
}

/// Collects the tensors in a pickle.
struct Tensors<'a, 'f> {
    pickle: &'a Pickle<'a>,
    archive: Archive<'f>,
    found: Vec<(String, Tensor)>,
}

impl Tensors<'_, '_> {
    /// Collects the tensors of the object at `path`.
    fn collect(&mut self, object: &Object, path: &str, depth: usize) -> Option<()> {
        let &Object::Instance(_, Some(attributes)) = object else {
            return None;
        };
        let Object::Dict(attributes) = self.pickle.get(attributes) else {
            return None;
        };
        for &(name, value) in attributes {
            let Object::Text(name) = self.pickle.get(name) else {
                return None;
            };
            let name = format!("{path}{name}");
            match self.pickle.get(value) {
                Object::Tensor(view) => {
                    let bytes = self.archive.entry(&format!("data/{}", view.storage.key));
                    self.found.push((name, view.tensor(bytes.ok()?)?));
                }
                object @ Object::Instance(..) if depth < MOST_NESTED => {
                    self.collect(object, &format!("{name}."), depth + 1)?;
                }
                Object::Instance(..) => return None,
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Vec<u8> {
        let path = format!("{}/nets/{name}.pt", env!("CARGO_MANIFEST_DIR"));
        std::fs::read(path).unwrap()
    }

    #[test]
    fn tensors_are_those_that_libtorch_reads() {
        let sorted = |mut tensors: Vec<(String, Tensor)>| {
            tensors.sort_by(|(left, _), (right, _)| left.cmp(right));
            tensors
        };
        for name in ["tessera-xs", "tessera-human"] {
            let file = shipped(name);
            let (archive, metadata) = directory(&file).unwrap();
            let found = tensors(archive, &metadata).unwrap();
            let (module, expected) = open(&file, CodePolicy::Checked).unwrap();
            assert_eq!(metadata, expected);
            assert_eq!(sorted(found), sorted(module.tensors().unwrap()));
        }
    }

    #[test]
    fn damaged_files_are_left_to_libtorch() {
        let file = shipped("tessera-xs");
        assert!(directory(&file[..file.len() / 2]).is_none());
        let mut damaged = file.clone();
        damaged[file.len() / 2] ^= 1;
        let read = directory(&damaged).and_then(|(archive, it)| tensors(archive, &it));
        assert!(read.is_none());
    }

    /// An object that contained itself twice would yield a tensor for each path through it, and the
    /// number of paths grows exponentially with the depth.
    #[test]
    fn objects_have_one_place() {
        let own = b"\x80\x02c__torch__\nA\n)\x81q\x00}(X\x01\x00\x00\x00ah\x00\
            X\x01\x00\x00\x00bh\x00ub.";
        assert!(Pickle::read_script(own).is_err());
        // Checkpoints cannot contain objects.
        assert!(Pickle::read(own).is_err());
    }
}
