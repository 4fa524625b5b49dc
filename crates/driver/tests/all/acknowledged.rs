//! What tallies acknowledged, as `check` takes it.

use serde_json::{json, Value};

/// The sum over runs that followed one another.
pub fn acknowledged(tallies: &[Value]) -> String {
    let count = |value: &Value| value.as_u64().unwrap();
    let sum = |name: &str| tallies.iter().map(|tally| count(&tally[name])).sum::<u64>();
    let mut by_transaction = serde_json::Map::new();
    for (name, kind) in tallies.iter().flat_map(|tally| tally["by_transaction"].as_object().unwrap()) {
        let so_far = by_transaction.get(name).map_or(0, count);
        by_transaction.insert(name.clone(), json!(so_far + count(&kind["acknowledged"])));
    }
    json!({"acknowledged": sum("acknowledged"), "unknown": sum("unknown"), "by_transaction": by_transaction,
           "start": tallies[0]["start"]})
    .to_string()
}
