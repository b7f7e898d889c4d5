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
    objects: Vec<Object<'a>>,
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

    /// Returns all objects that the operations have created.
    pub fn objects(&self) -> &[Object<'a>] {
        &self.objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(bytes: &[u8]) -> String {
        Pickle::read(bytes).unwrap_err().to_string()
    }

    /// The outputs of `pickle.dumps({"a": (1, -2, 300, 2 ** 40, 0.5), "b": [None, True]})` with
    /// protocols 2 and 4.
    const PROTOCOLS: [&[u8]; 2] = [
        b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01(K\x01J\xfe\xff\xff\xffM,\x01\x8a\x06\x00\x00\x00\x00\x00\x01G?\xe0\x00\x00\x00\x00\x00\x00tq\x02X\x01\x00\x00\x00bq\x03]q\x04(N\x88eu.",
        b"\x80\x04\x95,\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94(K\x01J\xfe\xff\xff\xffM,\x01\x8a\x06\x00\x00\x00\x00\x00\x01G?\xe0\x00\x00\x00\x00\x00\x00t\x94\x8c\x01b\x94]\x94(N\x88eu.",
    ];

    #[test]
    fn plain_data_is_read_in_every_protocol() {
        for bytes in PROTOCOLS {
            let pickle = Pickle::read(bytes).unwrap();
            let Object::Dict(entries) = pickle.root() else {
                panic!("{:?}", pickle.root());
            };
            let [(a, numbers), (b, others)] = entries[..] else {
                panic!("{entries:?}");
            };
            assert!(matches!(pickle.get(a), Object::Text("a")));
            assert!(matches!(pickle.get(b), Object::Text("b")));
            let Object::Tuple(numbers) = pickle.get(numbers) else {
                panic!("no tuple");
            };
            let numbers: Vec<f64> = numbers
                .iter()
                .map(|&id| match pickle.get(id) {
                    Object::Int(number) => *number as f64,
                    Object::Float(number) => *number,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(numbers, [1.0, -2.0, 300.0, (1u64 << 40) as f64, 0.5]);
            let Object::List(others) = pickle.get(others) else {
                panic!("no list");
            };
            assert!(matches!(pickle.get(others[0]), Object::None));
            assert!(matches!(pickle.get(others[1]), Object::Bool(true)));
        }
    }

    #[test]
    fn names_rejected_callables() {
        for (bytes, name) in [
            // The output of `pickle.dumps` for objects whose `__reduce__` returns these values.
            (
                &b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."[..],
                "posix.system",
            ),
            (
                b"\x80\x04\x8c\x08builtins\x94\x8c\x04eval\x94\x93\x94)R.",
                "builtins.eval",
            ),
            (b"cos\nsystem\n(S'id'\ntR.", "os.system"),
            (b"\x80\x02ctorch\nload\n)R.", "torch.load"),
            (
                b"\x80\x02ccollections\nOrderedDict.__init__\n)R.",
                "OrderedDict.__init__",
            ),
            (
                b"\x80\x02ctorch._utils\n_rebuild_tensor\n)R.",
                "_rebuild_tensor",
            ),
            (b"\x80\x02ca\x1b[2J\nb\n.", "a\\u{1b}[2J.b"),
        ] {
            let told = error(bytes);
            assert!(
                told.contains(name) && told.contains("was not run"),
                "{told}"
            );
        }
        // INST, OBJ, NEWOBJ, EXT1 and PERSID are other ways to name or create something.
        for operation in [
            &b"(ios\nsystem\n."[..],
            b"(o.",
            b"))\x81.",
            b"\x82\x01.",
            b"P1\n.",
        ] {
            let told = error(operation);
            assert!(told.contains("unsupported opcode 0x"), "{told}");
        }
        let long = [b"c", "m".repeat(1000).as_bytes(), b"\nn\n."].concat();
        assert!(error(&long).len() < 300);
    }

    #[test]
    fn operations_without_what_they_work_on_are_refused() {
        for bytes in [
            &b"."[..],
            b"t.",
            b"N)R.",
            b")NR.",
            b"ccollections\nOrderedDict\nN\x85R.",
            b"ctorch\nFloatStorage\n)R.",
            b"ctorch._utils\n_rebuild_tensor_v2\n)R.",
            b"ctorch._utils\n_rebuild_parameter\nN\x85R.",
            b"N)Q.",
            b"NQ.",
            b"]Na}b.",
            b"N}b.",
            b"]b.",
            b"}Ns.",
            b"}(Nu.",
            b"NNa.",
            b"h\x07.",
            b"N(\x85.",
            b"N(q\x00.",
            b"NN\x93.",
            b"X\x01\x00\x00\x00\xff.",
            b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00.",
        ] {
            let told = error(bytes);
            assert!(told.contains("malformed at byte"), "{bytes:?}: {told}");
        }
        for bytes in [
            &b""[..],
            b"N",
            b"X\xff\xff\xff\xffa.",
            b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
            b"\x8a\xff\x00.",
            b"cos",
            b"G\x00",
        ] {
            assert!(error(bytes).contains("too early"), "{bytes:?}");
        }
    }

    /// Pickles that are deeply nested, contain themselves or refer to objects repeatedly do not
    /// take more memory than their length allows.
    #[test]
    fn bombs_are_only_as_large_as_they_are() {
        let repeat = |bytes: &[u8], times: usize| bytes.repeat(times);
        let most = MOST_BYTES - 2;
        for (bomb, sense) in [
            (repeat(b"]", most), true),
            (repeat(b"(", most), false),
            ([b")", &repeat(b"\x85", most - 1)[..]].concat(), true),
            ([b"]q\x00", &repeat(b"h\x00a", most / 4)[..]].concat(), true),
            ([b"]", &repeat(b"\x94", most - 1)[..]].concat(), true),
            // Each list contains the previous one twice.
            (
                [b"]", &repeat(b"q\x00]h\x00ah\x00a", most / 10)[..]].concat(),
                true,
            ),
            // Large stacks are popped and pushed again.
            (
                [&repeat(b"N", most / 2)[..], &repeat(b"Na", most / 4)[..]].concat(),
                false,
            ),
        ] {
            let bomb = [&bomb[..], b"."].concat();
            assert_eq!(Pickle::read(&bomb).is_ok(), sense);
        }
        let told = error(&repeat(b"N", MOST_BYTES + 1));
        assert!(told.contains("too large"), "{told}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Pickle::read(&bytes);
            let _ = Pickle::read_script(&bytes);
        }

        /// Bytes that are mostly operations reach more of the interpreter than random bytes.
        #[test]
        fn no_operations_make_it_panic(
            bytes in prop::collection::vec(
                prop::sample::select(&b"(N)]}atesuqhQRb.K\x00\x01\x81\x85\x86\x87\x88\x94\x93"[..]),
                0..200,
            ),
        ) {
            let _ = Pickle::read(&bytes);
            let _ = Pickle::read_script(&bytes);
        }
    }
}
