"""The command, where its packages are installed; the lenses need none of them."""

import sys


def main() -> None:
    """Run the command line, or say in one sentence what it lacks."""
    try:
        from fivelenses.cli import app
    except ModuleNotFoundError as error:
        sys.exit(
            f"fivelenses: The package {error.name} is missing: the command needs `pip install 'fivelenses[book]'`; "
            "without it there are the lenses alone."
        )
    app()


if __name__ == "__main__":
    main()
