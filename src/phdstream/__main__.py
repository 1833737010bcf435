"""``python -m phdstream``: the command ``phdstream``, where scripts are not on the path."""

from phdstream.app.cli import main

if __name__ == "__main__":
    main()
