use super::*;

#[test]
fn counts_are_read() {
    for (text, counts) in [
        ("4", &[4][..]),
        ("1,2,4", &[1, 2, 4]),
        ("1..8", &[1, 2, 4, 8]),
        ("3..20", &[3, 6, 12, 20]),
        ("5..5", &[5]),
        ("4096", &[4096]),
    ] {
        assert_eq!(parse_counts(text), Ok(Counts(counts.to_vec())), "{text}");
    }
    for text in [
        "",
        "0",
        "-1",
        "4097",
        "1,,2",
        "1,0",
        "8..1",
        "0..4",
        "..",
        "1..",
        "x",
        "1...3",
        "99999999999",
    ] {
        assert!(parse_counts(text).is_err(), "{text}");
    }
}
