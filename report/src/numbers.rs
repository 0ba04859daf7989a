//! Human-readable formats for numbers, sizes, durations and dates.

use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

/// Formats a size in bytes, such as "1.5 GB".
pub fn bytes(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, "B");
    for next in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    if unit == "B" || value >= 99.95 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// Formats a duration, such as "83 ms", "5.2 s", "12:05" or "3:04:05".
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=59 => format!("{:.1} s", time.as_secs_f64()),
        60..=3599 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

/// Formats a number with thousands separators, such as "25,000,000".
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number followed by a noun, such as "1 key" or "2 keys".
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Formats the UTC date of a time, such as "2026-11-21".
pub fn date(time: SystemTime) -> String {
    let date = OffsetDateTime::from(time).date();
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn sizes_and_durations_are_rounded() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (99_960, "100 kB"),
            (999_600, "1.0 MB"),
            (12_345_678_901, "12.3 GB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        for (millis, text) in [
            (83, "83 ms"),
            (5_240, "5.2 s"),
            (725_000, "12:05"),
            (11_045_000, "3:04:05"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn large_numbers_have_thousands_separators() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (25_000_000, "25,000,000"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn date_uses_utc() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_827_199, "2000-02-29"),
            (1_795_305_599, "2026-11-21"),
            (1_795_305_600, "2026-11-22"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
