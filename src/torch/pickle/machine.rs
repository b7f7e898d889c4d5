//! The stack machine that runs pickles.

use super::tensor::{MOST_DIMENSIONS, Storage, View};
use super::{Callable, Id, Object, PickleError};
use std::collections::{HashMap, HashSet};

/// Maximum length of a storage's name.
const LONGEST_KEY: usize = 32;

/// The first bytes of a pickle in a file with code: the protocol version that libtorch writes.
const BEGINNING: [u8; 2] = [0x80, 2];

/// The operations that may follow these two bytes in the pickle of a file with code.
const OF_SCRIPTS: &[u8] = b".(KMJXcqrhj)t}uQRb\x81\x88\x89\x8a";

/// The state of the stack machine while it runs a pickle.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    /// Whether the pickle belongs to a file with code, and may therefore create objects of the
    /// file's classes.
    has_code: bool,
    /// The offset of the next operation.
    at: usize,
    objects: Vec<Object<'a>>,
    stack: Vec<Id>,
    /// The height of the stack at each mark.
    marks: Vec<usize>,
    memory: HashMap<u32, Id>,
    /// The storages that have occurred, in a file with code.
    keys: HashSet<&'a str>,
}

impl<'a> Machine<'a> {
    pub fn new(bytes: &'a [u8], has_code: bool) -> Machine<'a> {
        Machine {
            bytes,
            has_code,
            at: 0,
            objects: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memory: HashMap::new(),
            keys: HashSet::new(),
        }
    }

    /// Runs the pickle to its end. Returns all objects and the one on top of the stack.
    pub fn run(mut self) -> Result<(Vec<Object<'a>>, Id), PickleError> {
        if self.has_code && self.array()? != BEGINNING {
            return Err(self.senseless());
        }
        loop {
            if let Some(root) = self.step()? {
                return Ok((self.objects, root));
            }
        }
    }

    /// Runs one operation. The operation STOP returns the result.
    fn step(&mut self) -> Result<Option<Id>, PickleError> {
        let [operation] = self.array()?;
        if self.has_code && !OF_SCRIPTS.contains(&operation) {
            return Err(PickleError::Operation(operation));
        }
        match operation {
            // PROTO and FRAME: the version and the length are not needed.
            0x80 => drop(self.array::<1>()?),
            0x95 => drop(self.array::<8>()?),
            // STOP
            b'.' => {
                let root = self.pop()?;
                let is_all =
                    self.stack.is_empty() && self.marks.is_empty() && self.at == self.bytes.len();
                self.expect(is_all)?;
                return Ok(Some(root));
            }
            // MARK
            b'(' => self.marks.push(self.stack.len()),
            // NONE, NEWTRUE, NEWFALSE
            b'N' => self.push(Object::None),
            0x88 => self.push(Object::Bool(true)),
            0x89 => self.push(Object::Bool(false)),
            // BININT, BININT1, BININT2, LONG1
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.push(Object::Int(number.into()));
            }
            b'K' => {
                let [number] = self.array()?;
                self.push(Object::Int(number.into()));
            }
            b'M' => {
                let number = u16::from_le_bytes(self.array()?);
                self.push(Object::Int(number.into()));
            }
            0x8a => self.long()?,
            // BINFLOAT
            b'G' => {
                let number = f64::from_be_bytes(self.array()?);
                self.push(Object::Float(number));
            }
            // BINUNICODE, SHORT_BINUNICODE, BINUNICODE8
            b'X' => {
                let len = u32::from_le_bytes(self.array()?);
                self.text(len.into())?;
            }
            0x8c => {
                let [len] = self.array()?;
                self.text(len.into())?;
            }
            0x8d => {
                let len = u64::from_le_bytes(self.array()?);
                self.text(len)?;
            }
            // EMPTY_TUPLE, TUPLE1, TUPLE2, TUPLE3, TUPLE
            b')' => self.push(Object::Tuple(Vec::new())),
            0x85..=0x87 => {
                let items = self.last(usize::from(operation - 0x84))?;
                self.push(Object::Tuple(items));
            }
            b't' => {
                let items = self.marked()?;
                self.expect(items.iter().all(|&id| self.is_plain_or_flat(id)))?;
                self.push(Object::Tuple(items));
            }
            // EMPTY_LIST, APPEND, APPENDS
            b']' => self.push(Object::List(Vec::new())),
            b'a' => {
                let items = self.last(1)?;
                self.append(&items)?;
            }
            b'e' => {
                let items = self.marked()?;
                self.append(&items)?;
            }
            // EMPTY_DICT, SETITEM, SETITEMS
            b'}' => self.push(Object::Dict(Vec::new())),
            b's' => {
                let items = self.last(2)?;
                self.set(&items)?;
            }
            b'u' => {
                let items = self.marked()?;
                self.set(&items)?;
            }
            // BINPUT, LONG_BINPUT, MEMOIZE
            b'q' => {
                let [place] = self.array()?;
                self.remember(place.into())?;
            }
            b'r' => {
                let place = u32::from_le_bytes(self.array()?);
                self.remember(place)?;
            }
            0x94 => self.remember(self.memory.len() as u32)?,
            // BINGET, LONG_BINGET
            b'h' => {
                let [place] = self.array()?;
                self.recall(place.into())?;
            }
            b'j' => {
                let place = u32::from_le_bytes(self.array()?);
                self.recall(place)?;
            }
            // GLOBAL, STACK_GLOBAL
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Object::Callable(Callable::find(
                    module,
                    name,
                    self.has_code,
                )?));
            }
            0x93 => {
                let names = self.last(2)?;
                let (&Object::Text(module), &Object::Text(name)) =
                    (self.get(names[0]), self.get(names[1]))
                else {
                    return Err(self.senseless());
                };
                self.push(Object::Callable(Callable::find(
                    module,
                    name,
                    self.has_code,
                )?));
            }
            // NEWOBJ
            0x81 if self.has_code => self.instance()?,
            // BINPERSID, REDUCE, BUILD
            b'Q' => self.persistent()?,
            b'R' => self.call()?,
            b'b' => self.build()?,
            other => return Err(PickleError::Operation(other)),
        }
        Ok(None)
    }

    fn senseless(&self) -> PickleError {
        PickleError::Senseless(self.at)
    }

    /// Checks a rule that applies only to files with code.
    fn expect(&self, is_so: bool) -> Result<(), PickleError> {
        match is_so || !self.has_code {
            true => Ok(()),
            false => Err(self.senseless()),
        }
    }

    /// Returns whether a tuple in a file with code may contain an object. Such tuples may nest only
    /// as deeply as the arguments of tensors do.
    fn is_plain_or_flat(&self, id: Id) -> bool {
        let is_number = |&id: &Id| matches!(self.get(id), Object::Int(_));
        match self.get(id) {
            Object::Tuple(items) => items.iter().all(is_number),
            Object::Tensor(_) | Object::Instance(..) => false,
            // The hooks of a tensor are an empty dictionary.
            Object::Dict(entries) => entries.is_empty(),
            _ => true,
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], PickleError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..len).ok_or(PickleError::Truncated)?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn line(&mut self) -> Result<&'a str, PickleError> {
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&byte| byte == b'\n');
        let line = self.take(len.ok_or(PickleError::Truncated)?)?;
        self.at += 1;
        str::from_utf8(line).map_err(|_| self.senseless())
    }

    fn text(&mut self, len: u64) -> Result<(), PickleError> {
        let len = usize::try_from(len).map_err(|_| PickleError::Truncated)?;
        let text = self.take(len)?;
        let text = str::from_utf8(text).map_err(|_| self.senseless())?;
        self.push(Object::Text(text));
        Ok(())
    }

    /// Pushes an integer of up to eight little-endian bytes in two's complement. Tensors never need
    /// longer integers.
    fn long(&mut self) -> Result<(), PickleError> {
        let [len] = self.array()?;
        let bytes = self.take(len.into())?;
        if bytes.len() > 8 {
            return Err(self.senseless());
        }
        let negative = bytes.last().is_some_and(|&last| last >= 0x80);
        let mut word = [if negative { 0xff } else { 0 }; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        self.push(Object::Int(i64::from_le_bytes(word)));
        Ok(())
    }

    fn push(&mut self, object: Object<'a>) {
        // There are fewer objects than bytes, and the number of bytes fits in 32 bits.
        self.stack.push(Id(self.objects.len() as u32));
        self.objects.push(object);
    }

    fn get(&self, id: Id) -> &Object<'a> {
        &self.objects[id.0 as usize]
    }

    /// Returns the stack height below which operations must not pop.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    /// Pops the last `count` objects of the stack.
    fn last(&mut self, count: usize) -> Result<Vec<Id>, PickleError> {
        match self.stack.len().checked_sub(count) {
            Some(height) if height >= self.floor() => Ok(self.stack.drain(height..).collect()),
            _ => Err(self.senseless()),
        }
    }

    /// Pops all objects above the last mark, and the mark itself.
    fn marked(&mut self) -> Result<Vec<Id>, PickleError> {
        let height = self.marks.pop().ok_or_else(|| self.senseless())?;
        Ok(self.stack.drain(height..).collect())
    }

    fn pop(&mut self) -> Result<Id, PickleError> {
        Ok(self.last(1)?[0])
    }

    /// Returns the top of the stack without popping it.
    fn top(&self) -> Result<Id, PickleError> {
        let above = &self.stack[self.floor()..];
        above.last().copied().ok_or_else(|| self.senseless())
    }

    fn append(&mut self, items: &[Id]) -> Result<(), PickleError> {
        let top = self.top()?;
        match &mut self.objects[top.0 as usize] {
            Object::List(list) => list.extend_from_slice(items),
            _ => return Err(self.senseless()),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<(), PickleError> {
        let top = self.top()?;
        let (pairs, rest) = items.as_chunks();
        let is_attribute = |&[name, value]: &[Id; 2]| {
            let (name, value) = (self.get(name), self.get(value));
            let is_value = matches!(
                value,
                Object::Tensor(_) | Object::Text(_) | Object::Instance(_, Some(_))
            );
            matches!(name, Object::Text(_)) && is_value
        };
        self.expect(pairs.iter().all(is_attribute))?;
        match &mut self.objects[top.0 as usize] {
            Object::Dict(entries) if rest.is_empty() => {
                entries.extend(pairs.iter().map(|&[key, value]| (key, value)));
            }
            _ => return Err(self.senseless()),
        }
        Ok(())
    }

    fn remember(&mut self, place: u32) -> Result<(), PickleError> {
        let top = self.top()?;
        self.expect(place as usize == self.memory.len())?;
        self.memory.insert(place, top);
        Ok(())
    }

    fn recall(&mut self, place: u32) -> Result<(), PickleError> {
        let id = self.memory.get(&place).copied();
        let id = id.ok_or_else(|| self.senseless())?;
        // In the pickle of a network, a tensor or object occurs in only one place.
        let has_many = matches!(self.get(id), Object::Text(_) | Object::Callable(_));
        self.expect(has_many)?;
        self.stack.push(id);
        Ok(())
    }

    /// Resolves a persistent id. `torch.save` gives one to each storage. It consists of the word
    /// "storage", the class, the entry's name, the device and the length.
    fn persistent(&mut self) -> Result<(), PickleError> {
        let id = self.pop()?;
        let storage = match self.get(id) {
            Object::Tuple(items) => match items.as_slice() {
                &[word, class, key, device, len] => {
                    self.expect(matches!(self.get(device), Object::Text("cpu")))?;
                    match (self.get(word), self.get(class), self.get(key)) {
                        (
                            Object::Text("storage"),
                            &Object::Callable(Callable::Storage(kind)),
                            &Object::Text(key),
                        ) if is_key(key) => self.size(len).map(|len| Storage { kind, key, len }),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        };
        let storage = storage.ok_or_else(|| self.senseless())?;
        // Each storage may occur only once, so that all tensors together have at most as many bytes
        // as the file.
        let is_new = self.keys.insert(storage.key);
        self.expect(is_new)?;
        self.push(Object::Storage(Box::new(storage)));
        Ok(())
    }

    /// Calls a known callable and pushes its result.
    fn call(&mut self) -> Result<(), PickleError> {
        let arguments = self.pop()?;
        let callable = self.pop()?;
        let (Object::Callable(callable), Object::Tuple(arguments)) =
            (self.get(callable), self.get(arguments))
        else {
            return Err(self.senseless());
        };
        match (callable, arguments.as_slice()) {
            (Callable::OrderedDict, []) => self.push(Object::Dict(Vec::new())),
            // The arguments are storage, offset, shape and strides, followed by the gradient flag
            // and hooks.
            (Callable::RebuildTensor, &[storage, offset, shape, strides, ref rest @ ..]) => {
                let rest: Vec<_> = rest.iter().map(|&id| self.get(id)).collect();
                self.expect(matches!(rest[..], [Object::Bool(_), Object::Dict(_)]))?;
                let view = self.view(storage, offset, shape, strides)?;
                self.push(Object::Tensor(Box::new(view)));
            }
            // The arguments are the tensor itself, followed by the gradient flag and hooks.
            (Callable::RebuildParameter, &[tensor, ..]) => match self.get(tensor) {
                Object::Tensor(_) => self.stack.push(tensor),
                _ => return Err(self.senseless()),
            },
            _ => return Err(self.senseless()),
        }
        Ok(())
    }

    fn view(
        &self,
        storage: Id,
        offset: Id,
        shape: Id,
        strides: Id,
    ) -> Result<View<'a>, PickleError> {
        let (Object::Storage(storage), Some(offset), Object::Tuple(shape), Object::Tuple(strides)) = (
            self.get(storage),
            self.size(offset),
            self.get(shape),
            self.get(strides),
        ) else {
            return Err(self.senseless());
        };
        let view = self.strided(**storage, offset, shape, strides);
        view.ok_or_else(|| match self.has_code {
            true => PickleError::Bounds,
            false => self.senseless(),
        })
    }

    fn strided(
        &self,
        storage: Storage<'a>,
        offset: usize,
        shape: &[Id],
        strides: &[Id],
    ) -> Option<View<'a>> {
        // A tuple can be as long as the pickle, and many tensors can refer to it.
        if shape.len().max(strides.len()) > MOST_DIMENSIONS {
            return None;
        }
        let size = |&id: &Id| self.size(id);
        let shape = shape.iter().map(|&id| match self.get(id) {
            &Object::Int(size) => Some(size),
            _ => None,
        });
        let view = View::new(
            storage,
            offset,
            shape.collect::<Option<_>>()?,
            strides.iter().map(size).collect::<Option<_>>()?,
        );
        view.filter(|view| !self.has_code || view.last <= storage.len)
    }

    fn size(&self, id: Id) -> Option<usize> {
        match self.get(id) {
            &Object::Int(size) => usize::try_from(size).ok(),
            _ => None,
        }
    }

    /// Pushes an object without attributes.
    fn instance(&mut self) -> Result<(), PickleError> {
        let made = self.last(2)?;
        match (self.get(made[0]), self.get(made[1])) {
            (&Object::Callable(Callable::Class(class)), Object::Tuple(none)) if none.is_empty() => {
                self.push(Object::Instance(class, None));
                Ok(())
            }
            _ => Err(self.senseless()),
        }
    }

    /// Sets the attributes of the object on top of the stack. `Module.state_dict` also sets
    /// attributes of dictionaries. They are not needed and are ignored.
    fn build(&mut self) -> Result<(), PickleError> {
        let state = self.pop()?;
        let top = self.top()?;
        match &mut self.objects[top.0 as usize] {
            Object::Dict(_) if !self.has_code => Ok(()),
            Object::Instance(_, attributes @ None) => {
                *attributes = Some(state);
                Ok(())
            }
            _ => Err(self.senseless()),
        }
    }
}

/// Returns whether the name of a storage is valid. `torch.save` numbers storages.
fn is_key(key: &str) -> bool {
    key.len() <= LONGEST_KEY && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
