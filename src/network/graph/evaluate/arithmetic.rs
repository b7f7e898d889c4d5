//! What is done to each number by itself.

use super::{Evaluation, Reason, broadcast, text};
use tch::{Kind, Tensor};

/// Data types of ONNX's `Cast` that are floating-point and narrower than f32.
const NARROW: [i64; 2] = [10, 16];
/// Its f32, and f64, of which no network makes use.
const WIDE: [i64; 2] = [1, 11];

/// Whether a data type of ONNX holds floating-point numbers.
pub(super) fn is_float(kind: i64) -> bool {
    WIDE.contains(&kind) || NARROW.contains(&kind)
}

impl Evaluation<'_> {
    /// The output, if the operator is one of these.
    pub(super) fn arithmetic(&mut self, operator: &str) -> Result<Option<Tensor>, Reason> {
        let made = match operator {
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min" | "Greater" => {
                self.binary(operator)?
            }
            "Where" => self.choice()?,
            _ => match self.unary(operator)? {
                Some(made) => made,
                None => return Ok(None),
            },
        };
        Ok(Some(made))
    }

    fn binary(&mut self, operator: &str) -> Result<Tensor, Reason> {
        if self.node.inputs.len() != 2 {
            return text("it has other than two inputs");
        }
        let (left, right) = (self.tensor(0)?, self.tensor(1)?);
        self.budget
            .reserve(&broadcast(&left.size(), &right.size())?)?;
        Ok(match operator {
            "Add" => left.f_add(&right)?,
            "Sub" => left.f_sub(&right)?,
            "Mul" => left.f_mul(&right)?,
            "Div" => left.f_div(&right)?,
            "Pow" => left.f_pow(&right)?,
            "Max" => left.f_maximum(&right)?,
            "Min" => left.f_minimum(&right)?,
            _ => left.f_gt_tensor(&right)?,
        })
    }

    fn choice(&mut self) -> Result<Tensor, Reason> {
        let (condition, yes, no) = (self.tensor(0)?, self.tensor(1)?, self.tensor(2)?);
        let shape = broadcast(&broadcast(&condition.size(), &yes.size())?, &no.size())?;
        self.budget.reserve(&shape)?;
        Ok(yes.f_where_self(&condition, &no)?)
    }

    fn unary(&mut self, operator: &str) -> Result<Option<Tensor>, Reason> {
        const OPERATORS: [&str; 19] = [
            "Relu",
            "Tanh",
            "Sigmoid",
            "Softplus",
            "Mish",
            "Selu",
            "Elu",
            "Exp",
            "Log",
            "Sqrt",
            "Reciprocal",
            "Erf",
            "Abs",
            "Neg",
            "Identity",
            "Clip",
            "Cast",
            "Softmax",
            "LogSoftmax",
        ];
        if !OPERATORS.contains(&operator) {
            return Ok(None);
        }
        let x = self.tensor(0)?;
        self.budget.reserve(&x.size())?;
        Ok(Some(match operator {
            "Relu" => x.f_relu()?,
            "Tanh" => x.f_tanh()?,
            "Sigmoid" => x.f_sigmoid()?,
            "Softplus" => x.f_softplus()?,
            "Mish" => x.f_mish()?,
            "Selu" => x.f_selu()?,
            "Elu" => {
                let alpha = self.float("alpha", 1.0)?;
                // With the factor that Selu multiplies by: none.
                x.f_clamp_min(0.0)?
                    .f_add(&x.f_clamp_max(0.0)?.f_expm1()?.f_mul_scalar(alpha)?)?
            }
            "Exp" => x.f_exp()?,
            "Log" => x.f_log()?,
            "Sqrt" => x.f_sqrt()?,
            "Reciprocal" => x.f_reciprocal()?,
            "Erf" => x.f_erf()?,
            "Abs" => x.f_abs()?,
            "Neg" => x.f_neg()?,
            "Identity" => x,
            "Clip" => {
                let bounded = match self.optional_tensor(1)? {
                    Some(low) => x.f_maximum(&low)?,
                    None => x,
                };
                match self.optional_tensor(2)? {
                    Some(high) => bounded.f_minimum(&high)?,
                    None => bounded,
                }
            }
            "Cast" => match self.int("to", 0)? {
                // Numbers that are to be exact here, as in norms.
                kind if WIDE.contains(&kind) && x.is_floating_point() => {
                    x.f_to_kind(Kind::Float)?
                }
                // Whatever the network is run in.
                kind if is_float(kind) => x.f_type_as(self.planes)?,
                kind => return text(format!("it casts numbers to the data type {kind}")),
            },
            _ => {
                let rank = x.dim();
                let default = if self.operator_set < 13 { 1 } else { -1 };
                let axis = super::dimension(self.int("axis", default)?, rank)?;
                // Before version 13 all dimensions from the axis on were one.
                if self.operator_set < 13 && axis != rank as i64 - 1 {
                    return text("it goes over several dimensions");
                }
                match operator {
                    "Softmax" => x.f_softmax(axis, None::<Kind>)?,
                    _ => x.f_log_softmax(axis, None::<Kind>)?,
                }
            }
        }))
    }
}
