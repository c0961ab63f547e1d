"""Networks in NumPy spelling: trained by JAX, evaluated by NumPy."""
