//! Dates and times of day as text, in the proleptic Gregorian calendar, without a zone.

use std::io::Write;

pub const DAY_S: i64 = 86_400;

/// Seconds since 1970-01-01 of `2024-01-31` or `2024-01-31 23:59:59` (a `T` may stand for the blank).
pub fn parse(text: &str) -> Option<i64> {
    let (date, time) = match text.find([' ', 'T']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day)
    {
        return None;
    }
    let seconds = match time {
        None => 0,
        Some(time) => {
            let mut parts = time.splitn(3, ':').map(number);
            let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
            if hour > 23 || minute > 59 || second > 59 {
                return None;
            }
            hour * 3600 + minute * 60 + second
        }
    };
    Some(days_since_1970(year, month, day) * DAY_S + seconds)
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Years are counted from March, so that a leap day is a year's last (Richards, "Explanatory Supplement to the
/// Astronomical Almanac", chapter 15).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era + i64::from(month >= 10);
    (year, if month < 10 { month + 3 } else { month - 9 }, day)
}

/// Appends `2024-01-31`.
pub fn write_date(text: &mut Vec<u8>, seconds: i64) {
    let (year, month, day) = date_of(seconds.div_euclid(DAY_S));
    // Writing to a Vec cannot fail.
    let _ = write!(text, "{year:04}-{month:02}-{day:02}");
}

/// Appends `2024-01-31 23:59:59`.
pub fn write_timestamp(text: &mut Vec<u8>, seconds: i64) {
    write_date(text, seconds);
    let second = seconds.rem_euclid(DAY_S);
    let _ = write!(text, " {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        assert_eq!(parse("1970-01-01"), Some(0));
        assert_eq!(parse("2000-03-01 00:00:01"), Some(951_868_801));
        assert_eq!(parse("2024-02-29T12:00:00"), Some(1_709_208_000));
    }

    #[test]
    fn impossible_moments() {
        for text in [
            "",
            "2024",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-01 24:00:00",
            "x-1-1",
            "2024-1-+1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(seconds in -62_135_596_800i64..253_402_300_800) {
            let mut text = Vec::new();
            write_timestamp(&mut text, seconds);
            prop_assert_eq!(parse(std::str::from_utf8(&text).unwrap()), Some(seconds));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            parse(&text);
        }
    }
}
