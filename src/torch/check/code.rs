//! Parses the code of a network file: classes with tensors, and methods that call libtorch's
//! operators without branches or loops.
//!
//! Exporters trace a forward pass, so each line of a method assigns the result of an expression of
//! operators. The grammar covers exactly such code:
//!
//! ```text
//! class Network(Module):
//!   __parameters__ = ["weight", ]
//!   weight : Tensor
//!   layer : __torch__.layer
//!   __annotations__["0"] = __torch__.layer_0
//!   def forward(self: __torch__.Network,
//!     rows: Tensor) -> Tuple[Tensor, Tensor]:
//!     weight = self.weight
//!     _0 = torch.linear(torch.relu(rows), weight)
//!     return (_0, rows)
//! ```

use super::operators::{ARGUMENTS, OPERATORS};
use super::tokens::{Line, Lines, Token};
use super::{Refusal, excerpt};
use std::collections::{BTreeMap, BTreeSet};

/// The allowed methods: `forward` evaluates, `meta` returns the metadata, `step` reads one token or
/// move, and the others belong to world models.
const METHODS: [&str; 5] = ["forward", "meta", "predict", "represent", "step"];

/// Maximum number of calls and lists, which is three times the number in a network with 11 layers.
/// libtorch recurses along chains of operators, and a chain of about 2,500 operators overflows the
/// stack of a thread.
const MOST_CALLS: usize = 2000;

/// Reserved names: keywords, and names that TorchScript's parser accepts without an assignment.
const RESERVED: [&str; 45] = [
    "CONSTANTS",
    "__torch__",
    "and",
    "annotate",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "class",
    "continue",
    "def",
    "del",
    "elif",
    "else",
    "except",
    "finally",
    "for",
    "fork",
    "from",
    "getattr",
    "global",
    "if",
    "import",
    "in",
    "is",
    "isinstance",
    "lambda",
    "nonlocal",
    "not",
    "ops",
    "or",
    "pass",
    "print",
    "raise",
    "return",
    "rpc_async",
    "torch",
    "try",
    "unchecked_cast",
    "uninitialized",
    "wait",
    "while",
    "with",
    "yield",
];

/// The type of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Tensor,
    Text,
    /// An object of the named class.
    Class(String),
}

/// The types of a class's attributes, by name.
pub(super) type Class = BTreeMap<String, Type>;

/// The classes of a file, by name.
pub(super) type Classes = BTreeMap<String, Class>;

/// Reads the classes that the source code defines.
///
/// # Errors
/// [`Refusal`] for the first line that our exporters do not write.
pub(super) fn read(source: &[u8]) -> Result<Classes, Refusal> {
    let mut lines = Lines::new(source)?;
    let mut classes = Classes::new();
    let mut class: Option<(String, Class)> = None;
    let mut in_method = false;
    let (mut compounds, mut calls) = (BTreeSet::new(), 0);
    while let Some(line) = lines.next_line()? {
        let mut reader = Reader::new(&line);
        match (line.indent, &mut class) {
            (0, _) => {
                let name = reader.class()?.to_owned();
                classes.extend(class.take());
                if classes.contains_key(&name) {
                    return Err(reader.refusal());
                }
                class = Some((name, Class::new()));
                in_method = false;
            }
            (2, Some((_, attributes))) => {
                in_method = reader.is_next(Token::Name("def"));
                if in_method {
                    compounds.clear();
                    reader.method()?;
                } else if let Some((name, kind)) = reader.attribute()?
                    && attributes.insert(name.to_owned(), kind).is_some()
                {
                    return Err(reader.refusal());
                }
            }
            (4, Some(_)) if in_method => {
                reader.statement(&mut compounds)?;
                calls += line.calls();
                if calls > MOST_CALLS {
                    return Err(Refusal::Long(MOST_CALLS));
                }
            }
            _ => return Err(reader.refusal()),
        }
        reader.end()?;
    }
    classes.extend(class);
    Ok(classes)
}

/// Names of a method's lists and tuples. They must not be elements of other lists or tuples.
/// Otherwise types could nest without limit, and libtorch recurses through types.
type Compounds<'a> = BTreeSet<&'a str>;

/// Reads the tokens of a line.
struct Reader<'l, 'a> {
    line: &'l Line<'a>,
    at: usize,
}

impl<'l, 'a> Reader<'l, 'a> {
    fn new(line: &'l Line<'a>) -> Reader<'l, 'a> {
        Reader { line, at: 0 }
    }

    /// Returns the error for an unknown line, which quotes the line.
    fn refusal(&self) -> Refusal {
        Refusal::Line(excerpt(self.line.source))
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.line.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Result<Token<'a>, Refusal> {
        let token = self.peek().ok_or_else(|| self.refusal())?;
        self.at += 1;
        Ok(token)
    }

    /// Consumes the next token if it is equal to `token`, and returns whether it is.
    fn is_next(&mut self, token: Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: u8) -> Result<(), Refusal> {
        match self.is_next(Token::Symbol(symbol)) {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    fn name(&mut self) -> Result<&'a str, Refusal> {
        match self.next()? {
            Token::Name(name) => Ok(name),
            _ => Err(self.refusal()),
        }
    }

    fn end(&self) -> Result<(), Refusal> {
        self.peek().map_or(Ok(()), |_| Err(self.refusal()))
    }

    /// Reads `class Network(Module):` and returns the name of the class.
    fn class(&mut self) -> Result<&'a str, Refusal> {
        let is_class = self.is_next(Token::Name("class"));
        let name = self.name()?;
        let rest = [
            Token::Symbol(b'('),
            Token::Name("Module"),
            Token::Symbol(b')'),
            Token::Symbol(b':'),
        ];
        match is_class && rest.into_iter().all(|token| self.is_next(token)) {
            true => Ok(name),
            false => Err(self.refusal()),
        }
    }

    /// Reads a line of a class that is not in a method. Returns the attribute that it declares, if
    /// any.
    fn attribute(&mut self) -> Result<Option<(&'a str, Type)>, Refusal> {
        let name = self.name()?;
        if name == "__annotations__" && self.is_next(Token::Symbol(b'[')) {
            let Token::Text(name) = self.next()? else {
                return Err(self.refusal());
            };
            self.expect(b']')?;
            self.expect(b'=')?;
            return Ok(Some((name, self.attribute_type()?)));
        }
        if name.starts_with("__") {
            let is_known = ["__parameters__", "__buffers__", "__annotations__"].contains(&name);
            self.expect(b'=')?;
            self.expect(b'[')?;
            while let Some(Token::Text(_)) = self.peek() {
                self.at += 1;
                self.expect(b',')?;
            }
            self.expect(b']')?;
            return match is_known {
                true => Ok(None),
                false => Err(self.refusal()),
            };
        }
        self.expect(b':')?;
        Ok(Some((name, self.attribute_type()?)))
    }

    fn attribute_type(&mut self) -> Result<Type, Refusal> {
        match self.name()? {
            "Tensor" => Ok(Type::Tensor),
            "str" => Ok(Type::Text),
            "__torch__" => {
                self.expect(b'.')?;
                Ok(Type::Class(self.name()?.to_owned()))
            }
            _ => Err(self.refusal()),
        }
    }

    /// Reads the return type of a method.
    fn returned_type(&mut self) -> Result<(), Refusal> {
        if !self.is_next(Token::Name("Tuple")) {
            return self.attribute_type().map(|_| ());
        }
        self.expect(b'[')?;
        loop {
            self.attribute_type()?;
            if self.is_next(Token::Symbol(b']')) {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads the rest of a method's first line, after `def`.
    fn method(&mut self) -> Result<(), Refusal> {
        let name = self.name()?;
        if !METHODS.contains(&name) {
            return Err(Refusal::Method(excerpt(name)));
        }
        self.expect(b'(')?;
        loop {
            self.own_name()?;
            self.expect(b':')?;
            self.attribute_type()?;
            if self.is_next(Token::Symbol(b')')) {
                break;
            }
            self.expect(b',')?;
        }
        if !self.is_next(Token::Arrow) {
            return Err(self.refusal());
        }
        self.returned_type()?;
        self.expect(b':')
    }

    /// Reads a line of a method, which is an assignment or a return.
    fn statement(&mut self, compounds: &mut Compounds<'a>) -> Result<(), Refusal> {
        let after = self.line.tokens.get(1);
        if self.is_next(Token::Name("return")) {
            return self.expression(compounds).map(|_| ());
        }
        if !matches!(after, Some(Token::Symbol(b'=' | b','))) {
            // Parsing the call first produces an error that names it.
            self.expression(compounds)?;
            return Err(self.refusal());
        }
        let mut names = Vec::new();
        while !self.is_next(Token::Symbol(b'=')) {
            names.push(self.own_name()?);
            let is_last = !self.is_next(Token::Symbol(b','));
            if is_last && self.peek() != Some(Token::Symbol(b'=')) {
                return Err(self.refusal());
            }
        }
        let is_compound = self.expression(compounds)?;
        for name in names {
            compounds.remove(name);
            if is_compound {
                compounds.insert(name);
            }
        }
        Ok(())
    }

    /// Reads a name that the code itself may define.
    fn own_name(&mut self) -> Result<&'a str, Refusal> {
        let name = self.name()?;
        match RESERVED.contains(&name) {
            true => Err(Refusal::Word(name.to_owned())),
            false => Ok(name),
        }
    }

    /// Reads an expression and returns whether it is a list or a tuple. The limit on bracket
    /// nesting also limits the recursion.
    fn expression(&mut self, compounds: &Compounds) -> Result<bool, Refusal> {
        match self.next()? {
            Token::Number | Token::Text(_) => Ok(false),
            Token::Symbol(b'-') if self.is_next(Token::Number) => Ok(false),
            Token::Symbol(b'-') if self.is_next(Token::Name("inf")) => Ok(false),
            Token::Symbol(b'[') => self.parts(b']', compounds),
            Token::Symbol(b'(') => self.parts(b')', compounds),
            Token::Name(first) => self.named(first, compounds),
            _ => Err(self.refusal()),
        }
    }

    /// Reads the elements of a list or a tuple, with or without a trailing comma.
    fn parts(&mut self, close: u8, compounds: &Compounds) -> Result<bool, Refusal> {
        while !self.is_next(Token::Symbol(close)) {
            if self.expression(compounds)? {
                return Err(self.refusal());
            }
            if !self.is_next(Token::Symbol(b',')) {
                self.expect(close)?;
                break;
            }
        }
        Ok(true)
    }

    /// Reads positional or named arguments.
    fn arguments(&mut self, compounds: &Compounds) -> Result<(), Refusal> {
        while !self.is_next(Token::Symbol(b')')) {
            if let [Token::Name(name), Token::Symbol(b'='), ..] = self.line.tokens[self.at..] {
                if ARGUMENTS.binary_search(&name).is_err() {
                    return Err(Refusal::Argument(excerpt(name)));
                }
                self.at += 2;
            }
            self.expression(compounds)?;
            if !self.is_next(Token::Symbol(b',')) {
                return self.expect(b')');
            }
        }
        Ok(())
    }

    /// Reads an expression that begins with a name: a value, its attribute, or an operator call.
    fn named(&mut self, first: &'a str, compounds: &Compounds) -> Result<bool, Refusal> {
        let start = self.at - 1;
        let mut last = first;
        while self.is_next(Token::Symbol(b'.')) {
            last = self.name()?;
        }
        let names = (self.at - start).div_ceil(2);
        if !self.is_next(Token::Symbol(b'(')) {
            return match names {
                _ if RESERVED.contains(&first) => Err(Refusal::Word(first.to_owned())),
                1 => Ok(compounds.contains(first)),
                2 => Ok(false),
                _ => Err(self.refusal()),
            };
        }
        match (first, names) {
            ("torch", 2) if OPERATORS.binary_search(&last).is_ok() => self.arguments(compounds)?,
            ("getattr", 1) => self.attribute_by_text()?,
            _ => {
                let path = self.line.tokens[start..self.at - 1].iter();
                let path = path.map(|token| match token {
                    Token::Name(name) => name,
                    _ => ".",
                });
                return Err(Refusal::Call(excerpt(&path.collect::<String>())));
            }
        }
        Ok(false)
    }

    /// Reads the rest of `getattr(encoder, "3")` after `getattr(`.
    fn attribute_by_text(&mut self) -> Result<(), Refusal> {
        self.own_name()?;
        self.expect(b',')?;
        match self.next()? {
            Token::Text(_) => self.expect(b')'),
            _ => Err(self.refusal()),
        }
    }
}

#[cfg(test)]
mod tests;
