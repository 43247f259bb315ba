"""Pages of HTML that load nothing."""

from __future__ import annotations


def script_source(script: str) -> str:
    """Return how a Content-Security-Policy names an inline script that may run, or a style.

    Args:
        script: All between ``<script>`` and ``</script>``, or the tags of a style.

    Returns:
        Its digest, such as ``sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=``.
    """
    from base64 import b64encode  # noqa: PLC0415  # rarely needed
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL, which is slow to import

    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"
