"""The parts of `promissing.explain`: tables with groups made unknown, models asked about them."""
