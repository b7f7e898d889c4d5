use super::*;
use proptest::prelude::*;

const HEADER: &str = "PuzzleId,FEN,Moves,Rating,RatingDeviation\n";
/// A mate in two.
const MATE_IN_TWO: &str =
    "dhs2l,6rk/p1b2p1p/5Pr1/q7/2p1N2Q/7R/P1P4P/R6K b - - 7 31,h7h6 h4h6 g6h6 h3h6,438,83\n";
/// White can mate with the rook or with the queen; the solution names only one of them.
const TWO_MATES: &str = "twice,6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 b - - 0 1,c7c6 b1b8,2900,1\n";

fn read_text(text: &str) -> Result<Vec<Puzzle>, SuiteError> {
    parse(text.as_bytes(), Path::new("test.csv")).map(|(puzzles, _)| puzzles)
}

fn attempt(row: &str) -> Attempt {
    Attempt::new(read_text(&format!("{HEADER}{row}")).unwrap().remove(0))
}

fn play(attempt: &mut Attempt, mv: &str) -> bool {
    let best = Some(attempt.game().parse_move(mv).unwrap());
    attempt.answer(&Choice {
        best,
        ..Choice::default()
    })
}

#[test]
fn the_opponent_moves_first_and_every_move_must_be_found() {
    let mut attempt = attempt(MATE_IN_TWO);
    assert_eq!(attempt.game().plies().len(), 2);
    assert!(play(&mut attempt, "h4h6"));
    assert!(!attempt.solved);
    assert!(!play(&mut attempt, "h3h6"));
    assert!(attempt.solved);
}

#[test]
fn its_positions_are_those_with_a_move_to_find() {
    let puzzle = attempt(MATE_IN_TWO).puzzle.clone();
    let mut asked = puzzle.positions();
    let mut game = puzzle.game.clone();
    assert_eq!(asked.next().unwrap().position(), game.position());
    for mv in &puzzle.solution[..2] {
        game.play(*mv);
    }
    assert_eq!(asked.next().unwrap().position(), game.position());
    assert!(asked.next().is_none());
}

#[test]
fn a_wrong_move_fails_the_whole_puzzle() {
    let mut first = attempt(MATE_IN_TWO);
    assert!(!play(&mut first, "h3g3"));
    assert!(!first.solved);
    let mut second = attempt(MATE_IN_TWO);
    assert!(play(&mut second, "h4h6"));
    assert!(!play(&mut second, "e4g5"));
    assert!(!second.solved);
    let mut none = attempt(MATE_IN_TWO);
    assert!(!none.answer(&Choice::default()));
    assert!(!none.solved);
}

#[test]
fn another_mate_solves_and_nothing_else_does() {
    let mut other = attempt(TWO_MATES);
    assert!(!play(&mut other, "a1a8"));
    assert!(other.solved);
    let mut quiet = attempt(TWO_MATES);
    assert!(!play(&mut quiet, "a1a7"));
    assert!(!quiet.solved);
}

#[test]
fn faults_name_their_line() {
    for (text, expected) in [
        ("PuzzleId,FEN,Moves\n", "line 1: the column `Rating`"),
        ("", "line 1: the column `PuzzleId`"),
        (
            &format!("{HEADER}a,nonsense,e2e4 e7e5,1,1\n"),
            "line 2: `nonsense`",
        ),
        (&format!("{HEADER}{TWO_MATES}a,b\n"), "line 3"),
        (
            &format!("{HEADER}{}", TWO_MATES.replace("c7c6", "c7c2")),
            "line 2: `c7c2`",
        ),
        (
            &format!("{HEADER}{}", TWO_MATES.replace(" b1b8", "")),
            "line 2: a puzzle",
        ),
        (
            &format!("{HEADER}{}", TWO_MATES.replace("2900", "high")),
            "line 2",
        ),
    ] {
        let error = read_text(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(matches!(read_text(HEADER), Err(SuiteError::Empty { .. })));
}

#[test]
fn rows_with_an_empty_column_are_left_out() {
    let empty = [
        TWO_MATES.replace("2900", ""),
        TWO_MATES.replace("2900", " "),
        TWO_MATES.replace("c7c6 b1b8", ""),
        TWO_MATES.replace("twice", ""),
    ];
    let text = format!("{HEADER}{MATE_IN_TWO}{}{TWO_MATES}", empty.concat());
    let (puzzles, left_out) = parse(text.as_bytes(), Path::new("test.csv")).unwrap();
    let ids: Vec<_> = puzzles.iter().map(|puzzle| puzzle.id.as_str()).collect();
    assert_eq!(ids, ["dhs2l", "twice"]);
    let left_out: Vec<_> = left_out.iter().map(ToString::to_string).collect();
    let of = |line, column| format!("test.csv, line {line}: the column `{column}` is empty");
    let expected = [
        of(3, "Rating"),
        of(4, "Rating"),
        of(5, "Moves"),
        of(6, "PuzzleId"),
    ];
    assert_eq!(left_out, expected);
    let error = read_text(&format!("{HEADER}{}", empty[0])).unwrap_err();
    assert_eq!(error.to_string(), of(2, "Rating"));
}

#[test]
fn files_may_be_compressed_and_have_themes() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("\u{feff}PuzzleId,FEN,Moves,Rating,Themes\n{MATE_IN_TWO}")
        .replace("438,83", "438,\"mate mateIn2\"");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    for (name, bytes) in [
        ("a.csv", text.as_bytes().to_vec()),
        (
            "a.csv.zst",
            zstd::bulk::compress(text.as_bytes(), 1).unwrap(),
        ),
        ("a.csv.gz", gzip.finish().unwrap()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (puzzles, _) = read(&path).unwrap();
        assert_eq!(puzzles[0].themes.as_deref(), Some("mate mateIn2"));
    }
    assert_eq!(attempt(MATE_IN_TWO).puzzle.themes, None);
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("it is a folder"), "{error}");
}

fn rated(ratings: &[u32]) -> Vec<Puzzle> {
    let rows: String = ratings
        .iter()
        .enumerate()
        .map(|(index, rating)| {
            TWO_MATES
                .replace("2900", &rating.to_string())
                .replace("twice", &index.to_string())
        })
        .collect();
    read_text(&format!("{HEADER}{rows}")).unwrap()
}

#[test]
fn samples_are_even_over_bands_and_repeat() {
    let ratings: Vec<u32> = (0..100).map(|_| 450).chain([1000, 2850, 2999]).collect();
    let ids = |limit| -> Vec<String> {
        let puzzles = sample(rated(&ratings), limit);
        puzzles.into_iter().map(|puzzle| puzzle.id).collect()
    };
    let drawn = sample(rated(&ratings), 9);
    let of = |band| drawn.iter().filter(|puzzle| puzzle.band() == band).count();
    assert_eq!((of(400), of(1000), of(2800)), (6, 1, 2));
    assert_eq!(ids(9), ids(9));
    assert_eq!(ids(1000).len(), ratings.len());
    assert_ne!(ids(9)[0], "0");
}

#[test]
fn summaries_by_band() {
    let mut attempts: Vec<Attempt> = rated(&[399, 400, 599, 2800, 3100])
        .into_iter()
        .map(Attempt::new)
        .collect();
    for index in [1, 3, 4] {
        play(&mut attempts[index], "b1b8");
    }
    let summary = summarise(&attempts);
    assert_eq!((summary.score.solved, summary.score.total), (3, 5));
    let bands: Vec<_> = summary
        .bands
        .iter()
        .map(|band| (band.from, band.to, band.score.solved, band.score.total))
        .collect();
    let expected = [
        (200, Some(399), 0, 1),
        (400, Some(599), 1, 2),
        (2800, None, 2, 2),
    ];
    assert_eq!(bands, expected);
    assert_eq!(summary.bands[1].score.accuracy, 0.5);
}

proptest! {
    #[test]
    fn reading_never_panics(text in "\\PC{0,200}", row in "[a-z0-9 /,\"-]{0,80}") {
        let _ = read_text(&text);
        let _ = read_text(&format!("{HEADER}{row}\n"));
        let _ = read_text(&format!("{HEADER}{}", MATE_IN_TWO.replace("h4h6", &row)));
    }
}

#[test]
fn halves_part_the_puzzles_by_their_names() {
    let row = |number: usize| MATE_IN_TWO.replace("dhs2l", &format!("{number:05}"));
    let rows: String = (0..200).map(row).collect();
    let puzzles = read_text(&format!("{HEADER}{rows}")).unwrap();
    let half = |half| puzzles.iter().filter(|it| Half::of(it) == half).count();
    assert_eq!(half(Half::Select) + half(Half::Report), 200);
    assert!((70..=130).contains(&half(Half::Report)));
    // The half depends neither on the order nor on the position in the file.
    let alone = read_text(&format!("{HEADER}{}", row(7))).unwrap();
    assert_eq!(Half::of(&alone[0]), Half::of(&puzzles[7]));
}
