"""A simulated news web for tests, demo and benchmarks; see docs/newsweb.md."""
