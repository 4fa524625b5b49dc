//! The statements of vector search, as each engine wants them.

use super::data::{floats, Distance};
use crate::error::{Error, Result};
use crate::session::{Value, VectorSql};
use std::fmt::Write;

pub(super) const TABLE: &str = "embeddings";
pub(super) const INDEX: &str = "embeddings_nearest";

/// What shapes the index, and how far a search goes; 0 leaves the choice to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Graph {
    pub m: i64,
    pub ef: i64,
    pub ef_construction: i64,
    pub distance: Distance,
}

impl Graph {
    /// Refuses what the engine has no knob for.
    pub fn require(&self, engine: VectorSql) -> Result<()> {
        if engine == VectorSql::MariaDb && self.ef_construction != 0 {
            return Err(Error::user("MariaDB has no ef_construction").hint("leave it out, or give 0"));
        }
        Ok(())
    }

    /// The statements that make the table without its index.
    pub fn create(&self, engine: VectorSql, dimensions: usize) -> Vec<String> {
        match engine {
            VectorSql::MariaDb => vec![format!(
                "CREATE TABLE {TABLE} (id INTEGER NOT NULL PRIMARY KEY, embedding VECTOR({dimensions}) NOT NULL) ENGINE=InnoDB"
            )],
            VectorSql::PgVector => vec![
                "CREATE EXTENSION IF NOT EXISTS vector".to_owned(),
                format!("CREATE TABLE {TABLE} (id INTEGER NOT NULL PRIMARY KEY, embedding VECTOR({dimensions}) NOT NULL)"),
                // Vectors are not compressible and are all read: next to their row is where they belong.
                format!("ALTER TABLE {TABLE} ALTER COLUMN embedding SET STORAGE PLAIN"),
            ],
        }
    }

    /// The statements that make the index over the rows loaded; `size_bytes` is what the vectors take.
    pub fn index(&self, engine: VectorSql, size_bytes: usize) -> Vec<String> {
        match engine {
            VectorSql::MariaDb => {
                let m = if self.m > 0 { format!(" M={}", self.m) } else { String::new() };
                let distance = self.distance.as_str();
                vec![format!(
                    "ALTER TABLE {TABLE} ADD VECTOR INDEX {INDEX} (embedding){m} DISTANCE={distance}"
                )]
            }
            VectorSql::PgVector => {
                let given = [("m", self.m), ("ef_construction", self.ef_construction)];
                let given: Vec<String> = given
                    .iter()
                    .filter(|(_, value)| *value > 0)
                    .map(|(name, value)| format!("{name} = {value}"))
                    .collect();
                let with =
                    if given.is_empty() { String::new() } else { format!(" WITH ({})", given.join(", ")) };
                let class = match self.distance {
                    Distance::Euclidean => "vector_l2_ops",
                    Distance::Cosine => "vector_cosine_ops",
                };
                vec![
                    // A graph that outgrows this is built on disk, many times slower.
                    format!("SET maintenance_work_mem = '{}MB'", (size_bytes >> 20) * 2 + 64),
                    format!("CREATE INDEX {INDEX} ON {TABLE} USING hnsw (embedding {class}){with}"),
                    format!("ANALYZE {TABLE}"),
                ]
            }
        }
    }

    /// What a client says before it searches.
    pub fn session(&self, engine: VectorSql) -> Option<String> {
        let name = match engine {
            VectorSql::MariaDb => "SESSION mhnsw_ef_search",
            VectorSql::PgVector => "hnsw.ef_search",
        };
        (self.ef > 0).then(|| format!("SET {name} = {}", self.ef))
    }

    /// The distance of a row's vector from an expression.
    pub fn distance_to(&self, engine: VectorSql, expression: &str) -> String {
        match (engine, self.distance) {
            (VectorSql::MariaDb, Distance::Euclidean) => {
                format!("VEC_DISTANCE_EUCLIDEAN(embedding, {expression})")
            }
            (VectorSql::MariaDb, Distance::Cosine) => format!("VEC_DISTANCE_COSINE(embedding, {expression})"),
            (VectorSql::PgVector, Distance::Euclidean) => format!("embedding <-> {expression}"),
            (VectorSql::PgVector, Distance::Cosine) => format!("embedding <=> {expression}"),
        }
    }

    /// The search for the `k` nearest to an expression.
    pub fn search(&self, engine: VectorSql, expression: &str, k: usize) -> String {
        format!("SELECT id FROM {TABLE} ORDER BY {} LIMIT {k}", self.distance_to(engine, expression))
    }
}

/// A vector, as the files hold it, in the form in which a parameter carries it.
pub(super) fn encode(engine: VectorSql, vector: &[u8], out: &mut Vec<u8>) {
    out.clear();
    match engine {
        VectorSql::MariaDb => out.extend_from_slice(vector),
        // Its number of dimensions, two bytes unused, then the floats, all big-endian.
        VectorSql::PgVector => {
            out.extend_from_slice(&((vector.len() / 4) as u16).to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            vector.chunks_exact(4).for_each(|bytes| out.extend([bytes[3], bytes[2], bytes[1], bytes[0]]));
        }
    }
}

/// A vector in pgvector's text form.
pub(super) fn put_text(vector: &[u8], out: &mut String) {
    out.clear();
    for (index, value) in floats(vector).enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(out, "{}{value}", if index == 0 { '[' } else { ',' });
    }
    out.push(']');
}

/// Whether a column holds this vector: MariaDB answers with its bytes, pgvector with its text.
pub(super) fn holds(value: Value<'_>, vector: &[u8]) -> bool {
    match value {
        Value::Bytes(bytes) => bytes == vector,
        Value::Text(text) => {
            let values = text.trim_start_matches('[').trim_end_matches(']').split(',');
            values.map(|value| value.parse::<f32>().ok()).eq(floats(vector).map(Some))
        }
        _ => false,
    }
}

/// A vector as a literal in a statement's text.
pub(super) fn literal(engine: VectorSql, vector: &[u8]) -> String {
    let mut text = String::new();
    match engine {
        VectorSql::MariaDb => {
            text.push_str("0x");
            vector.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            text
        }
        VectorSql::PgVector => {
            put_text(vector, &mut text);
            format!("'{text}'::vector")
        }
    }
}

/// A question whose answer, if there is any row, says that the index is not ready yet.
pub(super) fn still_building(engine: VectorSql) -> String {
    match engine {
        VectorSql::MariaDb => format!(
            "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE {TABLE} ADD VECTOR INDEX%' LIMIT 1"
        ),
        VectorSql::PgVector => format!(
            "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('{INDEX}') AND NOT indisvalid \
             UNION ALL SELECT 1 FROM pg_stat_progress_create_index WHERE relid = to_regclass('{TABLE}') LIMIT 1"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: Graph = Graph { m: 6, ef: 20, ef_construction: 0, distance: Distance::Cosine };

    #[test]
    fn statements_are_those_of_the_engine() {
        assert_eq!(
            GRAPH.index(VectorSql::MariaDb, 1 << 20),
            ["ALTER TABLE embeddings ADD VECTOR INDEX embeddings_nearest (embedding) M=6 DISTANCE=cosine"]
        );
        assert_eq!(
            GRAPH.index(VectorSql::PgVector, 1 << 20)[1],
            "CREATE INDEX embeddings_nearest ON embeddings USING hnsw (embedding vector_cosine_ops) WITH (m = 6)"
        );
        assert_eq!(
            GRAPH.search(VectorSql::PgVector, "?", 10),
            "SELECT id FROM embeddings ORDER BY embedding <=> ? LIMIT 10"
        );
        assert_eq!(GRAPH.session(VectorSql::MariaDb).as_deref(), Some("SET SESSION mhnsw_ef_search = 20"));
        assert_eq!(Graph { ef: 0, ..GRAPH }.session(VectorSql::PgVector), None);
    }

    #[test]
    fn a_knob_that_the_engine_lacks_is_refused() {
        let graph = Graph { ef_construction: 64, ..GRAPH };
        assert!(graph.require(VectorSql::MariaDb).is_err() && graph.require(VectorSql::PgVector).is_ok());
    }

    #[test]
    fn a_vector_is_known_in_either_form() {
        let vector: Vec<u8> = [1.5f32, -2e-7].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(holds(Value::Bytes(&vector), &vector) && holds(Value::Text("[1.5,-2e-07]"), &vector));
        for other in ["[1.5,-3e-07]", "[1.5]", "[1.5,-2e-07,0]", "[]", "[1.5,x]"] {
            assert!(!holds(Value::Text(other), &vector), "{other}");
        }
        assert!(!holds(Value::Bytes(&vector[..4]), &vector) && !holds(Value::Null, &vector));
    }

    #[test]
    fn vectors_are_written_in_each_form() {
        let vector: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut out = vec![9];
        encode(VectorSql::MariaDb, &vector, &mut out);
        assert_eq!(out, vector);
        encode(VectorSql::PgVector, &vector, &mut out);
        assert_eq!(out, [0, 2, 0, 0, 0x3F, 0xC0, 0, 0, 0xC0, 0, 0, 0]);
        assert_eq!(literal(VectorSql::PgVector, &vector), "'[1.5,-2]'::vector");
        assert_eq!(literal(VectorSql::MariaDb, &vector), "0x0000c03f000000c0");
    }
}
