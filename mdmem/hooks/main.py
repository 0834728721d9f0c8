"""What an installed hook runs: `python -I -S mdmem/hooks/main.py EVENT`.

Running the file costs half a bare start less than `python -m`, and `-I` keeps the folder that the agent works in,
which may be anybody's, out of the import path. The package's own folder is put in by its place on disk. `-S` leaves out
the setting up of other packages, which most events never need: the first import of one of them does it.
"""

import gc
import os
import sys


class OtherPackages:
    """Asked for what nobody found: sets up the other packages, once, and looks again."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> object:
        """Return the module's spec among the other packages, None when it is not there either."""
        if path is not None:
            return None
        sys.meta_path.remove(cls)  # type: ignore[arg-type]
        import site
        from importlib.machinery import PathFinder

        site.main()
        return PathFinder.find_spec(name)


def main() -> int:
    """Run the event named on the command line; returns 0."""
    if os.environ.get("MDMEM_HOOK"):
        return 0
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # Without -I the first entry is this file's own folder, whose names must not hide others.
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    if here not in sys.path:
        # Behind the standard library: beside an installed package lie others of any name.
        sys.path.append(here)
    if sys.flags.no_site:
        sys.meta_path.append(OtherPackages)  # type: ignore[arg-type]
    # A process of some milliseconds: neither collecting its garbage nor taking itself apart at the end is worth the time.
    gc.disable()
    from mdmem.hooks.entry import run_hook

    return run_hook(sys.argv[1:])


if __name__ == "__main__":
    os._exit(main())
