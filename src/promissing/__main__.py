"""`python -m promissing`."""

from promissing.cli import main

if __name__ == "__main__":
    main(prog_name="promissing")
