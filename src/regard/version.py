"""Which regard this is."""


def version() -> str:
    """As it was installed. It is looked up when it is asked for: the look-up is slower than all else that `regard --help` does."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("regard")
    except PackageNotFoundError:
        return "(not installed)"
