//! The functions of expressions: pgbench's, and ours for TOML files.

use crate::workload::options;

/// What an expression may use beyond pgbench's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Pgbench,
    /// With texts in single quotes and the functions that `Signature` marks as ours.
    Extended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Or,
    And,
    Not,
    Case,
    Is,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
    Zipfian,
    Pareto,
    Sequence,
    Row,
    Choice,
    Pick,
    Text,
    Digits,
    Bytes,
    Uuid,
    Now,
    Timestamp,
    Date,
    Concat,
}

impl Function {
    /// True if it keeps something between calls, in a place that is its own.
    pub fn has_memory(self) -> bool {
        matches!(self, Function::RandomZipfian | Function::Zipfian | Function::Sequence)
    }
}

/// How a function is written.
pub struct Signature {
    pub name: &'static str,
    pub function: Function,
    /// How many arguments it takes.
    pub least: usize,
    pub most: usize,
    pub usage: &'static str,
    extended: bool,
}

const fn pgbench(
    name: &'static str,
    function: Function,
    least: usize,
    most: usize,
    usage: &'static str,
) -> Signature {
    Signature { name, function, least, most, usage, extended: false }
}

const fn ours(
    name: &'static str,
    function: Function,
    least: usize,
    most: usize,
    usage: &'static str,
) -> Signature {
    Signature { name, function, least, most, usage, extended: true }
}

const MANY: usize = usize::MAX;

pub static SIGNATURES: &[Signature] = &[
    pgbench("abs", Function::Abs, 1, 1, "abs(number)"),
    pgbench("debug", Function::Debug, 1, 1, "debug(value)"),
    pgbench("double", Function::Double, 1, 1, "double(number)"),
    pgbench("exp", Function::Exp, 1, 1, "exp(number)"),
    pgbench("greatest", Function::Greatest, 1, MANY, "greatest(number, ...)"),
    pgbench("hash", Function::HashMurmur2, 1, 2, "hash(value [, seed])"),
    pgbench("hash_fnv1a", Function::HashFnv1a, 1, 2, "hash_fnv1a(value [, seed])"),
    pgbench("hash_murmur2", Function::HashMurmur2, 1, 2, "hash_murmur2(value [, seed])"),
    pgbench("int", Function::Int, 1, 1, "int(number)"),
    pgbench("least", Function::Least, 1, MANY, "least(number, ...)"),
    pgbench("ln", Function::Ln, 1, 1, "ln(number)"),
    pgbench("mod", Function::Modulo, 2, 2, "mod(integer, integer)"),
    pgbench("permute", Function::Permute, 2, 3, "permute(integer, size [, seed])"),
    pgbench("pi", Function::Pi, 0, 0, "pi()"),
    pgbench("pow", Function::Power, 2, 2, "pow(number, exponent)"),
    pgbench("power", Function::Power, 2, 2, "power(number, exponent)"),
    pgbench("random", Function::Random, 2, 2, "random(low, high)"),
    pgbench(
        "random_exponential",
        Function::RandomExponential,
        3,
        3,
        "random_exponential(low, high, parameter)",
    ),
    pgbench("random_gaussian", Function::RandomGaussian, 3, 3, "random_gaussian(low, high, parameter)"),
    pgbench("random_zipfian", Function::RandomZipfian, 3, 3, "random_zipfian(low, high, parameter)"),
    pgbench("sqrt", Function::Sqrt, 1, 1, "sqrt(number)"),
    ours("uniform", Function::Random, 2, 2, "uniform(low, high)"),
    ours("exponential", Function::RandomExponential, 3, 3, "exponential(low, high, parameter)"),
    ours("gaussian", Function::RandomGaussian, 3, 3, "gaussian(low, high, parameter)"),
    ours("zipfian", Function::Zipfian, 2, 3, "zipfian(low, high [, exponent])"),
    ours("pareto", Function::Pareto, 2, 3, "pareto(low, high [, share])"),
    ours("sequence", Function::Sequence, 0, 1, "sequence([first])"),
    ours("row", Function::Row, 0, 0, "row()"),
    ours("choice", Function::Choice, 1, MANY, "choice(value, ...)"),
    ours("pick", Function::Pick, 1, 1, "pick(:list)"),
    ours("text", Function::Text, 1, 2, "text(length) or text(shortest, longest)"),
    ours("digits", Function::Digits, 1, 2, "digits(length) or digits(groups, length)"),
    ours("bytes", Function::Bytes, 1, 1, "bytes(length)"),
    ours("uuid", Function::Uuid, 0, 0, "uuid()"),
    ours("now", Function::Now, 0, 0, "now()"),
    ours("timestamp", Function::Timestamp, 2, 2, "timestamp('2024-01-01', '2024-12-31')"),
    ours("date", Function::Date, 2, 2, "date('2024-01-01', '2024-12-31')"),
    ours("concat", Function::Concat, 1, MANY, "concat(value, ...)"),
];

fn allowed(language: Language) -> impl Iterator<Item = &'static Signature> {
    SIGNATURES.iter().filter(move |signature| !signature.extended || language == Language::Extended)
}

/// Looks a function up; upper and lower case are the same.
pub fn find(name: &str, language: Language) -> Option<&'static Signature> {
    allowed(language).find(|signature| signature.name.eq_ignore_ascii_case(name))
}

/// The remedy for a function that does not exist.
pub fn nearest(name: &str, language: Language) -> String {
    options::unknown("function", name, allowed(language).map(|signature| signature.name))
        .hint_text()
        .to_owned()
}
