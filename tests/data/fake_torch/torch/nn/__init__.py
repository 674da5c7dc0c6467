"""See torch/__init__.py."""

from . import attention, functional  # noqa: F401
