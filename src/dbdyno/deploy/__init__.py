"""From a variant of a run to a folder that puts it into production, and from that folder to a check of a
server.

`deployment` holds the nouns; `made` makes them from a run's analysis and records, and adds the build, where
the variant has one; `files` lays out the folder, with `evidence` for its reader and a profile of TuneD, and
`ansible` on request; `folder` writes and reads it. `check` finds a server that runs already, and holds it
against a recipe by the same proofs as a trial.
"""
