"""``python -m phdstream``: the command ``phdstream``, where scripts are not on the path."""

from phdstream.cli import main

if __name__ == "__main__":
    main()
