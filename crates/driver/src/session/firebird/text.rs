//! Numbers with a fraction, dates and times as text.

/// Appends `number` times 10 to the power of `scale`, which is never above 0.
pub(super) fn decimal(out: &mut Vec<u8>, number: i128, scale: i32) {
    let fraction_digits = scale.unsigned_abs() as usize;
    let (mut digits, mut at) = ([b'0'; 40], 40);
    let mut rest = number.unsigned_abs();
    while rest > 0 && at > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // At least one digit stands before the point.
    let first = at.min(39 - fraction_digits.min(38));
    let (whole, fraction) = digits[first..].split_at(40 - first - fraction_digits.min(38));
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(whole);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

/// Appends a date: `days` counts from 1858-11-17, day 0 of the modified Julian calendar.
pub(super) fn date(out: &mut Vec<u8>, days: i32) {
    let (year, month, day) = civil(i64::from(days));
    padded(out, year.unsigned_abs() as u32, 4);
    out.push(b'-');
    padded(out, month, 2);
    out.push(b'-');
    padded(out, day, 2);
}

/// Appends a time of day, which counts in units of 100 us; the fraction only where there is one.
pub(super) fn time(out: &mut Vec<u8>, units: u32) {
    let (seconds, fraction) = (units / 10_000, units % 10_000);
    padded(out, seconds / 3600, 2);
    out.push(b':');
    padded(out, seconds / 60 % 60, 2);
    out.push(b':');
    padded(out, seconds % 60, 2);
    if fraction != 0 {
        out.push(b'.');
        padded(out, fraction, 4);
    }
}

fn padded(out: &mut Vec<u8>, number: u32, width: u32) {
    for place in (0..width).rev() {
        out.push(b'0' + (number / 10u32.pow(place) % 10) as u8);
    }
}

/// Year, month and day of a modified Julian day, in the Gregorian calendar.
fn civil(modified_julian_day: i64) -> (i64, u32, u32) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // Years are taken to start on 1 March, so that the leap day is the last of its year; day 0 is 0000-03-01.
    let day = modified_julian_day + 678_881;
    let (era, day_of_era) = (day.div_euclid(DAYS_OF_400_YEARS), day.rem_euclid(DAYS_OF_400_YEARS));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March on have 153 days, whatever five they are.
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let (month, next_year) = if shifted_month < 10 { (shifted_month + 3, 0) } else { (shifted_month - 9, 1) };
    (era * 400 + year_of_era + next_year, month as u32, day_of_month as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_have_their_point_where_the_scale_says() {
        let decimal = |number, scale| written(|out| decimal(out, number, scale));
        assert_eq!(decimal(12345, -2), "123.45");
        assert_eq!(decimal(-5, -2), "-0.05");
        assert_eq!(decimal(0, 0), "0");
        assert_eq!(decimal(0, -3), "0.000");
        assert_eq!(decimal(i64::MIN.into(), -4), "-922337203685477.5808");
        assert_eq!(decimal(i128::MIN, 0), i128::MIN.to_string());
        assert_eq!(decimal(i128::MAX, -38), "1.70141183460469231731687303715884105727");
    }

    #[test]
    fn days_are_dates_of_the_gregorian_calendar() {
        for (days, expected) in [
            (0, "1858-11-17"),
            (40_587, "1970-01-01"),
            (51_603, "2000-02-29"),
            (51_604, "2000-03-01"),
            (-678_575, "0001-01-01"),
            (2_973_483, "9999-12-31"),
        ] {
            assert_eq!(written(|out| date(out, days)), expected);
        }
    }

    #[test]
    fn a_time_shows_a_fraction_only_where_there_is_one() {
        assert_eq!(written(|out| time(out, 863_999_999)), "23:59:59.9999");
        assert_eq!(written(|out| time(out, 36_610_000)), "01:01:01");
    }

    proptest! {
        #[test]
        fn decimals_are_read_back_as_they_were(number: i64, scale in -18i32..=0) {
            let text = written(|out| decimal(out, number.into(), scale));
            let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            prop_assert_eq!(fraction as i32, -scale);
            prop_assert_eq!(text.replace('.', "").parse::<i64>().unwrap(), number);
        }

        #[test]
        fn the_day_after_is_the_next_date(days in -678_575i32..2_973_482) {
            let (today, tomorrow) = (written(|out| date(out, days)), written(|out| date(out, days + 1)));
            prop_assert!(today < tomorrow);
        }
    }
}
