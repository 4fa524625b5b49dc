"""Which binding of server and driver lets this host tell the smallest differences: `binding` says
what is tried, `slices` measures, `finding` judges, `kept` holds it for studies to use."""
