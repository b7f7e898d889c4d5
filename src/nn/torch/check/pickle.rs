//! The pickle of a network file: one object of the code's classes, made of tensors,
//! text and further objects.
//!
//! A pickle is a program for a stack machine with a memory. libtorch's machine trusts
//! it: sizes and strides may reach beyond a storage, objects may lack attributes that
//! their class has. Here the same program runs without making anything, and each
//! operation must find what exporters have it find. Nothing is ever copied but
//! references, so that a pickle takes no more than a small multiple of its length.
//!
//! The operations are those of Python's module `pickletools`, which describes them.

use super::code::{Class, Classes, Type};
use super::{Refusal, excerpt};
use std::collections::BTreeMap;

/// How deep objects may nest: libtorch walks through them by recursion.
const MOST_NESTED: usize = 32;
/// Dimensions that a tensor may have.
const MOST_DIMENSIONS: usize = 8;

/// Bytes of each storage that the tensors lie in, by its record's name in `data/`.
pub(super) type Storages<'a> = BTreeMap<&'a str, usize>;

/// What lies on the stack.
#[derive(Debug)]
enum Value<'a> {
    Int(usize),
    Bool,
    Text(&'a str),
    Global(Global<'a>),
    /// An empty `OrderedDict`: the hooks that a tensor has not.
    Hooks,
    /// Of plain values, or of such tuples.
    Tuple(Vec<Value<'a>>),
    Dict(Vec<(&'a str, Value<'a>)>),
    /// With so many numbers.
    Storage(usize),
    Tensor,
    /// An object of a class without its attributes.
    Bare(&'a str),
    Object {
        class: &'a str,
        /// How deep objects nest in it.
        depth: usize,
    },
}

/// What a pickle may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Global<'a> {
    OrderedDict,
    RebuildTensor,
    /// The class of a storage, by the bytes of a number in it.
    Storage(usize),
    /// A class of the file's code.
    Class(&'a str),
}

/// Reads the pickle of a network whose code has these classes: the storages of its
/// tensors, each of which lies within its own.
///
/// # Errors
/// [`Refusal`] for the first operation that no exporter of ours writes.
pub(super) fn read<'a>(bytes: &'a [u8], classes: &Classes) -> Result<Storages<'a>, Refusal> {
    let mut machine = Machine {
        bytes,
        at: 0,
        classes,
        stack: Vec::new(),
        marks: Vec::new(),
        memory: Vec::new(),
        storages: Storages::new(),
    };
    match machine.run()? {
        Value::Object { .. } => Ok(machine.storages),
        _ => Err(machine.senseless()),
    }
}

struct Machine<'a, 'c> {
    bytes: &'a [u8],
    at: usize,
    classes: &'c Classes,
    stack: Vec<Value<'a>>,
    /// How many values lay below each mark.
    marks: Vec<usize>,
    /// What was remembered, where it may be named again.
    memory: Vec<Option<Value<'a>>>,
    storages: Storages<'a>,
}

impl<'a> Machine<'a, '_> {
    fn senseless(&self) -> Refusal {
        Refusal::Senseless(self.at)
    }

    /// Runs to the end, and returns the one value that is left.
    fn run(&mut self) -> Result<Value<'a>, Refusal> {
        if self.take(2)? != [0x80, 2] {
            return Err(self.senseless());
        }
        loop {
            let operation = self.take(1)?[0];
            match operation {
                b'.' => {
                    let value = self.pop()?;
                    let is_last = self.stack.is_empty() && self.marks.is_empty();
                    return match is_last && self.at == self.bytes.len() {
                        true => Ok(value),
                        false => Err(self.senseless()),
                    };
                }
                b'(' => self.marks.push(self.stack.len()),
                b'K' => self.push_int(1)?,
                b'M' => self.push_int(2)?,
                b'J' => self.push_int(4)?,
                // A number of eight bytes.
                0x8a if self.take(1)? == [8] => self.push_int(8)?,
                0x88 | 0x89 => self.stack.push(Value::Bool),
                b'X' => {
                    let length = self.int(4)?;
                    let text = std::str::from_utf8(self.take(length)?);
                    let text = text.map_err(|_| self.senseless())?;
                    self.stack.push(Value::Text(text));
                }
                b'c' => {
                    let global = self.global()?;
                    self.stack.push(Value::Global(global));
                }
                b'q' => self.remember(1)?,
                b'r' => self.remember(4)?,
                b'h' => self.recall(1)?,
                b'j' => self.recall(4)?,
                b')' => self.stack.push(Value::Tuple(Vec::new())),
                b't' => {
                    let values = self.pop_to_mark()?;
                    if !values.iter().all(is_plain_or_flat) {
                        return Err(self.senseless());
                    }
                    self.stack.push(Value::Tuple(values));
                }
                b'}' => self.stack.push(Value::Dict(Vec::new())),
                b'u' => self.set_items()?,
                b'Q' => {
                    let named = self.pop()?;
                    let numbers = self.storage(named)?;
                    self.stack.push(Value::Storage(numbers));
                }
                b'R' => self.call()?,
                0x81 => match (self.pop()?, self.pop()?) {
                    (Value::Tuple(none), Value::Global(Global::Class(class)))
                        if none.is_empty() =>
                    {
                        self.stack.push(Value::Bare(class));
                    }
                    _ => return Err(self.senseless()),
                },
                b'b' => self.build()?,
                other => return Err(Refusal::Operation(other)),
            }
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..count));
        let taken = taken.ok_or_else(|| self.senseless())?;
        self.at += count;
        Ok(taken)
    }

    /// A number of so many bytes that is not negative.
    fn int(&mut self, bytes: usize) -> Result<usize, Refusal> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.take(bytes)?);
        let number = u64::from_le_bytes(word);
        // Of four and eight bytes it has a sign.
        let is_negative = bytes > 2 && number >> (8 * bytes - 1) == 1;
        usize::try_from(number)
            .ok()
            .filter(|_| !is_negative)
            .ok_or_else(|| self.senseless())
    }

    fn push_int(&mut self, bytes: usize) -> Result<(), Refusal> {
        let number = self.int(bytes)?;
        self.stack.push(Value::Int(number));
        Ok(())
    }

    fn pop(&mut self) -> Result<Value<'a>, Refusal> {
        let is_marked = self.marks.last() == Some(&self.stack.len());
        let value = self.stack.pop().filter(|_| !is_marked);
        value.ok_or_else(|| self.senseless())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value<'a>>, Refusal> {
        let mark = self.marks.pop().ok_or_else(|| self.senseless())?;
        Ok(self.stack.split_off(mark))
    }

    /// A line of text.
    fn line(&mut self) -> Result<&'a str, Refusal> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == b'\n');
        let length = length.ok_or_else(|| self.senseless())?;
        let line = std::str::from_utf8(&self.take(length + 1)?[..length]);
        line.map_err(|_| self.senseless())
    }

    fn global(&mut self) -> Result<Global<'a>, Refusal> {
        let (module, name) = (self.line()?, self.line()?);
        let width = match (module, name) {
            ("collections", "OrderedDict") => return Ok(Global::OrderedDict),
            ("torch._utils", "_rebuild_tensor_v2") => return Ok(Global::RebuildTensor),
            ("__torch__", class) if self.classes.contains_key(class) => {
                return Ok(Global::Class(class));
            }
            ("torch", "DoubleStorage" | "LongStorage") => 8,
            ("torch", "FloatStorage" | "IntStorage") => 4,
            ("torch", "HalfStorage" | "BFloat16Storage" | "ShortStorage") => 2,
            ("torch", "CharStorage" | "ByteStorage" | "BoolStorage") => 1,
            _ => return Err(Refusal::Global(excerpt(&format!("{module}.{name}")))),
        };
        Ok(Global::Storage(width))
    }

    /// Remembers the value on top of the stack, in the next free place.
    fn remember(&mut self, bytes: usize) -> Result<(), Refusal> {
        let place = self.int(bytes)?;
        let value = match self.stack.last() {
            Some(Value::Text(text)) => Some(Value::Text(text)),
            Some(Value::Global(global)) => Some(Value::Global(*global)),
            // Tensors and objects have one place in a network.
            Some(_) => None,
            None => return Err(self.senseless()),
        };
        match place == self.memory.len() {
            true => self.memory.push(value),
            false => return Err(self.senseless()),
        }
        Ok(())
    }

    fn recall(&mut self, bytes: usize) -> Result<(), Refusal> {
        let place = self.int(bytes)?;
        let value = match self.memory.get(place) {
            Some(Some(Value::Text(text))) => Value::Text(text),
            Some(Some(Value::Global(global))) => Value::Global(*global),
            _ => return Err(self.senseless()),
        };
        self.stack.push(value);
        Ok(())
    }

    /// Fills the empty dictionary below the mark.
    fn set_items(&mut self) -> Result<(), Refusal> {
        let values = self.pop_to_mark()?;
        let mut items = Vec::with_capacity(values.len() / 2);
        let mut values = values.into_iter();
        while let Some(key) = values.next() {
            match (key, values.next()) {
                (
                    Value::Text(key),
                    Some(value @ (Value::Tensor | Value::Text(_) | Value::Object { .. })),
                ) => items.push((key, value)),
                _ => return Err(self.senseless()),
            }
        }
        match self.pop()? {
            Value::Dict(before) if before.is_empty() => self.stack.push(Value::Dict(items)),
            _ => return Err(self.senseless()),
        }
        Ok(())
    }

    /// The numbers of the storage that `("storage", torch.FloatStorage, "7", "cpu",
    /// 4096)` names.
    fn storage(&mut self, named: Value<'a>) -> Result<usize, Refusal> {
        let Value::Tuple(fields) = named else {
            return Err(self.senseless());
        };
        let &[
            Value::Text("storage"),
            Value::Global(Global::Storage(width)),
            Value::Text(key),
            Value::Text("cpu"),
            Value::Int(count),
        ] = fields.as_slice()
        else {
            return Err(self.senseless());
        };
        let bytes = count.checked_mul(width).ok_or_else(|| self.senseless())?;
        let is_number = key.bytes().all(|byte| byte.is_ascii_digit());
        // A storage belongs to one tensor, so that tensors together have no more
        // bytes than the file.
        match is_number && self.storages.insert(key, bytes).is_none() {
            true => Ok(count),
            false => Err(self.senseless()),
        }
    }

    fn call(&mut self) -> Result<(), Refusal> {
        let (arguments, callable) = (self.pop()?, self.pop()?);
        let (Value::Tuple(arguments), Value::Global(callable)) = (arguments, callable) else {
            return Err(self.senseless());
        };
        let made = match (callable, arguments.as_slice()) {
            (Global::OrderedDict, []) => Value::Hooks,
            (
                Global::RebuildTensor,
                [
                    Value::Storage(numbers),
                    Value::Int(offset),
                    Value::Tuple(sizes),
                    Value::Tuple(strides),
                    Value::Bool,
                    Value::Hooks,
                ],
            ) if fits(*numbers, *offset, sizes, strides) => Value::Tensor,
            (Global::RebuildTensor, [Value::Storage(_), ..]) => return Err(Refusal::Bounds),
            _ => return Err(self.senseless()),
        };
        self.stack.push(made);
        Ok(())
    }

    /// Gives an object its attributes: exactly those of its class.
    fn build(&mut self) -> Result<(), Refusal> {
        let (attributes, object) = (self.pop()?, self.pop()?);
        let (Value::Dict(attributes), Value::Bare(class)) = (attributes, object) else {
            return Err(self.senseless());
        };
        let declared = &self.classes[class];
        let mut names: Vec<&str> = attributes.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let are_all = names.len() == attributes.len() && names.len() == declared.len();
        if !are_all || !attributes.iter().all(|item| is_declared(declared, item)) {
            return Err(Refusal::Attributes(excerpt(class)));
        }
        let depths = attributes.iter().map(|(_, value)| match value {
            Value::Object { depth, .. } => depth + 1,
            _ => 1,
        });
        let depth = depths.max().unwrap_or(1);
        if depth > MOST_NESTED {
            return Err(Refusal::Nested(MOST_NESTED));
        }
        self.stack.push(Value::Object { class, depth });
        Ok(())
    }
}

/// Whether a class declares an attribute of this name and type.
fn is_declared(class: &Class, (name, value): &(&str, Value)) -> bool {
    match (class.get(*name), value) {
        (Some(Type::Tensor), Value::Tensor) | (Some(Type::Text), Value::Text(_)) => true,
        (Some(Type::Class(declared)), Value::Object { class, .. }) => declared == class,
        _ => false,
    }
}

/// Whether tuples may hold a value: they nest no deeper than the arguments of tensors.
fn is_plain_or_flat(value: &Value) -> bool {
    match value {
        Value::Tuple(values) => values.iter().all(|value| matches!(value, Value::Int(_))),
        Value::Dict(_) | Value::Bare(_) | Value::Object { .. } | Value::Tensor => false,
        _ => true,
    }
}

/// Whether a tensor lies within a storage of so many numbers, and has no more than it:
/// broadcast tensors are small in a file alone.
fn fits(numbers: usize, offset: usize, sizes: &[Value], strides: &[Value]) -> bool {
    if sizes.len() != strides.len() || sizes.len() > MOST_DIMENSIONS {
        return false;
    }
    let last =
        sizes
            .iter()
            .zip(strides)
            .try_fold((1usize, offset), |(count, last), pair| match pair {
                (&Value::Int(size), &Value::Int(stride)) => Some((
                    count.checked_mul(size)?,
                    last.checked_add(size.saturating_sub(1).checked_mul(stride)?)?,
                )),
                _ => None,
            });
    last.is_some_and(|(count, last)| {
        let is_within = last < numbers && count <= numbers;
        is_within || (count == 0 && last <= numbers)
    })
}

#[cfg(test)]
mod tests;
