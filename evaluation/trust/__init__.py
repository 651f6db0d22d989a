"""Whether the trust policies find harmful lessons, in a simulated world where the harmful ones are known."""
