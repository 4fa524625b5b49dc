//! One execution of a statement as it goes out: with its parameters in binary, or as text with literals in it.

use super::literal::put_literal;
use super::packet::{put_string, HEADER_BYTES};
use super::{command, Encoding, Mysql, Prepared};
use crate::error::{Error, Result};
use crate::session::{Statement, Value};

/// The type of a parameter that is a whole number.
const WHOLE_NUMBER: u8 = 0x08;

impl Mysql {
    /// Puts one execution into the outbox.
    #[inline]
    pub(super) fn put_execute(&mut self, statement: Statement, parameters: &[Value<'_>]) -> Result<Encoding> {
        let index = statement.0 as usize;
        if let (Some(Prepared::Binary { id, parameters: 1, types, .. }), [Value::Int(key)]) =
            (self.prepared.get(index), parameters)
        {
            if types[..] == [WHOLE_NUMBER] {
                self.channel.put_packet(&of_key(*id, *key));
                return Ok(Encoding::Binary(index));
            }
        }
        let start = self.channel.start(0);
        let out = self.channel.outbox();
        let encoding = match self.prepared.get_mut(index) {
            Some(Prepared::Binary { id, parameters: count, types, .. }) if *count == parameters.len() => {
                let [a, b, c, d] = id.to_le_bytes();
                // No cursor; one iteration.
                out.extend_from_slice(&[command::EXECUTE, a, b, c, d, 0, 1, 0, 0, 0]);
                put_parameters(out, parameters, types);
                Encoding::Binary(index)
            }
            Some(Prepared::Text { pieces }) if pieces.len() == parameters.len() + 1 => {
                out.push(command::QUERY);
                put_text(out, pieces, parameters);
                Encoding::Text
            }
            _ => {
                // What was put must not go out with the next packet, and so the server learns of no types either.
                out.clear();
                self.tell_types_again(Encoding::Binary(index));
                return Err(Error::internal(format!(
                    "the statement does not take {} parameters",
                    parameters.len()
                )));
            }
        };
        self.channel.end(start);
        Ok(encoding)
    }

    /// Forgets which types the server was told: it may have refused the execution before it looked at them.
    #[cold]
    pub(super) fn tell_types_again(&mut self, encoding: Encoding) {
        let Encoding::Binary(index) = encoding else { return };
        if let Some(Prepared::Binary { types, .. }) = self.prepared.get_mut(index) {
            types.clear();
        }
    }
}

/// The packet of an execution with one whole number, whose type the server was told before.
#[inline]
fn of_key(id: u32, key: i64) -> [u8; HEADER_BYTES + 20] {
    let ([a, b, c, d], [s, t, u, v, w, x, y, z]) = (id.to_le_bytes(), key.to_le_bytes());
    // No cursor; one iteration; the number is not null, and its type is as before.
    [20, 0, 0, 0, command::EXECUTE, a, b, c, d, 0, 1, 0, 0, 0, 0, 0, s, t, u, v, w, x, y, z]
}

#[inline]
fn put_parameters(out: &mut Vec<u8>, parameters: &[Value<'_>], types: &mut Vec<u8>) {
    if parameters.is_empty() {
        return;
    }
    let nulls = out.len();
    let told = types.len() == parameters.len()
        && std::iter::zip(parameters, types.iter())
            .all(|(value, told)| kind_of(value) == *told || value.is_null());
    if told && parameters.len() <= 8 {
        out.extend_from_slice(&[0, 0]);
    } else {
        out.resize(nulls + parameters.len().div_ceil(8), 0);
        out.push(u8::from(!told));
    }
    if !told {
        types.clear();
        types.extend(parameters.iter().map(kind_of));
        types.iter().for_each(|kind| out.extend_from_slice(&[*kind, 0]));
    }
    for (index, value) in parameters.iter().enumerate() {
        match value {
            Value::Null => out[nulls + index / 8] |= 1 << (index % 8),
            Value::Int(n) => out.extend_from_slice(&n.to_le_bytes()),
            Value::Float(x) => out.extend_from_slice(&x.to_le_bytes()),
            Value::Text(text) => put_string(out, text.as_bytes()),
            Value::Bytes(bytes) => put_string(out, bytes),
        }
    }
}

#[inline]
fn kind_of(value: &Value<'_>) -> u8 {
    match value {
        Value::Int(_) => WHOLE_NUMBER,
        Value::Float(_) => 0x05,
        Value::Null | Value::Text(_) => 0xFD,
        Value::Bytes(_) => 0xFC,
    }
}

/// The statement with its parameters as literals.
fn put_text(out: &mut Vec<u8>, pieces: &[String], parameters: &[Value<'_>]) {
    for (index, piece) in pieces.iter().enumerate() {
        out.extend_from_slice(piece.as_bytes());
        if let Some(value) = parameters.get(index) {
            put_literal(out, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{end_packet, start_packet};
    use super::*;
    use crate::session::{pieces, Syntax};

    #[test]
    fn values_stand_between_the_pieces_of_a_statement() {
        let mut out = Vec::new();
        let values = [Value::Text("it's"), Value::Text("a\\"), Value::Bytes(&[1, 255])];
        put_text(&mut out, &pieces("v = ?, w = ?, x = ?", &Syntax::MYSQL), &values);
        assert_eq!(out, b"v = 'it''s', w = _utf8mb4 0x615c, x = 0x01ff");
    }

    #[test]
    fn an_execution_with_a_key_is_what_is_put_together() {
        for key in [0, -1, 7, i64::MAX, i64::MIN] {
            let (mut out, mut types) = (Vec::new(), vec![WHOLE_NUMBER]);
            let start = start_packet(&mut out, 0);
            out.extend_from_slice(&[command::EXECUTE, 4, 3, 2, 1, 0, 1, 0, 0, 0]);
            put_parameters(&mut out, &[Value::Int(key)], &mut types);
            end_packet(&mut out, start);
            assert_eq!(out, of_key(0x0102_0304, key));
        }
    }

    #[test]
    fn types_are_told_once() {
        let (mut out, mut types) = (Vec::new(), Vec::new());
        put_parameters(&mut out, &[Value::Int(1)], &mut types);
        assert_eq!(out, [0, 1, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        put_parameters(&mut out, &[Value::Int(2)], &mut types);
        assert_eq!(out, [0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        out.clear();
        put_parameters(&mut out, &[Value::Null], &mut types);
        assert_eq!(out, [1, 0]);
    }
}
