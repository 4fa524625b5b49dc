//! Lays the studies and what they refer to beside the module, so that a wheel carries them (`[tool.maturin]`).

use std::path::Path;
use std::{env, fs, io};

const CARRIED: [&str; 4] = ["studies", "patches", "docs/guides/keystone.toml", "pipelines/kubernetes.yaml"];

fn main() -> io::Result<()> {
    let tree = Path::new("../..");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let examples = Path::new(&out).join("examples");
    // A file that the tree has no more may not be carried on.
    if examples.exists() {
        fs::remove_dir_all(&examples)?;
    }
    for name in CARRIED {
        let from = tree.join(name);
        println!("cargo:rerun-if-changed={}", from.display());
        copy(&from, &examples.join(name))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).map(|_| ())
}
