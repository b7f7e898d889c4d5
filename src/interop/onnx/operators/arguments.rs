//! Access to a node's inputs by position.

use crate::interop::onnx::graph::Argument;

/// A node's arguments, by position.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a>(pub &'a [Argument]);

impl<'a> Arguments<'a> {
    pub fn get(self, index: usize) -> Result<&'a Argument, String> {
        self.0
            .get(index)
            .ok_or_else(|| format!("it has no argument {index}"))
    }

    pub fn first(self, count: usize) -> Result<&'a [Argument], String> {
        let short = || format!("it has fewer than {count} arguments");
        self.0.get(..count).ok_or_else(short)
    }

    pub fn optional_int(self, index: usize) -> Result<Option<i64>, String> {
        match self.get(index)? {
            Argument::None => Ok(None),
            Argument::Int(value) => Ok(Some(*value)),
            other => Err(format!("its argument {index} is {other:?}")),
        }
    }

    pub fn int(self, index: usize) -> Result<i64, String> {
        self.optional_int(index)?
            .ok_or_else(|| format!("its argument {index} is missing"))
    }

    pub fn bool(self, index: usize) -> Result<bool, String> {
        match self.get(index)? {
            Argument::Bool(value) => Ok(*value),
            other => Err(format!("its argument {index} is {other:?}")),
        }
    }

    pub fn float(self, index: usize) -> Result<f64, String> {
        match self.get(index)? {
            Argument::Float(value) => Ok(*value),
            Argument::Int(value) => Ok(*value as f64),
            other => Err(format!("its argument {index} is {other:?}")),
        }
    }

    pub fn ints(self, index: usize) -> Result<Vec<i64>, String> {
        let wrong = || format!("its argument {index} is not a list of integers");
        let Argument::List(values) = self.get(index)? else {
            return Err(wrong());
        };
        values
            .iter()
            .map(|value| match value {
                Argument::Int(value) => Ok(*value),
                _ => Err(wrong()),
            })
            .collect()
    }
}
