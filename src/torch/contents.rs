//! Opens network files. Metadata and tensors are read without libtorch if possible, so that no code
//! in the file runs.

use super::archive::Archive;
use super::check::{self, CheckError};
use super::pickle::{Object, Pickle};
use super::{Module, NetworkError, process, tensor_hash};
use crate::backend::{CodePolicy, Metadata};
use tch::Tensor;

/// The first bytes of a zip archive.
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// Maximum nesting depth of objects.
const MOST_NESTED: usize = 32;

/// An open network file.
#[derive(Debug)]
pub(crate) struct NetworkFile<'f> {
    bytes: &'f [u8],
    policy: CodePolicy,
    archive: Archive<'f>,
    /// The file's metadata. Tensors are checked against the hash in the metadata when they are
    /// read.
    pub metadata: Metadata,
}

impl<'f> NetworkFile<'f> {
    /// Opens a file and reads its metadata. The rest of the file is not checked yet.
    ///
    /// # Errors
    /// [`NetworkError`] if the file is not a network of this engine or is damaged.
    pub fn open(bytes: &'f [u8], policy: CodePolicy) -> Result<NetworkFile<'f>, NetworkError> {
        process::prepare();
        if !bytes.starts_with(&ZIP) {
            return Err(NetworkError::OtherFormat);
        }
        let archive = Archive::open(bytes).map_err(CheckError::from)?;
        if archive.is_checkpoint() {
            return Err(NetworkError::OtherFormat);
        }
        let json = check::metadata(&mut archive.clone()).map_err(CheckError::from)?;
        let metadata = Metadata::parse(&json.ok_or(NetworkError::Foreign)?)?;
        Ok(NetworkFile {
            bytes,
            policy,
            archive,
            metadata,
        })
    }

    /// Returns the file's tensors by name, as exported.
    ///
    /// # Errors
    /// [`NetworkError`] if the file is damaged.
    pub fn tensors(&self) -> Result<Vec<(String, Tensor)>, NetworkError> {
        match tensors(self.archive.clone(), &self.metadata) {
            Some(tensors) => Ok(tensors),
            None => Ok(self.module()?.tensors()?),
        }
    }

    /// Returns the program in the file, on the CPU. Unless the policy allows all code, the file is
    /// [checked](check) before any of its code runs.
    ///
    /// # Errors
    /// [`NetworkError`] if the file is damaged, or contains code that our exporters do not write.
    pub fn module(&self) -> Result<Module, NetworkError> {
        let module = match self.policy {
            CodePolicy::Allowed => Module::load(self.bytes),
            CodePolicy::Checked => Module::load(&check::check(self.archive.clone())?),
        };
        let module = module.map_err(|error| match error.is_out_of_memory() {
            true => NetworkError::OutOfMemory(error.to_string()),
            false => NetworkError::NotTorchScript(error.to_string()),
        })?;
        match tensor_hash(module.tensors()?) == self.metadata.hash {
            true => Ok(module),
            false => Err(NetworkError::Hash),
        }
    }
}

/// Opens a network file. Returns the exported module, on the CPU, and its checked metadata. Unless
/// the policy allows all code, the file is [checked](check) before any of its code runs.
///
/// # Errors
/// [`NetworkError`] if the file is not a network of this engine, is damaged, or contains code that
/// our exporters do not write.
pub fn open(file: &[u8], policy: CodePolicy) -> Result<(Module, Metadata), NetworkError> {
    let file = NetworkFile::open(file, policy)?;
    Ok((file.module()?, file.metadata))
}

/// Returns the metadata of a network file and its tensors by name, as [`NetworkFile`] reads them.
///
/// # Errors
/// [`NetworkError`] if the file is not a network of this engine or is damaged.
pub(crate) fn contents(
    file: &[u8],
    policy: CodePolicy,
) -> Result<(Metadata, Vec<(String, Tensor)>), NetworkError> {
    let file = NetworkFile::open(file, policy)?;
    let tensors = file.tensors()?;
    Ok((file.metadata, tensors))
}

/// Returns the metadata of a network file after checking the file. The file's code runs only if the
/// policy allows all code and the tensors can be read by libtorch alone.
///
/// # Errors
/// The same as for [`open`].
pub fn describe(file: &[u8], policy: CodePolicy) -> Result<Metadata, NetworkError> {
    let file = NetworkFile::open(file, policy)?;
    if policy == CodePolicy::Checked {
        check::check(file.archive.clone())?;
    }
    file.tensors()?;
    Ok(file.metadata)
}

/// Returns `None` if the tensors were not written by our exporters or do not match the metadata.
fn tensors(mut archive: Archive, metadata: &Metadata) -> Option<Vec<(String, Tensor)>> {
    if archive.has("byteorder") && archive.entry("byteorder").ok()? != b"little" {
        return None;
    }
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
            let file = NetworkFile::open(&file, CodePolicy::Checked).unwrap();
            let found = tensors(file.archive.clone(), &file.metadata).unwrap();
            let expected = file.module().unwrap().tensors().unwrap();
            assert_eq!(sorted(found), sorted(expected));
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let mut file = shipped("tessera-xs");
        let half = NetworkFile::open(&file[..file.len() / 2], CodePolicy::Checked);
        assert!(matches!(half, Err(NetworkError::NotTorchScript(_))));
        let middle = file.len() / 2;
        file[middle] ^= 1;
        let file = NetworkFile::open(&file, CodePolicy::Checked).unwrap();
        let error = file.tensors().unwrap_err();
        assert!(matches!(error, NetworkError::NotTorchScript(_)), "{error}");
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
