"""What runs of all kinds are made of before they begin, and how a stored run is read.

A kind reads the study (`study_here`), has it checked (`checked`), fits it to this host (`adapted`), and
begins the run (`begun.new_run`).
"""
