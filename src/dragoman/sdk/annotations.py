"""What is written at a function: its parameters and annotations, also where a name in them is known to no one yet.

Since Python 3.14 an annotation is evaluated when it is asked for. What only type checkers import is missing then; each
such name is handed out as a reference, as text is where annotations are written as text.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    def parameters_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
        """The parameters by name."""
        return inspect.signature(function, annotation_format=Format.FORWARDREF).parameters

    def annotations_of(function: Callable[..., object]) -> Mapping[str, Any]:
        """The annotations by parameter; what cannot be evaluated is a reference."""
        return get_annotations(function, format=Format.FORWARDREF)

else:

    def parameters_of(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
        """The parameters by name."""
        return inspect.signature(function).parameters

    def annotations_of(function: Callable[..., object]) -> Mapping[str, Any]:
        """The annotations by parameter; what was written as text is text."""
        return getattr(function, "__annotations__", {})
