//! Texts and bytes, random or of numbers, appended to a buffer that stays.

use crate::random::Random;
use std::io::Write;

/// Appends random lower-case letters.
pub fn letters(buffer: &mut Vec<u8>, length: usize, random: &mut Random) {
    let from = buffer.len();
    buffer.resize(from + length, 0);
    // 26^13 lies below 2^64; 12 letters leave the bias of the last one below 2^-7 of 26^-12.
    for letters in buffer[from..].chunks_mut(12) {
        let mut number = random.next_u64();
        for letter in letters {
            *letter = b'a' + ((u128::from(number) * 26) >> 64) as u8;
            number = number.wrapping_mul(26);
        }
    }
}

/// Appends random digits.
pub fn digits(buffer: &mut Vec<u8>, length: usize, random: &mut Random) {
    let from = buffer.len();
    buffer.resize(from + length, 0);
    random.digits(&mut buffer[from..]);
}

/// Appends random bytes.
pub fn raw(buffer: &mut Vec<u8>, length: usize, random: &mut Random) {
    let from = buffer.len();
    buffer.resize(from + length, 0);
    for chunk in buffer[from..].chunks_mut(8) {
        chunk.copy_from_slice(&random.next_u64().to_le_bytes()[..chunk.len()]);
    }
}

/// Appends a float as C's `%.15g` writes it, which is how pgbench puts one into a statement.
pub fn write_double(buffer: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        let text: &[u8] =
            if value.is_nan() { b"NaN" } else { [&b"Infinity"[..], b"-Infinity"][usize::from(value < 0.0)] };
        buffer.extend_from_slice(text);
        return;
    }
    let from = buffer.len();
    // Writing to a Vec cannot fail. The exponent is that of the rounded number, as C wants it.
    let _ = write!(buffer, "{value:.14e}");
    let mark = buffer[from..].iter().position(|byte| *byte == b'e').map_or(buffer.len(), |at| from + at);
    let exponent: i32 =
        std::str::from_utf8(&buffer[mark + 1..]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    if (-4..15).contains(&exponent) {
        buffer.truncate(from);
        let _ = write!(buffer, "{value:.*}", (14 - exponent) as usize);
        trim_zeros(buffer, from);
    } else {
        buffer.truncate(mark);
        trim_zeros(buffer, from);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(buffer, "e{sign}{:02}", exponent.abs());
    }
}

fn trim_zeros(buffer: &mut Vec<u8>, from: usize) {
    if buffer[from..].contains(&b'.') {
        let kept = buffer.iter().rposition(|byte| *byte != b'0').map_or(from, |last| last + 1);
        buffer.truncate(kept);
        if buffer.last() == Some(&b'.') {
            buffer.pop();
        }
    }
}
