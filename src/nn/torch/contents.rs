//! What a network file holds besides its program, read without libtorch: nothing of the
//! file runs.

use super::archive::Archive;
use super::pickle::{Id, Object, Pickle};
use super::{NetworkError, check, open, tensor_hash};
use crate::nn::{CodePolicy, Metadata};
use std::collections::HashSet;
use tch::Tensor;

/// How deep objects may nest.
const MOST_NESTED: usize = 32;

/// The metadata of a network file and its tensors by name, as they were exported. What
/// only libtorch reads, such as files of version 1 of the contract, it reads as
/// [`open`] does.
///
/// # Errors
/// [`NetworkError`] if it is not a network of this engine, or is damaged.
pub(crate) fn contents(
    file: &[u8],
    policy: CodePolicy,
) -> Result<(Metadata, Vec<(String, Tensor)>), NetworkError> {
    if let Some(contents) = read(file) {
        return Ok(contents);
    }
    let (module, metadata) = open(file, policy)?;
    Ok((metadata, module.tensors()?))
}

/// `None` if the file is not what exporters of ours write, or is damaged.
fn read(file: &[u8]) -> Option<(Metadata, Vec<(String, Tensor)>)> {
    let mut archive = Archive::open(file).ok()?;
    let is_little = !archive.has("byteorder") || archive.entry("byteorder").ok()? == b"little";
    if archive.is_checkpoint() || !is_little {
        return None;
    }
    let metadata = Metadata::parse(&check::metadata(&mut archive).ok()??).ok()?;
    let data = archive.unpacked("data.pkl", check::MOST_PICKLE).ok()?;
    let pickle = Pickle::read_script(&data).ok()?;
    let mut tensors = Tensors {
        pickle: &pickle,
        archive,
        storages: HashSet::new(),
        objects: HashSet::new(),
        found: Vec::new(),
    };
    tensors.collect(pickle.root(), "", 0)?;
    let found = tensors.found;
    let hashed = found
        .iter()
        .map(|(name, it)| (name.clone(), it.shallow_clone()));
    (tensor_hash(hashed) == metadata.hash).then_some((metadata, found))
}

/// The tensors of a pickle while they are collected.
struct Tensors<'a, 'f> {
    pickle: &'a Pickle<'a>,
    archive: Archive<'f>,
    /// What has been met: a storage belongs to one tensor, and an object to one other.
    storages: HashSet<&'a str>,
    objects: HashSet<Id>,
    found: Vec<(String, Tensor)>,
}

impl<'a> Tensors<'a, '_> {
    /// Those of an object, whose name is `path`.
    fn collect(&mut self, object: &'a Object<'a>, path: &str, depth: usize) -> Option<()> {
        let Object::Instance(Some(attributes)) = object else {
            return None;
        };
        if !self.objects.insert(*attributes) {
            return None;
        }
        let Object::Dict(attributes) = self.pickle.get(*attributes) else {
            return None;
        };
        for &(name, value) in attributes {
            let Object::Text(name) = self.pickle.get(name) else {
                return None;
            };
            let name = format!("{path}{name}");
            match self.pickle.get(value) {
                Object::Tensor(view) => {
                    let key = view.storage.key;
                    if !self.storages.insert(key) {
                        return None;
                    }
                    let bytes = self.archive.entry(&format!("data/{key}")).ok()?;
                    self.found.push((name, view.tensor(bytes)?));
                }
                object @ Object::Instance(_) if depth < MOST_NESTED => {
                    self.collect(object, &format!("{name}."), depth + 1)?;
                }
                Object::Instance(_) => return None,
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
            let (metadata, found) = read(&file).unwrap();
            let (module, expected) = open(&file, CodePolicy::Checked).unwrap();
            assert_eq!(metadata, expected);
            assert_eq!(sorted(found), sorted(module.tensors().unwrap()));
        }
    }

    #[test]
    fn damaged_files_are_left_to_libtorch() {
        let file = shipped("tessera-xs");
        assert!(read(&file[..file.len() / 2]).is_none());
        let mut damaged = file.clone();
        damaged[file.len() / 2] ^= 1;
        assert!(read(&damaged).is_none());
    }

    /// An object that holds itself twice, which has as many tensors as paths lead there.
    #[test]
    fn objects_have_one_place() {
        let own = b"\x80\x02c__torch__\nA\n)\x81q\x00}(X\x01\x00\x00\x00ah\x00\
            X\x01\x00\x00\x00bh\x00ub.";
        let pickle = Pickle::read_script(own).unwrap();
        assert!(matches!(pickle.root(), Object::Instance(Some(_))));
        let file = shipped("tessera-xs");
        let mut tensors = Tensors {
            pickle: &pickle,
            archive: Archive::open(&file).unwrap(),
            storages: HashSet::new(),
            objects: HashSet::new(),
            found: Vec::new(),
        };
        assert!(tensors.collect(pickle.root(), "", 0).is_none());
        // Checkpoints have no objects.
        assert!(Pickle::read(own).is_err());
    }
}
