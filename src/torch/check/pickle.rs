//! Checks the pickle of a network file: it must create one object of the code's classes, which
//! consists of tensors, strings and other objects.

use super::code::{Class, Classes, Type};
use super::{Refusal, excerpt};
use crate::torch::pickle::{Callable, Id, Object, Pickle, PickleError};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting depth of objects, because libtorch recurses into them.
const MOST_NESTED: usize = 32;

/// The size in bytes of each storage that contains tensors, by the name of its record in `data/`.
pub(super) type Storages<'a> = BTreeMap<&'a str, usize>;

/// Reads the pickle of a network whose code defines these classes. Checks that each tensor lies
/// within its storage, and returns the storages of all tensors.
///
/// # Errors
/// [`Refusal`] for the first operation that our exporters do not write.
pub(super) fn read<'a>(bytes: &'a [u8], classes: &Classes) -> Result<Storages<'a>, Refusal> {
    let pickle = Pickle::read_script(bytes).map_err(|error| match error {
        PickleError::Operation(operation) => Refusal::Operation(operation),
        PickleError::Global(name) => Refusal::Global(name),
        PickleError::Bounds => Refusal::Bounds,
        PickleError::Senseless(at) => Refusal::Senseless(at),
        PickleError::TooLarge(_) | PickleError::Truncated => Refusal::Senseless(bytes.len()),
    })?;
    let mut storages = Storages::new();
    for object in &pickle.objects {
        match object {
            Object::Callable(Callable::Class(class)) if !classes.contains_key(*class) => {
                return Err(Refusal::Global(excerpt(&format!("__torch__.{class}"))));
            }
            Object::Storage(storage) => {
                let bytes = storage.bytes().ok_or(Refusal::Bounds)?;
                storages.insert(storage.key, bytes);
            }
            _ => {}
        }
    }
    match pickle.root() {
        &Object::Instance(class, Some(attributes)) => {
            check(&pickle, classes, class, attributes, 1)?;
            Ok(storages)
        }
        _ => Err(Refusal::Senseless(bytes.len())),
    }
}

/// Checks that an object and its children have exactly the attributes of their classes.
fn check(
    pickle: &Pickle,
    classes: &Classes,
    class: &str,
    attributes: Id,
    depth: usize,
) -> Result<(), Refusal> {
    if depth > MOST_NESTED {
        return Err(Refusal::Nested(MOST_NESTED));
    }
    let others = || Refusal::Attributes(excerpt(class));
    let Object::Dict(attributes) = pickle.get(attributes) else {
        return Err(others());
    };
    let declared = &classes[class];
    let mut names = BTreeSet::new();
    for &(name, value) in attributes {
        let Object::Text(name) = pickle.get(name) else {
            return Err(others());
        };
        let value = pickle.get(value);
        if !names.insert(*name) || !is_declared(declared, name, value) {
            return Err(others());
        }
        if let &Object::Instance(class, Some(attributes)) = value {
            check(pickle, classes, class, attributes, depth + 1)?;
        }
    }
    match names.len() == declared.len() {
        true => Ok(()),
        false => Err(others()),
    }
}

/// Returns whether a class declares an attribute of this name and type.
fn is_declared(class: &Class, name: &str, value: &Object) -> bool {
    match (class.get(name), value) {
        (Some(Type::Tensor), Object::Tensor(_)) | (Some(Type::Text), Object::Text(_)) => true,
        (Some(Type::Class(declared)), Object::Instance(class, _)) => declared == class,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
