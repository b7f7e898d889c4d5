//! Elementwise operators.

use super::{Call, Translator};
use crate::interop::onnx::builder::float;
use crate::interop::onnx::graph::Argument;

impl Translator<'_> {
    /// Translates an elementwise operator and returns the output's name, or `None` for other
    /// operators.
    pub(super) fn arithmetic(&mut self, call: &Call) -> Result<Option<String>, String> {
        if let Some((operator, operands)) = same(call.name) {
            let operands = self.operands(call.arguments.first(operands)?)?;
            return Ok(Some(self.joined(operator, &operands)));
        }
        let x = call.x.as_str();
        Ok(Some(match call.name {
            "add" | "sub" | "rsub" => {
                let other = self.operand(call.arguments.get(1)?)?;
                let (left, right) = match call.name {
                    "rsub" => (&*other, x),
                    _ => (x, &*other),
                };
                let right = self.scaled(right, call.arguments.get(2)?)?;
                let operator = ["Sub", "Add"][usize::from(call.name == "add")];
                self.builder.node(operator, &[left, &right], vec![])
            }
            "addcmul" => {
                let factors = self.operands(&call.arguments.first(3)?[1..])?;
                let product = self.joined("Mul", &factors);
                let product = self.scaled(&product, call.arguments.get(3)?)?;
                self.builder.node("Add", &[x, &product], vec![])
            }
            "zeros_like" => self.builder.node("Sub", &[x, x], vec![]),
            "square" => self.builder.node("Mul", &[x, x], vec![]),
            "rsqrt" => {
                let root = self.builder.node("Sqrt", &[x], vec![]);
                self.builder.node("Reciprocal", &[&root], vec![])
            }
            "clamp" | "clamp_min" | "clamp_max" => {
                let none = &Argument::None;
                let (low, high) = match call.name {
                    "clamp" => (call.arguments.get(1)?, call.arguments.get(2)?),
                    "clamp_min" => (call.arguments.get(1)?, none),
                    _ => (none, call.arguments.get(1)?),
                };
                let mut bounded = x.to_owned();
                for (operator, bound) in [("Max", low), ("Min", high)] {
                    if !matches!(bound, Argument::None) {
                        let bound = self.operand(bound)?;
                        bounded = self.builder.node(operator, &[&bounded, &bound], vec![]);
                    }
                }
                bounded
            }
            "silu" => {
                let gate = self.builder.node("Sigmoid", &[x], vec![]);
                self.builder.node("Mul", &[&gate, x], vec![])
            }
            "mish" => {
                let gate = self.builder.node("Softplus", &[x], vec![]);
                let gate = self.builder.node("Tanh", &[&gate], vec![]);
                self.builder.node("Mul", &[&gate, x], vec![])
            }
            "gelu" => self.gelu(call)?,
            "elu" => {
                let alpha = float("alpha", call.arguments.float(1)?);
                self.builder.node("Elu", &[x], vec![alpha])
            }
            "softplus" => match call.arguments.float(1)? {
                1.0 => self.builder.node("Softplus", &[x], vec![]),
                _ => return Err("its beta is not 1".to_owned()),
            },
            _ => return Ok(None),
        }))
    }

    /// Multiplies `x` by a factor, unless the factor is one.
    pub(super) fn scaled(&mut self, x: &str, factor: &Argument) -> Result<String, String> {
        match factor {
            Argument::Int(1) | Argument::Float(1.0) => Ok(x.to_owned()),
            factor => {
                let factor = self.operand(factor)?;
                Ok(self.builder.node("Mul", &[x, &factor], vec![]))
            }
        }
    }

    /// Computes GELU as x/2 · (1 + erf(x/√2)), because ONNX has no GELU operator before version 20.
    fn gelu(&mut self, call: &Call) -> Result<String, String> {
        if !matches!(call.arguments.get(1)?, Argument::Text(text) if text == "none") {
            return Err("it is an approximation".to_owned());
        }
        let [root, one, half] =
            [std::f64::consts::SQRT_2, 1.0, 0.5].map(|value| self.builder.scalar(value));
        let y = self.builder.node("Div", &[&call.x, &root], vec![]);
        let y = self.builder.node("Erf", &[&y], vec![]);
        let y = self.builder.node("Add", &[&y, &one], vec![]);
        let y = self.builder.node("Mul", &[&call.x, &y], vec![]);
        Ok(self.builder.node("Mul", &[&y, &half], vec![]))
    }
}

/// Returns the equivalent ONNX operator, and the number of leading arguments that are its inputs.
fn same(name: &str) -> Option<(&'static str, usize)> {
    Some(match name {
        "matmul" | "bmm" | "mm" => ("MatMul", 2),
        "mul" => ("Mul", 2),
        "div" => ("Div", 2),
        "pow" => ("Pow", 2),
        "gt" => ("Greater", 2),
        "where" => ("Where", 3),
        "maximum" => ("Max", 2),
        "minimum" => ("Min", 2),
        "relu" => ("Relu", 1),
        "tanh" => ("Tanh", 1),
        "sigmoid" => ("Sigmoid", 1),
        "selu" => ("Selu", 1),
        "exp" => ("Exp", 1),
        "log" => ("Log", 1),
        "neg" => ("Neg", 1),
        "abs" => ("Abs", 1),
        "sqrt" => ("Sqrt", 1),
        "reciprocal" => ("Reciprocal", 1),
        "erf" => ("Erf", 1),
        _ => return None,
    })
}
