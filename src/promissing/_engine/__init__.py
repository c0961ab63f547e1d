"""What `promissing._training` is made of."""
