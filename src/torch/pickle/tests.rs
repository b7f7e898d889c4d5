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
