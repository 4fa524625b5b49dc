"""The experiment's logic by seed: whole runs on a simulated bench, which faults strike at any of their steps.

The journal, the store, the pristine data, their clones and the loop over trials are the product's own.
Engine, driver, observer and clock are models: there is no process, and time goes on only where something is
done. `tests/test_run.py` kills a few real runs, which shows that the model is true.
"""
