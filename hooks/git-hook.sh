#!/bin/sh
# mdmem git hook 1 (@HOOK@): made by `mdmem install git-hooks`, taken out by `mdmem uninstall git-hooks`.
# A hook that was here before stands beside this file as @HOOK@.before-mdmem and runs first, with the same
# arguments and input; when it fails, this one does not run.
@TAKE@
before="$0.before-mdmem"
if [ -x "$before" ]; then
    @GIVE@"$before" "$@" || exit $?
fi
if [ ! -x @PYTHON@ ]; then
    echo "mdmem is gone from this machine; its git hook does nothing (rm $0 ends this message)" >&2
    exit 0
fi
@RUN@
