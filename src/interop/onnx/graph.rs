//! Records a forward pass as a graph of libtorch operators.

use crate::torch::shim::{self, RawTensor, take_text};
use serde::Deserialize;
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use tch::Tensor;

/// The graph of a pass: its nodes in execution order.
#[derive(Debug, Deserialize)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    pub inputs: Vec<Typed>,
    pub outputs: Vec<Argument>,
    /// Tensors that the pass accessed directly, without receiving them as inputs. See
    /// [`Argument::Tensor`].
    #[serde(skip)]
    pub tensors: Vec<Tensor>,
}

/// An operator call.
#[derive(Debug, Deserialize)]
pub(super) struct Node {
    /// The operator's name in libtorch, such as `aten::linear`.
    pub operator: String,
    /// The arguments, in the order of the operator's libtorch schema.
    pub arguments: Vec<Argument>,
    pub outputs: Vec<Typed>,
}

/// A value of the graph. Tensors have a shape and a type.
#[derive(Debug, Deserialize)]
pub(super) struct Typed {
    pub value: usize,
    #[serde(default)]
    pub shape: Vec<i64>,
    #[serde(default)]
    pub floating: bool,
}

/// An operator's argument.
#[derive(Clone, Debug, Deserialize)]
pub(super) enum Argument {
    None,
    Value(usize),
    /// One of [`Graph::tensors`].
    Tensor(usize),
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    List(Vec<Argument>),
}

impl Argument {
    /// Calls `visit` with each value that this argument references.
    fn values(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Argument::Value(value) => visit(*value),
            Argument::List(list) => list.iter().for_each(|argument| argument.values(visit)),
            _ => {}
        }
    }
}

impl Graph {
    /// Removes nodes on which no output depends, and returns the values that are still in use.
    pub fn prune(&mut self) -> HashSet<usize> {
        let mut used = HashSet::new();
        for output in &self.outputs {
            output.values(&mut |value| {
                used.insert(value);
            });
        }
        self.nodes.reverse();
        self.nodes.retain(|node| {
            let is_used = node
                .outputs
                .iter()
                .any(|output| used.contains(&output.value));
            if is_used {
                for argument in &node.arguments {
                    argument.values(&mut |value| {
                        used.insert(value);
                    });
                }
            }
            is_used
        });
        self.nodes.reverse();
        used
    }
}

type Forward =
    unsafe extern "C" fn(*mut c_void, *const *mut RawTensor, *mut *mut RawTensor, usize) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, *mut RawTensor);

unsafe extern "C" {
    fn tessera_graph(
        inputs: *const *const RawTensor,
        given: usize,
        count: usize,
        forward: Forward,
        outputs: usize,
        context: *mut c_void,
        receive: Receive,
        json: *mut *mut c_char,
    ) -> *mut c_char;
}

/// The state that the callbacks from C++ code receive.
struct Pass<'a> {
    forward: &'a dyn Fn(&[Tensor]) -> Vec<Tensor>,
    given: usize,
    tensors: Vec<Tensor>,
}

/// Runs `forward` on the tensors in `given`, and records its operations on these tensors and on
/// `known`, the tensors that `forward` accesses directly. The graph's inputs are `given` followed
/// by `known`.
///
/// # Errors
/// libtorch's message if the pass fails or does not return `outputs` tensors.
pub(super) fn trace(
    given: &[Tensor],
    known: &[Tensor],
    outputs: usize,
    forward: &dyn Fn(&[Tensor]) -> Vec<Tensor>,
) -> Result<Graph, String> {
    let _guard = tch::no_grad_guard();
    let inputs = given.iter().chain(known);
    let inputs: Vec<*const RawTensor> = inputs.map(|tensor| tensor.as_ptr().cast()).collect();
    let mut pass = Pass {
        forward,
        given: given.len(),
        tensors: Vec::new(),
    };
    let mut json = ptr::null_mut();
    // SAFETY: the array has the stated number of tensors. The tensors and the pass outlive the
    // call, as `run` and `receive` require, and neither callback unwinds. The shim owns the
    // strings.
    let (failure, json) = unsafe {
        let failure = take_text(tessera_graph(
            inputs.as_ptr(),
            given.len(),
            inputs.len(),
            run,
            outputs,
            (&raw mut pass).cast(),
            receive,
            &raw mut json,
        ));
        (failure, take_text(json))
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    let mut graph: Graph =
        serde_json::from_str(&json.unwrap_or_default()).map_err(|error| error.to_string())?;
    graph.tensors = pass.tensors;
    Ok(graph)
}

unsafe extern "C" fn run(
    context: *mut c_void,
    inputs: *const *mut RawTensor,
    outputs: *mut *mut RawTensor,
    count: usize,
) -> c_int {
    // SAFETY: `trace` passes a `Pass` that outlives the call. There are `count` live tensors; the
    // pass takes the first ones. There is room for `count` pointers.
    unsafe {
        let pass = &*context.cast::<Pass>();
        shim::answer((inputs, pass.given), (outputs, count), |given| {
            (pass.forward)(given)
        })
    }
}

/// Takes ownership of a tensor in the graph.
unsafe extern "C" fn receive(context: *mut c_void, tensor: *mut RawTensor) {
    // SAFETY: `context` is the `Pass` of `trace`, which nothing else accesses at the moment, and
    // the tensor is owned here.
    unsafe {
        let pass = &mut *context.cast::<Pass>();
        pass.tensors.push(Tensor::from_ptr(tensor.cast()));
    }
}
