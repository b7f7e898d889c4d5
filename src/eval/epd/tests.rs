use super::*;
use crate::play::{Line, Report};
use proptest::prelude::*;

const WAC: &str =
    r#"2rr3k/pp3pp1/1nnqbN1p/3pN3/2pP4/2P3Q1/PPB4P/R4RK1 w - - bm Qg6; id "WAC.001";"#;
const STS: &str = r#"1kr5/3n4/q3p2p/p2n2p1/PppB1P2/5BP1/1P2Q2P/3R2K1 w - - bm f5; id "STS(v1.0) Undermine.001"; c0 "f5=10, Bf2=5, Bg4=3"; c7 "f5 Bf2 Bg4";"#;

fn entry(text: &str) -> Entry {
    Entry::parse(text, 7).unwrap()
}

fn choice(entry: &Entry, mv: &str, score: Score) -> Choice {
    let mv = entry.game.parse_move(mv).unwrap();
    Choice {
        best: Some(mv),
        report: Report {
            lines: vec![Line {
                score,
                wdl: [1.0, 0.0, 0.0],
                moves_left: None,
                moves: vec![mv],
            }],
            ..Report::default()
        },
        ..Choice::default()
    }
}

fn judge(entry: &Entry, mv: &str) -> Verdict {
    entry.judge(&choice(entry, mv, Score::Expected(0.0)))
}

#[test]
fn samples_are_spread_evenly() {
    let sample = |total: u64, limit| -> Vec<u64> {
        let entries = (0..total).map(|line| Entry { line, ..entry(WAC) });
        let sample = sample(entries.collect(), limit);
        sample.iter().map(|entry| entry.line).collect()
    };
    assert_eq!(sample(10, 3), [3, 6, 9]);
    assert_eq!(sample(3, 10), [0, 1, 2]);
    assert_eq!(sample(5, 0), [0; 0]);
    assert!((1..20).all(|limit| sample(15, limit).len() == limit.min(15)));
}

#[test]
fn best_moves() {
    let wac = entry(WAC);
    assert_eq!(wac.id, "WAC.001");
    assert_eq!(wac.question(), "bm Qg6");
    assert!(judge(&wac, "g3g6").solved);
    assert!(!judge(&wac, "f6d5").solved);
    assert_eq!(wac.judge(&Choice::default()), Verdict::default());
}

#[test]
fn forms_that_old_suites_take() {
    for (text, id, question) in [
        (
            "1k1r4/pp1b1R2/3q2pp/4p3/2B5/4Q3/PPP2B2/2K5 b - - ; bm Qd1 + ; id BK.01",
            "BK.01",
            "bm Qd1+",
        ),
        (
            "r1bqk2r/ppp2ppp/2n5/4P3/2Bp2n1/5N1P/PP1N1PP1/R2Q1RK1 b kq - 1 10 ; bm Nh6; am Ne5",
            "7",
            "bm Nh6, am Ngxe5 Ncxe5",
        ),
        ("k7/8/8/8/8/8/2K5/2R5 w - - - ; bm Kc3; id x", "x", "bm Kc3"),
        ("4k3/8/8/8/8/8/8/4K2R w K -1 12 ; bm O-O;", "7", "bm O-O"),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - bm 0-0 e1d1, Ke2!?;",
            "7",
            "bm O-O Kd1 Ke2",
        ),
    ] {
        match Entry::parse(text, 7) {
            Ok(entry) => {
                assert_eq!(entry.id, id);
                assert_eq!(entry.question(), question);
            }
            Err(reason) => panic!("{text}: {reason}"),
        }
    }
}

#[test]
fn moves_to_avoid() {
    let both = entry("4k3/8/8/8/8/8/8/4K2R w K - bm O-O Rh8+; am Rh8+;");
    assert!(judge(&both, "e1g1").solved);
    assert!(!judge(&both, "h1h8").solved);
    assert!(!judge(&both, "h1h7").solved);
    let avoid = entry("4k3/8/8/8/8/8/8/4K2R w K - am Rh8+;");
    assert!(judge(&avoid, "h1h7").solved);
    assert!(!judge(&avoid, "h1h8").solved);
}

#[test]
fn grades_give_points_and_comments_do_not() {
    let sts = entry(STS);
    let verdict = |mv| judge(&sts, mv);
    assert_eq!(
        verdict("f4f5"),
        Verdict {
            solved: true,
            points: 10
        }
    );
    assert_eq!(
        verdict("d4f2"),
        Verdict {
            solved: false,
            points: 5
        }
    );
    assert_eq!(
        verdict("h2h3"),
        Verdict {
            solved: false,
            points: 0
        }
    );
    assert_eq!(sts.most_points(), 10);
    let ungraded = entry(&WAC.replace(';', r#"; c0 "Qg6=x, or: so, they say";"#));
    assert_eq!(ungraded.most_points(), 0);
    let only = entry(r#"4k3/4P3/8/8/8/8/8/4K2R w K - c0 "O-O=3, Rh8+=9";"#);
    assert_eq!(
        judge(&only, "h1h8"),
        Verdict {
            solved: true,
            points: 9
        }
    );
    assert_eq!(
        judge(&only, "e1g1"),
        Verdict {
            solved: false,
            points: 3
        }
    );
}

#[test]
fn mates_must_be_proven_and_short_enough() {
    let two = entry("6k1/5ppp/8/8/8/8/5PPP/QR4K1 w - - bm #2; ep; 00:00;");
    assert_eq!(two.question(), "bm #2");
    let solved = |entry: &Entry, mv, score| entry.judge(&choice(entry, mv, score)).solved;
    assert!(solved(&two, "b1b8", Score::Mate(1)));
    assert!(solved(&two, "a1a7", Score::Mate(2)));
    assert!(!solved(&two, "a1a7", Score::Mate(3)));
    assert!(!solved(&two, "b1b8", Score::Expected(1.0)));
    assert!(!solved(&two, "b1b8", Score::Mate(-1)));
    let mated = entry("6k1/5ppp/8/8/8/8/5PPP/QR4K1 b - - bm #-2;");
    assert!(solved(&mated, "g8f8", Score::Mate(-2)));
    assert!(!solved(&mated, "g8f8", Score::Mate(2)));
    let limits = |entry| {
        let mut limits = Limits::default();
        Attempt::new(entry).adjust(&mut limits);
        limits.mate
    };
    assert_eq!(limits(two), Some(2));
    assert_eq!(limits(mated), None);
}

#[test]
fn a_direct_mate_is_asked_for_where_no_moves_are() {
    const MATE: &str = "6k1/5ppp/8/8/8/8/5PPP/QR4K1 w - -";
    for (operations, question) in [
        ("dm 1;", "bm #1"),
        ("id \"a\"; dm 2", "bm #2"),
        ("dm 2; bm #1;", "bm #1"),
        ("dm 1; bm Rb8#;", "bm Rb8#"),
        ("am Qa7; dm 1;", "am Qa7"),
    ] {
        assert_eq!(entry(&format!("{MATE} {operations}")).question(), question);
    }
    let one = entry(&format!("{MATE} dm 1;"));
    let solved = |moves| one.judge(&choice(&one, "b1b8", Score::Mate(moves))).solved;
    assert!(solved(1) && !solved(2));
}

#[test]
fn moves_are_read_however_they_are_written() {
    for (moves, question) in [
        ("bm e8Q e8(N) e7-e8=R e7e8b;", "bm e8=Q+ e8=N e8=R+ e8=B"),
        ("bm Ke1-d1 Ke1d1 e1-e2;", "bm Kd1 Kd1 Ke2"),
        ("bm 0-0 o-o e1g1 e1h1;", "bm O-O O-O O-O O-O"),
    ] {
        let text = format!("k7/4P3/8/8/8/8/8/4K2R w K - {moves}");
        assert_eq!(entry(&text).question(), question);
    }
}

#[test]
fn suites_are_read_from_any_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suite.epd");
    let marked = format!("\u{feff}{WAC}\n{STS}\n");
    for bytes in [
        marked.as_bytes().to_vec(),
        zstd::bulk::compress(marked.as_bytes(), 1).unwrap(),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let (entries, refused) = read(&path).unwrap();
        assert_eq!((entries.len(), refused.len()), (2, 0));
    }
    let says = |path: &std::path::Path| read(path).unwrap_err().to_string();
    assert!(says(folder.path()).ends_with("it is a folder"));
    std::fs::write(&path, b"\xff\xfe4\0k\0").unwrap();
    assert!(says(&path).contains("UTF-16"));
}

#[test]
fn names_unusable_lines() {
    for (text, reason) in [
        ("nonsense", "nonsense"),
        (
            "4k3/8/8/8/8/8/8/4K2R w K - id \"no question\";",
            "nothing is asked",
        ),
        ("4k3/8/8/8/8/8/8/4K2R w K - bm Qd1;", "`Qd1`"),
        ("4k3/8/8/8/8/8/8/4K2R w K - bm #0;", "`#0`"),
        ("4k3/8/8/8/8/8/8/4K2R w K - dm 0;", "`dm 0` is not a mate"),
        ("4k3/8/8/8/8/8/8/4K2R w K - dm;", "`dm ` is not a mate"),
        ("8/8/8/8/8/8/8/4K2R w K - bm Rh8;", "not a legal position"),
    ] {
        let error = Entry::parse(text, 1).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn suites_are_read_around_their_faults() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suite.epd");
    std::fs::write(&path, format!("{WAC}\n\n# comment\nnonsense\n{STS}\n\0\n")).unwrap();
    let (entries, refused) = read(&path).unwrap();
    let lines: Vec<u64> = entries.iter().map(|entry| entry.line).collect();
    assert_eq!(lines, [1, 5]);
    assert_eq!(refused.len(), 1);
    assert!(refused[0].to_string().contains("line 4"));
    std::fs::write(&path, "nonsense\n").unwrap();
    assert!(matches!(read(&path), Err(SuiteError::Line { line: 1, .. })));
    std::fs::write(&path, "\n").unwrap();
    assert!(matches!(read(&path), Err(SuiteError::Empty { .. })));
    let missing = folder.path().join("missing.epd");
    assert!(matches!(read(&missing), Err(SuiteError::Read { .. })));
}

#[test]
fn summaries() {
    let mut attempts: Vec<Attempt> = [WAC, STS].map(|text| Attempt::new(entry(text))).into();
    for (attempt, mv) in attempts.iter_mut().zip(["g3g6", "d4f2"]) {
        let choice = choice(&attempt.entry, mv, Score::Expected(0.0));
        assert!(!attempt.answer(&choice));
    }
    let summary = summarise(&attempts);
    assert_eq!((summary.solved, summary.total), (1, 2));
    assert_eq!((summary.points, summary.most_points), (5, 10));
}

proptest! {
    #[test]
    fn parsing_never_panics(
        any in "\\PC*",
        operations in r##"((bm|am|c0|id|bm #) ?["#+=,A-Ha-h0-9 \-Oé]{0,12};? ?){0,5}"##,
    ) {
        let _ = Entry::parse(&any, 1);
        let _ = Entry::parse(&format!("4k3/4P3/8/8/8/8/8/4K2R w K - {operations}"), 1);
    }

    #[test]
    fn written_moves_are_read_back(index in 0usize..100) {
        let wac = entry(WAC);
        let legal = shakmaty::Position::legal_moves(wac.game.position());
        let mv = legal[index % legal.len()];
        let again = entry(&WAC.replace("Qg6", &wac.san(mv)));
        prop_assert_eq!(again.best, vec![mv]);
    }
}
