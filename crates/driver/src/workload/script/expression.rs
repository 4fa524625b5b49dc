//! The expression language: that of pgbench's `\set`, and for TOML files text and more generators on top of it.
//! Operators and their precedence are those of pgbench 15's manual, section "Built-in Operators".

use super::function::{self, Function, Language};
use super::moment;
use super::variable::Names;
pub(super) use crate::session::is_name_byte;

/// One level of nesting costs the evaluator one stack frame.
const DEEPEST: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Box<str>),
    /// A variable's slot.
    Variable(usize),
    Call {
        function: Function,
        /// Which of the program's places that keep something between calls (a generator's constants, a counter).
        memory: usize,
        arguments: Box<[Expression]>,
    },
}

/// What is wrong with an expression, and where: `at` counts bytes from its start.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub at: usize,
    pub message: String,
    pub hint: String,
}

impl Fault {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Fault { at, message: message.into(), hint: String::new() }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// Parses a whole text as one expression; variables get slots in `names`.
pub fn parse(text: &str, language: Language, names: &mut Names) -> Result<Expression, Fault> {
    let tokens = tokens(text, language)?;
    let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), language, names };
    let parsed = parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(parsed.expression),
        token => Err(Fault::new(parser.at(), format!("{} is not expected here", token.describe()))),
    }
}

impl Expression {
    /// Calls `visit` for this expression and each within it.
    pub fn walk(&self, visit: &mut impl FnMut(&Expression)) {
        visit(self);
        if let Expression::Call { arguments, .. } = self {
            arguments.iter().for_each(|argument| argument.walk(visit));
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Int(i64),
    /// 2^63: an integer only behind a minus.
    IntAndOne,
    Double(f64),
    Text(String),
    Variable(String),
    Word(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Token::Int(n) => n.to_string(),
            Token::IntAndOne => "9223372036854775808 (too large for an integer)".to_owned(),
            Token::Double(x) => x.to_string(),
            Token::Text(text) => format!("'{text}'"),
            Token::Variable(name) => format!(":{name}"),
            Token::Word(word) => word.clone(),
            Token::Symbol(symbol) => format!("{symbol:?}"),
            Token::End => "the end".to_owned(),
        }
    }
}

/// Longer symbols first, so that the first that fits is the right one.
const SYMBOLS: [&str; 20] = [
    "<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "|", "&", "#", "~", "+", "-", "*", "/", "%", "(", ")",
];

fn tokens(text: &str, language: Language) -> Result<Vec<(usize, Token)>, Fault> {
    let (bytes, mut at, mut tokens) = (text.as_bytes(), 0, Vec::new());
    while let Some(&byte) = bytes.get(at) {
        let (token, next) = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C => {
                at += 1;
                continue;
            }
            b'\\' if text[at + 1..].trim_start_matches('\r').starts_with('\n') => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => number(text, at)?,
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => number(text, at)?,
            b':' if bytes.get(at + 1).copied().is_some_and(is_name_byte) => {
                let next = name_end(bytes, at + 1);
                (Token::Variable(text[at + 1..next].to_owned()), next)
            }
            b'\'' if language == Language::Extended => quoted(text, at)?,
            b',' => (Token::Symbol(","), at + 1),
            byte if is_name_byte(byte) => {
                let next = name_end(bytes, at);
                (Token::Word(text[at..next].to_owned()), next)
            }
            _ => match SYMBOLS.iter().find(|symbol| text[at..].starts_with(**symbol)) {
                Some(symbol) => (Token::Symbol(symbol), at + symbol.len()),
                None => {
                    let letter = text[at..].chars().next().unwrap_or_default();
                    return Err(Fault::new(at, format!("unexpected character ({letter})")));
                }
            },
        };
        tokens.push((at, token));
        at = next;
    }
    Ok(tokens)
}

pub(super) fn name_end(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|byte| is_name_byte(**byte)).count()
}

fn number(text: &str, at: usize) -> Result<(Token, usize), Fault> {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(at);
    let mut whole = true;
    if bytes.get(end) == Some(&b'.') {
        whole = false;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits((end + 1 + sign).min(bytes.len()));
        if exponent_end > end + 1 + sign {
            whole = false;
            end = exponent_end;
        }
    }
    let written = &text[at..end];
    let token = if whole {
        match written.parse::<u64>() {
            Ok(value) if value <= i64::MAX as u64 => Token::Int(value as i64),
            Ok(value) if value == 1 << 63 => Token::IntAndOne,
            _ => return Err(Fault::new(at, format!("the integer {written} is beyond 64 bits"))),
        }
    } else {
        match written.parse::<f64>() {
            Ok(value) if value.is_finite() => Token::Double(value),
            _ => return Err(Fault::new(at, format!("the number {written} is too large"))),
        }
    };
    Ok((token, end))
}

/// A text in single quotes; a quote within it is written twice.
fn quoted(text: &str, at: usize) -> Result<(Token, usize), Fault> {
    let (mut content, mut from) = (String::new(), at + 1);
    loop {
        let Some(length) = text[from..].find('\'') else {
            return Err(Fault::new(at, "a text does not end").hint("close it with a single quote"));
        };
        content.push_str(&text[from..from + length]);
        from += length + 1;
        if !text[from..].starts_with('\'') {
            return Ok((Token::Text(content), from));
        }
        content.push('\'');
        from += 1;
    }
}

/// Binding strengths, from the loosest operator to the tightest.
mod strength {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const IS: u8 = 4;
    pub const COMPARE: u8 = 5;
    pub const BITS: u8 = 6;
    pub const SUM: u8 = 7;
    pub const PRODUCT: u8 = 8;
    pub const SIGN: u8 = 9;
}

struct Parsed {
    expression: Expression,
    depth: usize,
}

impl From<Expression> for Parsed {
    fn from(expression: Expression) -> Self {
        Parsed { expression, depth: 1 }
    }
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    next: usize,
    end: usize,
    language: Language,
    names: &'a mut Names,
}

type Parse<T = Parsed> = Result<T, Fault>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(here) if *here == symbol);
        self.next += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(here) if here.eq_ignore_ascii_case(word));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Parse<()> {
        match self.eat(symbol) {
            true => Ok(()),
            false => {
                Err(Fault::new(self.at(), format!("{symbol:?} is missing before {}", self.peek().describe())))
            }
        }
    }

    fn expect_word(&mut self, word: &str) -> Parse<()> {
        match self.eat_word(word) {
            true => Ok(()),
            false => {
                Err(Fault::new(self.at(), format!("{word} is missing before {}", self.peek().describe())))
            }
        }
    }

    /// Builds a call, refusing what would nest too deep for the evaluator's stack.
    fn call(&mut self, function: Function, parts: Vec<Parsed>) -> Parse {
        let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
        if depth > DEEPEST {
            return Err(Fault::new(self.at(), format!("the expression nests deeper than {DEEPEST} levels"))
                .hint("set a part of it as a variable first"));
        }
        let memory = if function.has_memory() { self.names.memory() } else { 0 };
        let arguments = parts.into_iter().map(|part| part.expression).collect();
        Ok(Parsed { expression: Expression::Call { function, memory, arguments }, depth })
    }

    /// Precedence climbing: reads operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Parse {
        self.nested(least, 0)
    }

    fn nested(&mut self, least: u8, level: usize) -> Parse {
        if level > DEEPEST {
            return Err(Fault::new(self.at(), format!("the expression nests deeper than {DEEPEST} levels"))
                .hint("set a part of it as a variable first"));
        }
        let mut left = self.prefix(level)?;
        let mut compared = false;
        loop {
            if self.is_test(least, &mut left)? {
                compared = false;
                continue;
            }
            let Some((strength, function, swapped)) = self.infix() else { return Ok(left) };
            if strength < least {
                return Ok(left);
            }
            if strength == strength::COMPARE && compared {
                return Err(Fault::new(self.at(), "comparisons cannot be chained").hint("join them with and"));
            }
            compared = strength == strength::COMPARE;
            self.next += 1;
            let right = self.nested(strength + 1, level + 1)?;
            left = self.call(function, if swapped { vec![right, left] } else { vec![left, right] })?;
        }
    }

    /// The operator at hand: how tightly it binds, its function, and whether its operands change places.
    fn infix(&self) -> Option<(u8, Function, bool)> {
        use Function::*;
        Some(match self.peek() {
            Token::Word(word) if word.eq_ignore_ascii_case("or") => (strength::OR, Or, false),
            Token::Word(word) if word.eq_ignore_ascii_case("and") => (strength::AND, And, false),
            Token::Symbol(symbol) => match *symbol {
                "=" => (strength::COMPARE, Equal, false),
                "<>" | "!=" => (strength::COMPARE, NotEqual, false),
                "<" => (strength::COMPARE, Less, false),
                "<=" => (strength::COMPARE, LessOrEqual, false),
                ">" => (strength::COMPARE, Less, true),
                ">=" => (strength::COMPARE, LessOrEqual, true),
                "|" => (strength::BITS, BitOr, false),
                "#" => (strength::BITS, BitXor, false),
                "&" => (strength::BITS, BitAnd, false),
                "<<" => (strength::BITS, ShiftLeft, false),
                ">>" => (strength::BITS, ShiftRight, false),
                "+" => (strength::SUM, Add, false),
                "-" => (strength::SUM, Subtract, false),
                "*" => (strength::PRODUCT, Multiply, false),
                "/" => (strength::PRODUCT, Divide, false),
                "%" => (strength::PRODUCT, Modulo, false),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// `IS [NOT] NULL|TRUE|FALSE`, `ISNULL`, `NOTNULL` behind `left`.
    fn is_test(&mut self, least: u8, left: &mut Parsed) -> Parse<bool> {
        if least > strength::IS {
            return Ok(false);
        }
        let (negated, tested) = if self.eat_word("isnull") {
            (false, Expression::Null)
        } else if self.eat_word("notnull") {
            (true, Expression::Null)
        } else if self.eat_word("is") {
            let negated = self.eat_word("not");
            let tested = if self.eat_word("null") {
                Expression::Null
            } else if self.eat_word("true") {
                Expression::Bool(true)
            } else if self.eat_word("false") {
                Expression::Bool(false)
            } else {
                return Err(Fault::new(
                    self.at(),
                    "is must be followed by null, true or false, or not and one of these",
                ));
            };
            (negated, tested)
        } else {
            return Ok(false);
        };
        let operand = std::mem::replace(left, Expression::Null.into());
        *left = self.call(Function::Is, vec![operand, tested.into()])?;
        if negated {
            let operand = std::mem::replace(left, Expression::Null.into());
            *left = self.call(Function::Not, vec![operand])?;
        }
        Ok(true)
    }

    fn prefix(&mut self, level: usize) -> Parse {
        let at = self.at();
        let token = self.peek().clone();
        self.next += 1;
        match token {
            Token::Int(value) => Ok(Expression::Int(value).into()),
            Token::Double(value) => Ok(Expression::Double(value).into()),
            Token::Text(text) => Ok(Expression::Text(text.into()).into()),
            Token::Variable(name) => Ok(Expression::Variable(self.names.read(&name)).into()),
            Token::Symbol("(") => {
                let inner = self.nested(0, level + 1)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("+") => self.nested(strength::SIGN, level + 1),
            Token::Symbol("-") if self.peek() == &Token::IntAndOne => {
                self.next += 1;
                Ok(Expression::Int(i64::MIN).into())
            }
            // As pgbench has it: minus x is 0 - x.
            Token::Symbol("-") => {
                let operand = self.nested(strength::SIGN, level + 1)?;
                self.call(Function::Subtract, vec![Expression::Int(0).into(), operand])
            }
            Token::Symbol("~") => {
                let operand = self.nested(strength::BITS + 1, level + 1)?;
                self.call(Function::BitXor, vec![Expression::Int(-1).into(), operand])
            }
            Token::Word(word) => self.word(&word, at, level),
            token => Err(Fault::new(at, format!("a value is expected here, not {}", token.describe()))),
        }
    }

    fn word(&mut self, word: &str, at: usize, level: usize) -> Parse {
        match word.to_ascii_lowercase().as_str() {
            "not" => {
                let operand = self.nested(strength::NOT, level + 1)?;
                self.call(Function::Not, vec![operand])
            }
            "case" => self.case(level),
            "null" => Ok(Expression::Null.into()),
            "true" => Ok(Expression::Bool(true).into()),
            "false" => Ok(Expression::Bool(false).into()),
            name => self.function(name, at, level),
        }
    }

    fn case(&mut self, level: usize) -> Parse {
        let mut parts = Vec::new();
        while self.eat_word("when") {
            parts.push(self.nested(0, level + 1)?);
            self.expect_word("then")?;
            parts.push(self.nested(0, level + 1)?);
        }
        if parts.is_empty() {
            return Err(Fault::new(self.at(), "case must be followed by when"));
        }
        parts.push(match self.eat_word("else") {
            true => self.nested(0, level + 1)?,
            false => Expression::Null.into(),
        });
        self.expect_word("end")?;
        self.call(Function::Case, parts)
    }

    fn function(&mut self, name: &str, at: usize, level: usize) -> Parse {
        let Some(signature) = function::find(name, self.language) else {
            // A name that no parenthesis follows was meant as a variable.
            let hint = match self.eat("(") {
                true => function::nearest(name, self.language),
                false => format!("a variable begins with a colon: :{name}"),
            };
            return Err(Fault::new(at, format!("there is no function {name}")).hint(hint));
        };
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.eat(")") {
            loop {
                arguments.push(self.nested(0, level + 1)?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        if !(signature.least..=signature.most).contains(&arguments.len()) {
            return Err(Fault::new(at, format!("{name} cannot take {} arguments", arguments.len()))
                .hint(format!("write {}", signature.usage)));
        }
        if signature.function == Function::Sequence && arguments.is_empty() {
            arguments.push(Expression::Int(1).into());
        }
        let parsed = self.call(signature.function, arguments)?;
        check(&parsed.expression).map_err(|message| Fault::new(at, message))?;
        Ok(parsed)
    }
}

/// Looks at a call's arguments that can be judged before the run.
fn check(call: &Expression) -> Result<(), String> {
    if let Expression::Call { function: Function::Pick, arguments, .. } = call {
        return match arguments[..] {
            [Expression::Variable(_)] => Ok(()),
            _ => Err("pick takes a list that [start] asks for; write pick(:name)".to_owned()),
        };
    }
    let Expression::Call { function: Function::Timestamp | Function::Date, arguments, .. } = call else {
        return Ok(());
    };
    for argument in arguments {
        match argument {
            Expression::Text(text) if moment::parse(text).is_none() => {
                return Err(format!("{text:?} is no date; write '2024-01-31' or '2024-01-31 23:59:59'"));
            }
            _ => {}
        }
    }
    Ok(())
}
