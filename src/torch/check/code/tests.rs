use super::*;
use proptest::prelude::*;

const NETWORK: &str = r#"class Network(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  layer : __torch__.layer
  metadata : str
  def forward(self: __torch__.Network,
    rows: Tensor) -> Tuple[Tensor, Tensor]:
    weight = self.weight
    layer = self.layer
    _3 = getattr(layer, "3")
    _0 = torch.linear(torch.relu(rows), weight)
    _1, _2, = torch.unbind(_0, -1)
    _4 = torch.to(_1, dtype=6)
    return (_2, _4)
  def meta(self: __torch__.Network) -> str:
    return self.metadata
class layer(Module):
  __parameters__ = []
  __buffers__ = []
  __annotations__ = []
  __annotations__["3"] = Tensor
"#;

#[test]
fn classes_are_read() {
    let classes = read(NETWORK.as_bytes()).unwrap();
    let class = |class: &str| classes[class].clone().into_iter().collect::<Vec<_>>();
    let named = |name: &str, kind| (name.to_owned(), kind);
    assert_eq!(
        class("Network"),
        [
            named("layer", Type::Class("layer".to_owned())),
            named("metadata", Type::Text),
            named("weight", Type::Tensor),
        ]
    );
    assert_eq!(class("layer"), [named("3", Type::Tensor)]);
}

#[test]
fn names_code_that_no_exporter_writes() {
    let return_line = "    return (_2, _4)\n";
    for (line, told) in [
        ("    torch.save(rows, \"x\")\n", "`torch.save`"),
        ("    _5 = ops.aten.save(rows, \"x\")\n", "`ops.aten.save`"),
        ("    _5 = torch.relu(torch.save(rows))\n", "`torch.save`"),
        (
            "    _5 = ops.tessera.winograd(rows)\n",
            "`ops.tessera.winograd`",
        ),
        ("    _5 = torch.neg(rows, out=self.weight)\n", "`out`"),
        ("    _5 = (self).forward(rows)\n", "(self).forward(rows)"),
        ("    _5 = self.forward(rows)\n", "`self.forward`"),
        (
            "    _5 = torch.ops.aten.relu(rows)\n",
            "`torch.ops.aten.relu`",
        ),
        ("    _5 = __torch__.layer()\n", "`__torch__.layer`"),
        ("    _5 = annotate(List[int], [])\n", "`annotate`"),
        ("    _5 = uninitialized(int)\n", "`uninitialized`"),
        ("    _5 = CONSTANTS.c0\n", "`CONSTANTS`"),
        ("    while True:\n", "`while`"),
        ("    for i in rows:\n", "`for`"),
        ("    if True:\n", "`if`"),
        ("    torch = self.layer\n", "`torch`"),
        ("    _5 = not rows\n", "`not`"),
        ("    _5 = rows if rows else rows\n", "rows if rows"),
        ("    _5 = - - - rows\n", "- - -"),
        ("    _5 = rows[0]\n", "rows[0]"),
        ("    _5 = self.layer.weight\n", "self.layer.weight"),
        ("    _5 = [[rows]]\n", "[[rows]]"),
        (
            "    _5 = [rows]\n    _6 = _5\n    _7 = (_6, _6)\n",
            "(_6, _6)",
        ),
        ("    \n    torch.save(rows, \"x\")\n", "`torch.save`"),
        ("    self.weight = rows\n", "self.weight = rows"),
        ("      _5 = rows\n", "_5 = rows"),
        ("  def __setstate__(self: str) -> str:\n", "`__setstate__`"),
        ("  def other(self: str) -> str:\n", "`other`"),
        ("  n : int\n", "n : int"),
        ("  n : Final[int] = 1\n", "n : Final"),
        ("  n : __torch__.torch.classes.x\n", "classes.x"),
        ("class Network(Module):\n", "class Network"),
        ("class Other(NamedTuple):\n", "NamedTuple"),
        ("class Other:\n", "class Other:"),
        ("import os\n", "import os"),
        ("def f(x: Tensor) -> Tensor:\n", "def f"),
        ("op_version_set = 1\n", "op_version_set"),
    ] {
        let source = NETWORK.replace(return_line, &format!("{return_line}{line}"));
        let refusal = read(source.as_bytes()).unwrap_err().to_string();
        assert!(refusal.contains(told), "{line}: {refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}

#[test]
fn code_is_bounded() {
    let with = |line: &str, count| {
        let (before, after) = NETWORK.split_at(NETWORK.find("    return (").unwrap());
        read([before, &line.repeat(count), after].concat().as_bytes())
    };
    assert!(with("    rows = torch.neg(rows)\n", 1900).is_ok());
    assert!(with("    layer = getattr(layer, \"0\")\n", 9999).is_ok());
    for line in ["    rows = torch.neg(rows)\n", "    _9 = [rows]\n"] {
        assert!(matches!(with(line, 2000), Err(Refusal::Long(_))), "{line}");
    }
}

#[test]
fn reserved_names_are_in_order() {
    assert!(RESERVED.is_sorted());
}

proptest! {
    #[test]
    fn changed_sources_are_read_without_panic(
        start in any::<prop::sample::Index>(),
        length in 0..20usize,
        other in "[ -~\n]{0,20}",
    ) {
        let start = start.index(NETWORK.len());
        let end = NETWORK.len().min(start + length);
        let source = [&NETWORK[..start], &other, &NETWORK[end..]].concat();
        let _ = read(source.as_bytes());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}
