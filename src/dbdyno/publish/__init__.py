"""From a run to a folder that others can check, and from such a folder to what holds of it.

`account` holds the nouns: what a folder is made from. `contents` makes every file from that, and `statement`
the statements on those files, which `envelope` signs. `making` puts a run together, and `folder` writes and
reads what lies on disk. `verified` makes everything again from a folder, and compares.
"""

MAKE_A_KEY = "openssl genpkey -algorithm ed25519 -out dyno.key"
