"""Where an installation comes from: a path on this machine, a distribution's packages, a
wheel, a build."""
