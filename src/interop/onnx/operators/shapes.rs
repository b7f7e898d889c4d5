//! Operators that move values without changing them.

use super::{Call, Translator, wrap};
use crate::interop::onnx::builder::{int, ints};
use crate::interop::onnx::graph::Argument;

impl Translator<'_> {
    /// Translates an operator that moves values, and returns the output's name. Returns `None` for
    /// other operators.
    pub(super) fn shaped(&mut self, call: &Call) -> Result<Option<String>, String> {
        let x = call.x.as_str();
        let arguments = call.arguments;
        Ok(Some(match call.name {
            "view" | "reshape" => self.reshaped(x, &arguments.ints(1)?),
            "flatten" => {
                let (start, end) = (call.axis(1)? as usize, call.axis(2)? as usize);
                let mut sizes: Vec<i64> = call.shape[..start].to_vec();
                sizes.push(call.shape[start..=end].iter().product());
                sizes.extend(&call.shape[end + 1..]);
                // Only the batch size is dynamic.
                sizes[0] = -1;
                self.reshaped(x, &sizes)
            }
            "unsqueeze" => {
                let axis = wrap(arguments.int(1)?, call.rank() + 1);
                self.unsqueezed(x, axis)
            }
            "squeeze" => {
                let axis = self.builder.integers(&[call.axis(1)?]);
                self.builder.node("Squeeze", &[x, &axis], vec![])
            }
            "transpose" => {
                let mut order: Vec<i64> = (0..call.rank()).collect();
                order.swap(call.axis(1)? as usize, call.axis(2)? as usize);
                self.transposed(x, &order)
            }
            "t" => self.transposed(x, &[1, 0]),
            "permute" => {
                let order = arguments.ints(1)?.into_iter();
                let order: Vec<i64> = order.map(|axis| wrap(axis, call.rank())).collect();
                self.transposed(x, &order)
            }
            "expand" => {
                // To keep a dimension, the new size is −1 in libtorch and 1 in ONNX.
                let sizes = arguments.ints(1)?.into_iter().map(|size| size.max(1));
                let sizes: Vec<i64> = sizes.collect();
                let sizes = self.builder.integers(&sizes);
                self.builder.node("Expand", &[x, &sizes], vec![])
            }
            "narrow" => {
                let start = arguments.int(2)?;
                let end = start + arguments.int(3)?;
                self.sliced(x, [start, end, call.axis(1)?, 1])
            }
            "slice" => {
                let start = arguments.optional_int(2)?.unwrap_or(0);
                let end = arguments.optional_int(3)?.unwrap_or(i64::MAX);
                self.sliced(x, [start, end, call.axis(1)?, arguments.int(4)?])
            }
            "flip" => {
                let axes = arguments.ints(1)?.into_iter();
                axes.fold(x.to_owned(), |x, axis| {
                    self.sliced(&x, [-1, i64::MIN, wrap(axis, call.rank()), -1])
                })
            }
            "select" => {
                let index = self.builder.integer(arguments.int(2)?);
                let axis = int("axis", call.axis(1)?);
                self.builder.node("Gather", &[x, &index], vec![axis])
            }
            "index_select" => {
                let index = self.operand(arguments.get(2)?)?;
                let axis = int("axis", call.axis(1)?);
                self.builder.node("Gather", &[x, &index], vec![axis])
            }
            "cat" | "stack" => self.concatenated(call)?,
            _ => return Ok(None),
        }))
    }

    fn concatenated(&mut self, call: &Call) -> Result<String, String> {
        let Argument::List(parts) = call.arguments.get(0)? else {
            return Err("its parts are not a list of known length".to_owned());
        };
        let rank = self.shape(parts.first().unwrap_or(&Argument::None)).len() as i64;
        let mut names = self.operands(parts)?;
        let is_stack = call.name == "stack";
        let axis = wrap(call.arguments.int(1)?, rank + i64::from(is_stack));
        if is_stack {
            for name in &mut names {
                *name = self.unsqueezed(name, axis);
            }
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(self.builder.node("Concat", &names, vec![int("axis", axis)]))
    }

    /// Splits a tensor and returns the names of the parts.
    pub(super) fn split(&mut self, call: &Call) -> Result<Vec<String>, String> {
        let axis = call.axis(2)?;
        let size = call.shape.get(axis as usize).copied().unwrap_or_default();
        let sizes = match call.name {
            "split_with_sizes" => call.arguments.ints(1)?,
            "split" => parts(size, call.arguments.int(1)?),
            _ => {
                let chunks = call.arguments.int(1)?.max(1);
                parts(size, (size + chunks - 1) / chunks)
            }
        };
        let lengths = self.builder.integers(&sizes);
        let inputs = [&call.x[..], &lengths];
        let axis = vec![int("axis", axis)];
        Ok(self.builder.node_with("Split", &inputs, axis, sizes.len()))
    }

    /// Unstacks a tensor and returns the names of the slices.
    pub(super) fn unbound(&mut self, call: &Call) -> Result<Vec<String>, String> {
        let axis = call.axis(1)?;
        let count = call.shape.get(axis as usize).copied().unwrap_or_default();
        let axis = int("axis", axis);
        let slices = (0..count).map(|index| {
            let index = self.builder.integer(index);
            let axis = vec![axis.clone()];
            self.builder.node("Gather", &[&call.x, &index], axis)
        });
        Ok(slices.collect())
    }

    fn unsqueezed(&mut self, x: &str, axis: i64) -> String {
        let axis = self.builder.integers(&[axis]);
        self.builder.node("Unsqueeze", &[x, &axis], vec![])
    }

    fn reshaped(&mut self, x: &str, sizes: &[i64]) -> String {
        let sizes = self.builder.integers(sizes);
        self.builder.node("Reshape", &[x, &sizes], vec![])
    }

    pub(super) fn transposed(&mut self, x: &str, order: &[i64]) -> String {
        let order = ints("perm", order);
        self.builder.node("Transpose", &[x], vec![order])
    }

    /// Slices a tensor from `start` up to but not including `end` along an axis, with a step.
    fn sliced(&mut self, x: &str, [start, end, axis, step]: [i64; 4]) -> String {
        let [start, end, axis, step] =
            [start, end, axis, step].map(|value| self.builder.integers(&[value]));
        self.builder
            .node("Slice", &[x, &start, &end, &axis, &step], vec![])
    }
}

/// Returns the sizes of the parts into which `whole` is split. All are `part`, except that the last
/// may be smaller.
fn parts(whole: i64, part: i64) -> Vec<i64> {
    let part = part.max(1);
    (0..(whole + part - 1) / part)
        .map(|index| part.min(whole - index * part))
        .collect()
}
