//! Interprets the pickles of checkpoints and network files. Only dictionaries of tensors, and
//! objects with tensors, are supported.
//!
//! A pickle is a program for a stack machine with a memory. In this interpreter, its operations can
//! create only plain data. The interpreter knows the names of the callables that `torch.save`
//! needs, and computes their results itself. A pickle cannot name any other callables. Every
//! operation creates at most one object, and objects are never copied. Memory use is therefore at
//! most a small multiple of the pickle's length, even if the pickle is deeply nested or refers to
//! itself.
//!
//! Operations are named as in Python's module `pickletools`, which describes the protocols.
//!
//! The pickle of a file with code is later read by libtorch's own interpreter, which trusts it. In
//! such pickles, every operation must therefore be used as our exporters use it: each object occurs
//! in one place, and no two tensors share a storage.

mod machine;
mod tensor;

use machine::Machine;
use tch::Kind;
use tensor::Storage;
pub(crate) use tensor::View;

/// Maximum size of a pickle in bytes. The pickles of networks with hundreds of tensors, including
/// the optimizer state, are a tenth as large.
const MOST_BYTES: usize = 2 << 20;

/// Maximum number of characters of a rejected name that are shown.
const LONGEST_NAME: usize = 80;

/// Why a pickle is rejected.
#[derive(Debug, thiserror::Error)]
pub enum PickleError {
    /// The pickle has more bytes than tensor descriptions need.
    #[error("it is too large: {0} bytes")]
    TooLarge(usize),
    /// The pickle ends without a STOP operation.
    #[error("it ends too early")]
    Truncated,
    /// The pickle contains an operation that dictionaries of tensors do not need.
    #[error("unsupported opcode 0x{0:02x} in its pickle")]
    Operation(u8),
    /// The pickle names a callable or class that dictionaries of tensors do not need. The callable
    /// was not called.
    #[error(
        "unsupported global `{0}`, which was not run: save `model.state_dict()` alone, if you trust the file"
    )]
    Global(String),
    /// A tensor in a file with code lies outside its storage.
    #[error("a tensor lies outside of its storage")]
    Bounds,
    /// An operation's operands have the wrong types.
    #[error("it is malformed at byte {0}")]
    Senseless(usize),
}

/// The index of an object among the objects of its pickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(u32);

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum Object<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Callable(Callable<'a>),
    Storage(Box<Storage<'a>>),
    Tensor(Box<View<'a>>),
    /// An object of a class in the file's code, with the dictionary of its attributes.
    Instance(&'a str, Option<Id>),
}

/// A global that a pickle may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callable<'a> {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    /// The class of a storage, identified by its dtype.
    Storage(Kind),
    /// A class in the file's code.
    Class(&'a str),
}

impl<'a> Callable<'a> {
    fn find(module: &str, name: &'a str, has_code: bool) -> Result<Callable<'a>, PickleError> {
        let kind = match (module, name) {
            ("collections", "OrderedDict") => return Ok(Callable::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => return Ok(Callable::RebuildTensor),
            ("torch._utils", "_rebuild_parameter") if !has_code => {
                return Ok(Callable::RebuildParameter);
            }
            ("__torch__", _) if has_code => return Ok(Callable::Class(name)),
            ("torch", "DoubleStorage") => Kind::Double,
            ("torch", "FloatStorage") => Kind::Float,
            ("torch", "HalfStorage") => Kind::Half,
            ("torch", "BFloat16Storage") => Kind::BFloat16,
            ("torch", "LongStorage") => Kind::Int64,
            ("torch", "IntStorage") => Kind::Int,
            ("torch", "ShortStorage") => Kind::Int16,
            ("torch", "CharStorage") => Kind::Int8,
            ("torch", "ByteStorage") => Kind::Uint8,
            ("torch", "BoolStorage") => Kind::Bool,
            _ => {
                let name = format!("{module}.{name}");
                let told = name.chars().take(LONGEST_NAME);
                let told: String = told.flat_map(char::escape_debug).collect();
                return Err(PickleError::Global(told));
            }
        };
        Ok(Callable::Storage(kind))
    }
}

/// All objects that a pickle has created.
#[derive(Debug)]
pub(crate) struct Pickle<'a> {
    /// All objects that the operations have created.
    pub objects: Vec<Object<'a>>,
    root: Id,
}

impl<'a> Pickle<'a> {
    /// Reads a pickle of plain data and tensors.
    pub fn read(bytes: &'a [u8]) -> Result<Pickle<'a>, PickleError> {
        Pickle::run(bytes, false)
    }

    /// Reads the pickle of a file with code, which may contain objects of the code's classes.
    pub fn read_script(bytes: &'a [u8]) -> Result<Pickle<'a>, PickleError> {
        Pickle::run(bytes, true)
    }

    fn run(bytes: &'a [u8], has_code: bool) -> Result<Pickle<'a>, PickleError> {
        if bytes.len() > MOST_BYTES {
            return Err(PickleError::TooLarge(bytes.len()));
        }
        let (objects, root) = Machine::new(bytes, has_code).run()?;
        Ok(Pickle { objects, root })
    }

    /// Returns the pickled object.
    pub fn root(&self) -> &Object<'a> {
        self.get(self.root)
    }

    pub fn get(&self, id: Id) -> &Object<'a> {
        &self.objects[id.0 as usize]
    }
}

#[cfg(test)]
mod tests;
