"""Scripts written for DALI run unchanged: `import nvidia.dali` gives forebay.

`forebay run SCRIPT` does it for a whole script; `install()`, before the script imports
`nvidia.dali`, does it from within. This is a mapping of names; no behaviour lives here.
"""

from forebay.compat.modules import install

__all__ = ["install"]
